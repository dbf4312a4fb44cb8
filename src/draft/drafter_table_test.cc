#include "draft/drafter_table.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "draft/suffix/suffix_memory.h"

namespace outrider {
namespace {

constexpr LookupSettings kSettings = {.n_vocab = 20, .n_sequences = 2};

TEST(DrafterTable, EveryKindMakesADrafterOfItsNameAndDescribesItself) {
  std::set<std::string_view> names = {kDraftModelName};
  for (const LookupKind* kind : lookup_kinds()) {
    EXPECT_TRUE(names.insert(kind->name).second) << kind->name << " is there twice";
    EXPECT_FALSE(kind->help.empty()) << kind->name;
    const std::unique_ptr<LookupDrafter> drafter = kind->make(kSettings);
    ASSERT_NE(drafter, nullptr);
    EXPECT_EQ(drafter->name(), kind->name);
    EXPECT_EQ(find_lookup_kind(kind->name), kind);
    EXPECT_FALSE(kind->unasked == Unasked::kWithFiles && !kind->files) << kind->name;
    EXPECT_EQ(drafter->wants_rows(), kind->from == GuessesFrom::kLogits) << kind->name;
    EXPECT_EQ(drafter->memory(), nullptr) << "nothing is remembered unless it is wished for";
  }
  EXPECT_EQ(find_lookup_kind(kDraftModelName), nullptr);
  EXPECT_EQ(find_lookup_kind(""), nullptr);
}

TEST(DrafterTable, TheNamesOfAllInterfacesAreTheTables) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> lookups;
  std::vector<std::string_view> takers;
  std::vector<std::string_view> tiers;
  for (const DrafterKind& kind : drafter_kinds()) {
    names.push_back(kind.name);
    EXPECT_EQ(find_drafter_kind(kind.name), &kind);
    EXPECT_EQ(kind.model == NeededModel::kNone, kind.lookup != nullptr) << kind.name;
    EXPECT_EQ(kind.help.empty(), kind.model == NeededModel::kDraft) << kind.name;
    if (kind.lookup == nullptr) continue;
    lookups.push_back(kind.name);
    EXPECT_EQ(kind.lookup->name, kind.name);
    if (!kind.lookup->files) continue;
    takers.push_back(kind.name);
    if (!kind.lookup->files->has_tiers()) continue;
    for (const FileOption& option : kind.lookup->files->options) tiers.push_back(option.tier);
  }
  EXPECT_EQ(names, (std::vector<std::string_view>{"draft-model", "suffix", "ngram-cache", "recycle",
                                                  "mtp", "eagle3", "dflash"}));
  EXPECT_EQ(lookups, (std::vector<std::string_view>{"suffix", "ngram-cache", "recycle"}));
  EXPECT_EQ(std::vector(kDrafterNames.begin(), kDrafterNames.end()), names);
  EXPECT_EQ(std::vector(kTextDrafters.begin(), kTextDrafters.end()),
            (std::vector<std::string_view>{"suffix", "ngram-cache"}));
  EXPECT_EQ(std::vector(kFileDrafters.begin(), kFileDrafters.end()), takers);
  EXPECT_EQ(std::vector(kFileTiers.begin(), kFileTiers.end()), tiers);
  EXPECT_EQ(find_drafter_kind("replay"), nullptr);
  EXPECT_TRUE(parse_drafter_plan("draft-model,suffix/ngram-cache,recycle", kDrafterNames).ok());
}

TEST(DrafterTable, ADraftIsCalledAsItsArchitectureWhereThatIsAHeads) {
  EXPECT_EQ(draft_name("eagle3"), "eagle3");
  EXPECT_EQ(draft_name("dflash"), "dflash");
  for (const char* other : {"llama", "", "mtp", "suffix", "draft-model"}) {
    EXPECT_EQ(draft_name(other), kDraftModelName) << other;
  }
  EXPECT_TRUE(is_draft_name("eagle3"));
  EXPECT_TRUE(is_draft_name("dflash"));
  EXPECT_TRUE(is_draft_name(kDraftModelName));
  EXPECT_FALSE(is_draft_name("suffix"));
  EXPECT_FALSE(is_draft_name("mtp")) << "it comes with the target";
  EXPECT_TRUE(mentions_draft({.chains = {{"suffix", "eagle3"}}}));
  EXPECT_FALSE(mentions_draft({.chains = {{"suffix"}, {"mtp"}}}));
  EXPECT_TRUE(mentions_own_head({.chains = {{"suffix"}, {"mtp"}}}));
  EXPECT_FALSE(mentions_own_head({.chains = {{"suffix", "eagle3"}}}));
}

// Colours, which people remember.
TEST(DrafterTable, DraftsHaveOnePlaceAndTheOthersOneEach) {
  const std::map<std::string_view, std::size_t> places = {
      {"draft-model", 0}, {"eagle3", 0},  {"dflash", 0}, {"suffix", 1},
      {"ngram-cache", 2}, {"recycle", 3}, {"mtp", 4}};
  for (const std::string_view name : kDrafterNames) {
    EXPECT_EQ(drafter_place(name), places.at(name)) << name;
  }
  EXPECT_EQ(drafter_place("replay"), 5U);
}

TEST(DrafterTable, EachFileHasAnOptionOfItsOwn) {
  EXPECT_EQ(file_option_of({"suffix", "x"}).name, "suffix_store");
  EXPECT_EQ(file_option_of({"ngram-cache", "x", "static"}).name, "ngram_static");
  EXPECT_EQ(file_option_of({"ngram-cache", "x", "dynamic"}).name, "ngram_dynamic");
  EXPECT_EQ(file_option_of({"ngram-cache", "x"}).tier, "static");
  std::set<std::string_view> names;
  for (const std::string_view drafter : kFileDrafters) {
    const LookupFiles& files = *find_lookup_kind(drafter)->files;
    EXPECT_FALSE(files.one.empty() || files.many.empty()) << drafter;
    for (const FileOption& option : files.options) {
      EXPECT_TRUE(names.insert(option.name).second) << option.name << " is there twice";
      EXPECT_FALSE(option.help.empty()) << option.name;
      EXPECT_EQ(option.tier.empty(), option.tier_help.empty()) << option.name;
      EXPECT_EQ(option.tier.empty(), files.options.size() == 1) << option.name;
    }
  }
}

TEST(DrafterTable, ADrafterThatRemembersDoesSoAsFarAsItIsTold) {
  LookupSettings settings = kSettings;
  settings.remember_tokens = 2048;
  for (const LookupKind* kind : lookup_kinds()) {
    const std::unique_ptr<LookupDrafter> drafter = kind->make(settings);
    EXPECT_EQ(kind->remembers, kind->name == "suffix");
    ASSERT_EQ(drafter->memory() != nullptr, kind->remembers) << kind->name;
    if (!kind->remembers) continue;
    EXPECT_EQ(drafter->memory()->stats().max_tokens, 2048U);
  }
}

TEST(DrafterTable, FilesAreRefusedByWhoTakesNoneOrHasNoSuchTier) {
  EXPECT_EQ(check_file_drafter({"recycle", "x"}).message(),
            "drafter is 'recycle', but must be suffix or ngram-cache: no other drafter takes "
            "files");
  EXPECT_EQ(check_file_drafter({"suffix", "x", "static"}).message(),
            "tier goes with the drafter ngram-cache; suffix has none");
  EXPECT_EQ(check_file_drafter({"ngram-cache", "x", "context"}).message(),
            "tier is 'context', but must be static or dynamic");
  for (const std::string_view name : kFileDrafters) {
    const DrafterFile file{.drafter = std::string(name), .path = "/does/not/exist"};
    EXPECT_TRUE(check_file_drafter(file).ok());
    const Status missing = open_drafter_file(file, TokenizerId()).status();
    EXPECT_NE(missing.message().find(file.path), std::string::npos) << missing.message();
  }
}

}  // namespace
}  // namespace outrider
