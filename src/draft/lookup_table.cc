#include "draft/lookup_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "draft/ngram/ngram_drafter.h"
#include "draft/recycle/recycle.h"
#include "draft/suffix/suffix_drafter.h"

namespace outrider {
namespace {

// A new drafter comes in here. All of this is constant: it is there before, and after, whatever
// runs.
constexpr std::array kKinds = {kSuffixKind, kNgramKind, kRecycleKind};

constexpr std::array kNames = [] {
  std::array<std::string_view, kKinds.size() + 2 + kHeadNames.size()> names = {kDraftModelName};
  std::size_t n = 1;
  for (const LookupKind& kind : kKinds) names[n++] = kind.name;
  names[n++] = kMtpName;
  for (const std::string_view head : kHeadNames) names[n++] = head;
  return names;
}();

constexpr std::size_t kTakersCount = [] {
  std::size_t n = 0;
  for (const LookupKind& kind : kKinds) n += kind.files ? 1 : 0;
  return n;
}();

constexpr std::array kTakers = [] {
  std::array<std::string_view, kTakersCount> names;
  std::size_t n = 0;
  for (const LookupKind& kind : kKinds) {
    if (kind.files) names[n++] = kind.name;
  }
  return names;
}();

constexpr std::size_t kTiersCount = [] {
  std::size_t n = 0;
  for (const LookupKind& kind : kKinds) n += kind.files ? kind.files->tiers.size() : 0;
  return n;
}();

constexpr std::array kTiers = [] {
  std::array<std::string_view, kTiersCount> names;
  std::size_t n = 0;
  for (const LookupKind& kind : kKinds) {
    if (!kind.files) continue;
    for (const std::string_view tier : kind.files->tiers) names[n++] = tier;
  }
  return names;
}();

std::string joined(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names)
    text += (text.empty() ? "" : " or ") + std::string(name);
  return text;
}

std::string names_with_tiers() {
  std::vector<std::string_view> names;
  for (const LookupKind& kind : kKinds) {
    if (kind.files && !kind.files->tiers.empty()) names.push_back(kind.name);
  }
  return joined(names);
}

}  // namespace

constinit const std::span<const std::string_view> kDrafterNames = kNames;
constinit const std::span<const std::string_view> kFileDrafters = kTakers;
constinit const std::span<const std::string_view> kFileTiers = kTiers;

std::span<const LookupKind> lookup_kinds() { return kKinds; }

const LookupKind* find_lookup_kind(std::string_view name) {
  const LookupKind* const found = std::find_if(
      kKinds.begin(), kKinds.end(), [name](const LookupKind& kind) { return kind.name == name; });
  return found == kKinds.end() ? nullptr : found;
}

Status check_file_drafter(const DrafterFile& file) {
  const LookupKind* const kind = find_lookup_kind(file.drafter);
  if (kind == nullptr || !kind->files) {
    return wrong_value("drafter", "'" + file.drafter + "'",
                       joined(kFileDrafters) + ": no other drafter takes files");
  }
  if (file.tier.empty()) return Status();
  const std::span<const std::string_view> tiers = kind->files->tiers;
  if (tiers.empty()) {
    return refused(
        "tier", "goes with the drafter " + names_with_tiers() + "; " + file.drafter + " has none");
  }
  if (std::find(tiers.begin(), tiers.end(), file.tier) != tiers.end()) return Status();
  return wrong_value("tier", "'" + file.tier + "'", joined(tiers));
}

Result<OpenedDrafterFile> open_drafter_file(const DrafterFile& file, const TokenizerId& tokenizer) {
  OUTRIDER_RETURN_IF_ERROR(check_file_drafter(file));
  Result<std::shared_ptr<const LookupFile>> contents =
      find_lookup_kind(file.drafter)->files->open(file.path, tokenizer);
  if (!contents.ok()) return contents.status();
  return OpenedDrafterFile{.file = file, .contents = *std::move(contents)};
}

}  // namespace outrider
