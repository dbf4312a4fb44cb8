#include "draft/drafter_table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "base/list_of.h"
#include "draft/model/block_drafter.h"
#include "draft/model/draft_model.h"
#include "draft/ngram/ngram_drafter.h"
#include "draft/recycle/recycle.h"
#include "draft/suffix/suffix_drafter.h"

namespace outrider {
namespace {

constexpr DrafterKind row(const LookupKind& kind) {
  return {.name = kind.name, .help = kind.help, .from = kind.from, .lookup = &kind};
}

// A new drafter comes in here. All of this is constant: it is there before, and after, whatever
// runs.
constexpr std::array kDrafters = {kDraftModelKind,   row(kSuffixKind), row(kNgramKind),
                                  row(kRecycleKind), kMtpKind,         kEagle3Kind,
                                  kDflashKind};

using Which = bool (*)(const DrafterKind&);

template <Which kWhich>
constexpr std::size_t kCount = static_cast<std::size_t>(std::count_if(kDrafters.begin(),
                                                                      kDrafters.end(), kWhich));

template <Which kWhich>
constexpr auto kNamesOf = [] {
  std::array<std::string_view, kCount<kWhich>> names;
  std::size_t n = 0;
  for (const DrafterKind& kind : kDrafters) {
    if (kWhich(kind)) names[n++] = kind.name;
  }
  return names;
}();

constexpr bool is_any(const DrafterKind&) { return true; }
constexpr bool reads_text(const DrafterKind& kind) { return kind.from == GuessesFrom::kText; }
constexpr bool is_draft(const DrafterKind& kind) { return kind.model == NeededModel::kDraft; }
// Not by its pointer: with -fsanitize=undefined, GCC 12 compares no address in a constant.
constexpr bool is_lookup(const DrafterKind& kind) { return kind.model == NeededModel::kNone; }
constexpr bool takes_files(const DrafterKind& kind) {
  return is_lookup(kind) && kind.lookup->files.has_value();
}
constexpr bool has_tiers(const DrafterKind& kind) {
  return takes_files(kind) && kind.lookup->files->has_tiers();
}

constexpr std::array kLookups = [] {
  std::array<const LookupKind*, kCount<is_lookup>> kinds;
  std::size_t n = 0;
  for (const DrafterKind& kind : kDrafters) {
    if (is_lookup(kind)) kinds[n++] = kind.lookup;
  }
  return kinds;
}();

constexpr std::size_t kTiersCount = [] {
  std::size_t n = 0;
  for (const DrafterKind& kind : kDrafters) {
    n += has_tiers(kind) ? kind.lookup->files->options.size() : 0;
  }
  return n;
}();

constexpr std::array kTiers = [] {
  std::array<std::string_view, kTiersCount> names;
  std::size_t n = 0;
  for (const DrafterKind& kind : kDrafters) {
    if (!has_tiers(kind)) continue;
    for (const FileOption& option : kind.lookup->files->options) names[n++] = option.tier;
  }
  return names;
}();

bool mentions(const DrafterPlan& plan, NeededModel model) {
  return std::any_of(kDrafters.begin(), kDrafters.end(), [&](const DrafterKind& kind) {
    return kind.model == model && plan.mentions(kind.name);
  });
}

const FileOption* find_option(std::span<const FileOption> options, std::string_view tier) {
  for (const FileOption& option : options) {
    if (option.tier == tier) return &option;
  }
  return nullptr;
}

std::string tiers_of(std::span<const FileOption> options) {
  std::vector<std::string> tiers;
  for (const FileOption& option : options) tiers.emplace_back(option.tier);
  return list_of(tiers, " or ");
}

}  // namespace

constinit const std::span<const std::string_view> kDrafterNames = kNamesOf<is_any>;
constinit const std::span<const std::string_view> kTextDrafters = kNamesOf<reads_text>;
constinit const std::span<const std::string_view> kFileDrafters = kNamesOf<takes_files>;
constinit const std::span<const std::string_view> kTieredDrafters = kNamesOf<has_tiers>;
constinit const std::span<const std::string_view> kFileTiers = kTiers;

std::span<const DrafterKind> drafter_kinds() { return kDrafters; }

const DrafterKind* find_drafter_kind(std::string_view name) {
  for (const DrafterKind& kind : kDrafters) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

NeededModel needed_model(std::string_view drafter) {
  const DrafterKind* const kind = find_drafter_kind(drafter);
  return kind == nullptr ? NeededModel::kNone : kind->model;
}

ShapeUse shape_use(const DrafterKind& kind) {
  if (kind.lookup != nullptr) return kind.lookup->shape;
  return {.branches = true, .split_p = true, .stops = true};
}

std::string_view draft_name(std::string_view architecture) {
  const DrafterKind* const kind = find_drafter_kind(architecture);
  const bool is_head = kind != nullptr && is_draft(*kind) && kind->from == GuessesFrom::kHidden;
  return is_head ? kind->name : kDraftModelName;
}

bool is_draft_name(std::string_view name) { return needed_model(name) == NeededModel::kDraft; }

bool mentions_draft(const DrafterPlan& plan) { return mentions(plan, NeededModel::kDraft); }

bool mentions_own_head(const DrafterPlan& plan) { return mentions(plan, NeededModel::kTarget); }

std::size_t drafter_place(std::string_view name) {
  if (is_draft_name(name)) return 0;
  std::size_t place = 1;
  for (const DrafterKind& kind : kDrafters) {
    if (kind.name == name) return place;
    place += is_draft(kind) ? 0 : 1;
  }
  return place;
}

std::span<const LookupKind* const> lookup_kinds() { return kLookups; }

const LookupKind* find_lookup_kind(std::string_view name) {
  const DrafterKind* const kind = find_drafter_kind(name);
  return kind == nullptr ? nullptr : kind->lookup;
}

Status check_file_drafter(const DrafterFile& file) {
  const LookupKind* const kind = find_lookup_kind(file.drafter);
  if (kind == nullptr || !kind->files) {
    return wrong_value("drafter", "'" + file.drafter + "'",
                       list_of_names(kFileDrafters, " or ") + ": no other drafter takes files");
  }
  if (file.tier.empty()) return Status();
  if (!kind->files->has_tiers()) {
    return refused("tier", "goes with the drafter " + list_of_names(kTieredDrafters, " or ") +
                               "; " + file.drafter + " has none");
  }
  if (find_option(kind->files->options, file.tier) != nullptr) return Status();
  return wrong_value("tier", "'" + file.tier + "'", tiers_of(kind->files->options));
}

const FileOption& file_option_of(const DrafterFile& file) {
  assert(check_file_drafter(file).ok());
  const std::span<const FileOption> options = find_lookup_kind(file.drafter)->files->options;
  const FileOption* const found = find_option(options, file.tier);
  return found != nullptr ? *found : options.front();
}

Result<OpenedDrafterFile> open_drafter_file(const DrafterFile& file, const TokenizerId& tokenizer) {
  OUTRIDER_RETURN_IF_ERROR(check_file_drafter(file));
  Result<std::shared_ptr<const LookupFile>> contents =
      find_lookup_kind(file.drafter)->files->open(file.path, tokenizer);
  if (!contents.ok()) return contents.status();
  return OpenedDrafterFile{.file = file, .contents = *std::move(contents)};
}

}  // namespace outrider
