#include "serve/drafter_file.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "draft/ngram/ngram_drafter.h"
#include "draft/ngram/ngram_file.h"

namespace outrider {
namespace {

std::string joined(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names)
    text += (text.empty() ? "" : " or ") + std::string(name);
  return text;
}

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<OpenedDrafterFile> open_ngrams(const DrafterFile& file, const TokenizerId& tokenizer) {
  Result<NgramCache> cache = load_ngrams(file.path, tokenizer);
  if (!cache.ok()) return cache.status();
  OpenedDrafterFile opened{.file = file,
                           .ngrams = std::make_shared<const NgramCache>(*std::move(cache))};
  std::error_code error;  // it may be gone by now; what was read stays
  const std::uintmax_t bytes = std::filesystem::file_size(file.path, error);
  if (!error) opened.file_bytes = bytes;
  return opened;
}

}  // namespace

std::uint64_t OpenedDrafterFile::memory_bytes() const {
  return ngrams == nullptr ? 0 : ngrams->memory_bytes();
}

Status OpenedDrafterFile::damage() const {
  return suffix == nullptr ? Status() : suffix->file().damage();
}

NgramTier ngram_tier(std::string_view tier) {
  return tier == "dynamic" ? NgramTier::kDynamic : NgramTier::kStatic;
}

Status check_file_drafter(const DrafterFile& file) {
  if (!is_among(kFileDrafters, file.drafter)) {
    return invalid_argument("--drafter is '" + file.drafter + "', but must be " +
                            joined(kFileDrafters) + ": no other drafter takes files");
  }
  if (file.tier.empty()) return Status();
  if (file.drafter != NgramDrafter::kName) {
    return invalid_argument("--tier goes with the drafter ngram-cache; " + file.drafter +
                            " has none");
  }
  if (is_among(kFileTiers, file.tier)) return Status();
  return invalid_argument("--tier is '" + file.tier + "', but must be " + joined(kFileTiers));
}

Result<OpenedDrafterFile> open_drafter_file(const DrafterFile& file, const TokenizerId& tokenizer) {
  OUTRIDER_RETURN_IF_ERROR(check_file_drafter(file));
  if (file.drafter == NgramDrafter::kName) return open_ngrams(file, tokenizer);
  Result<std::unique_ptr<SuffixStore>> store = SuffixStore::open(file.path, tokenizer);
  if (!store.ok()) return store.status();
  OpenedDrafterFile opened{.file = file, .suffix = *std::move(store)};
  opened.file_bytes = opened.suffix->file().file_bytes();
  return opened;
}

}  // namespace outrider
