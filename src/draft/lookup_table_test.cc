#include "draft/lookup_table.h"

#include <gtest/gtest.h>

#include <set>

#include "draft/suffix/suffix_memory.h"

namespace outrider {
namespace {

constexpr LookupSettings kSettings = {.n_vocab = 20, .n_sequences = 2};

TEST(LookupTable, EveryKindMakesADrafterOfItsNameAndDescribesItself) {
  std::set<std::string_view> names = {kDraftModelName};
  for (const LookupKind& kind : lookup_kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name << " is there twice";
    EXPECT_FALSE(kind.help.empty()) << kind.name;
    const std::unique_ptr<LookupDrafter> drafter = kind.make(kSettings);
    ASSERT_NE(drafter, nullptr);
    EXPECT_EQ(drafter->name(), kind.name);
    EXPECT_EQ(find_lookup_kind(kind.name), &kind);
    EXPECT_FALSE(kind.unasked == Unasked::kWithFiles && !kind.files) << kind.name;
    EXPECT_EQ(drafter->memory(), nullptr) << "nothing is remembered unless it is wished for";
  }
  EXPECT_EQ(find_lookup_kind(kDraftModelName), nullptr);
  EXPECT_EQ(find_lookup_kind(""), nullptr);
}

TEST(LookupTable, TheNamesOfAllInterfacesAreTheTables) {
  std::vector<std::string_view> names = {kDraftModelName};
  std::vector<std::string_view> takers;
  std::vector<std::string_view> tiers;
  for (const LookupKind& kind : lookup_kinds()) {
    names.push_back(kind.name);
    if (!kind.files) continue;
    takers.push_back(kind.name);
    tiers.insert(tiers.end(), kind.files->tiers.begin(), kind.files->tiers.end());
  }
  names.push_back(kMtpName);
  names.insert(names.end(), kHeadNames.begin(), kHeadNames.end());
  EXPECT_EQ(std::vector(kDrafterNames.begin(), kDrafterNames.end()), names);
  EXPECT_EQ(std::vector(kFileDrafters.begin(), kFileDrafters.end()), takers);
  EXPECT_EQ(std::vector(kFileTiers.begin(), kFileTiers.end()), tiers);
  EXPECT_TRUE(parse_drafter_plan("draft-model,suffix/ngram-cache,recycle", kDrafterNames).ok());
}

TEST(LookupTable, ADrafterThatRemembersDoesSoAsFarAsItIsTold) {
  LookupSettings settings = kSettings;
  settings.remember_tokens = 2048;
  const std::unique_ptr<LookupDrafter> suffix = find_lookup_kind("suffix")->make(settings);
  ASSERT_NE(suffix->memory(), nullptr);
  EXPECT_EQ(suffix->memory()->stats().max_tokens, 2048U);
}

TEST(LookupTable, FilesAreRefusedByWhoTakesNoneOrHasNoSuchTier) {
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
