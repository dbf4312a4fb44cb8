#include "draft/ngram/ngram_drafter.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <filesystem>
#include <system_error>
#include <utility>

#include "draft/ngram/ngram_file.h"

namespace outrider {
namespace {

// Read as a whole.
struct NgramCacheFile : LookupFile {
  NgramCacheFile(NgramCache c, std::uint64_t b) : cache(std::move(c)), bytes(b) {}
  std::uint64_t file_bytes() const override { return bytes; }
  std::uint64_t memory_bytes() const override { return cache.memory_bytes(); }

  const NgramCache cache;
  const std::uint64_t bytes;  // of the file
};

NgramTier ngram_tier(std::string_view tier) {
  return tier == kNgramOptions[1].tier ? NgramTier::kDynamic : NgramTier::kStatic;
}

}  // namespace

NgramDrafter::NgramDrafter(std::shared_ptr<const NgramCache> corpus,
                           std::shared_ptr<NgramCache> dynamic)
    : corpus_(std::move(corpus)), dynamic_(dynamic), learning_(std::move(dynamic)) {}

NgramContext& NgramDrafter::context(SeqId seq) {
  const std::size_t i = static_cast<std::size_t>(seq);
  if (i >= contexts_.size()) {
    touched_.resize(i + 1, false);
    contexts_.resize(i + 1);
  }
  return contexts_[i];
}

Status NgramDrafter::begin(SeqId seq, std::size_t kept) {
  context(seq).cut(kept);
  touched_[static_cast<std::size_t>(seq)] = false;
  return Status();
}

void NgramDrafter::accept(SeqId seq, std::span<const Token> text) { context(seq).extend(text); }

void NgramDrafter::end(SeqId seq) {
  context(seq).cut(0);
  touched_[static_cast<std::size_t>(seq)] = false;
}

void NgramDrafter::set_cache(NgramTier tier, std::shared_ptr<const NgramCache> cache) {
  if (tier == NgramTier::kStatic) {
    corpus_ = std::move(cache);
  } else {
    dynamic_ = std::move(cache);
    learning_.reset();
  }
}

void NgramDrafter::remove_cache(NgramTier tier, std::string reason) {
  if ((tier == NgramTier::kStatic ? corpus_ : dynamic_) == nullptr) return;
  set_cache(tier, nullptr);
  removal_ = std::move(reason);
  touched_.assign(touched_.size(), true);
}

void NgramDrafter::add_file(const OpenedDrafterFile& file) {
  set_cache(ngram_tier(file.file.tier), cache_of(file));
}

void NgramDrafter::remove_file(const DrafterFile& file, std::string reason) {
  remove_cache(ngram_tier(file.tier), std::move(reason));
}

std::string NgramDrafter::note(SeqId seq) const {
  const std::size_t i = static_cast<std::size_t>(seq);
  return i < touched_.size() && touched_[i] ? removal_ : "";
}

Status NgramDrafter::draft(std::span<DraftRequest> requests) {
  for (DraftRequest& request : requests) {
    if (request.max_nodes > 0 && !request.text.empty()) draft_one(request);
  }
  return Status();
}

void NgramDrafter::draft_one(DraftRequest& request) {
  NgramContext& own = context(request.seq);
  own.extend(request.text);
  const NgramTiers tiers = {
      .context = &own.cache(), .dynamic = dynamic_.get(), .corpus = corpus_.get()};
  // The text's last tokens, and behind them the draft's.
  std::array<Token, kMaxNgram> window = {};
  std::size_t n = std::min<std::size_t>(kMaxNgram, request.text.size());
  std::copy(request.text.end() - static_cast<std::ptrdiff_t>(n), request.text.end(),
            window.begin());
  NodeId at = kRoot;
  float chance = 1.0f;
  for (std::int32_t drafted = 0; drafted < request.max_nodes; ++drafted) {
    const NgramGuess guess = guess_next(tiers, std::span<const Token>(window).first(n));
    if (guess.token == kNoToken) return;
    chance *= guess.chance;
    at = request.tree->add(at, guess.token, chance, request.mask);
    if (n < window.size()) {
      window[n++] = guess.token;
    } else {
      std::shift_left(window.begin(), window.end(), 1);
      window.back() = guess.token;
    }
  }
}

void NgramDrafter::learn(SeqId seq) {
  if (learning_ != nullptr) learning_->merge(context(seq).cache());
}

std::size_t NgramDrafter::memory_bytes() const {
  std::size_t bytes = 0;
  for (const NgramContext& context : contexts_) bytes += context.memory_bytes();
  return bytes;
}

std::string NgramDrafter::check_integrity() const {
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    const std::string broken = contexts_[i].check_integrity();
    if (!broken.empty()) return "sequence " + std::to_string(i) + ": " + broken;
  }
  return "";
}

Result<std::shared_ptr<const LookupFile>> open_ngram_file(const std::string& path,
                                                          const TokenizerId& tokenizer) {
  Result<NgramCache> cache = load_ngrams(path, tokenizer);
  if (!cache.ok()) return cache.status();
  std::error_code error;  // it may be gone by now; what was read stays
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return std::shared_ptr<const LookupFile>(
      std::make_shared<const NgramCacheFile>(*std::move(cache), error ? 0 : bytes));
}

std::shared_ptr<const NgramCache> cache_of(const OpenedDrafterFile& file) {
  const std::shared_ptr<const NgramCacheFile> opened =
      std::dynamic_pointer_cast<const NgramCacheFile>(file.contents);
  assert(opened != nullptr);
  return std::shared_ptr<const NgramCache>(opened, &opened->cache);
}

std::unique_ptr<LookupDrafter> make_ngram_drafter(const LookupSettings& /*settings*/) {
  return std::make_unique<NgramDrafter>();
}

}  // namespace outrider
