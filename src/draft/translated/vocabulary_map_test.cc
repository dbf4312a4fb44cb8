#include "draft/translated/vocabulary_map.h"

#include <gtest/gtest.h>

#include <set>

#include "testing/piece_vocabulary.h"

namespace outrider {
namespace {

using testing::PieceVocabulary;

VocabularySide side(const Vocabulary& vocabulary) { return {.vocabulary = &vocabulary}; }

VocabularyMap::Options sample(std::string_view text, double least = 0.5) {
  return {.sample = text, .least_share = least};
}

TEST(VocabularyMap, TokensOfTheSameBytesAreSharedAndNoOthers) {
  const PieceVocabulary target({"a", "b", "ab", "the", " the"});
  const PieceVocabulary draft({" the", "th", "b", "a", "ba", "the"});
  const Result<VocabularyMap> map =
      VocabularyMap::create(side(target), side(draft), sample("ab the"));
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_EQ(map->to_draft(0), 3);
  EXPECT_EQ(map->to_draft(1), 2);
  EXPECT_EQ(map->to_draft(2), kNoToken);
  EXPECT_EQ(map->to_draft(3), 5);
  EXPECT_EQ(map->to_draft(4), 0);
  EXPECT_EQ(map->pairs().size(), 4u);
  EXPECT_EQ(map->share().shared, 4);
  EXPECT_EQ(map->share().target_size, 5);
  // The sample is "ab", " the" for the target.
  EXPECT_EQ(map->share().sample_size, 2);
  EXPECT_EQ(map->share().sample_shared, 1);
}

TEST(VocabularyMap, OfSeveralTokensWithTheSameBytesTheTokenizersOwnIsShared) {
  // The tokenizer of these takes the highest id among equal pieces.
  const PieceVocabulary target({"a", "b", "a", "c", "a"});
  const PieceVocabulary draft({"b", "a", "c", "a"});
  const Result<VocabularyMap> map = VocabularyMap::create(side(target), side(draft), sample("abc"));
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_EQ(map->to_draft(4), 3);
  EXPECT_EQ(map->to_draft(0), kNoToken);
  EXPECT_EQ(map->to_draft(2), kNoToken);
  std::set<Token> drafts;
  for (const VocabularyMap::Pair& pair : map->pairs())
    EXPECT_TRUE(drafts.insert(pair.draft).second);
}

TEST(VocabularyMap, ControlTokensAreSharedByNameAndEndsByRole) {
  const PieceVocabulary target({"a", "", "", "", ""});
  const PieceVocabulary draft({"", "", "a", "", ""});
  VocabularySide t = side(target);
  t.name = [](Token id) {
    return std::vector<std::string>{"a", "<tool>", "<end>", "<turn>", "<odd>"}[id];
  };
  t.end_of_text = 2;
  t.end_of_turn = 3;
  VocabularySide d = side(draft);
  d.name = [](Token id) {
    return std::vector<std::string>{"<eos>", "<tool>", "a", "<eot>", "<else>"}[id];
  };
  d.end_of_text = 0;
  d.end_of_turn = 3;
  const Result<VocabularyMap> map = VocabularyMap::create(t, d, sample("a"));
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_EQ(map->to_draft(1), 1);
  EXPECT_EQ(map->to_draft(2), 0);
  EXPECT_EQ(map->to_draft(3), 3);
  EXPECT_EQ(map->to_draft(4), kNoToken);
}

// One token may have both roles; it is shared once.
TEST(VocabularyMap, AnEndTokenWithTwoRolesIsLinkedOnce) {
  const PieceVocabulary target({"a", "", ""});
  const PieceVocabulary draft({"a", ""});
  VocabularySide t = side(target);
  t.end_of_text = 1;
  t.end_of_turn = 2;
  VocabularySide d = side(draft);
  d.end_of_text = 1;
  d.end_of_turn = 1;
  const Result<VocabularyMap> map = VocabularyMap::create(t, d, sample("a"));
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_EQ(map->to_draft(1), 1);
  EXPECT_EQ(map->to_draft(2), kNoToken);
}

TEST(VocabularyMap, APairThatSharesTooLittleIsRefusedWithTheShare) {
  const PieceVocabulary target({"aa", "b", "ab", "c"});
  const PieceVocabulary draft({"a", "b", "c"});
  // "ab", "c", "aa", "ab": one of four is shared.
  const Status refused =
      VocabularyMap::create(side(target), side(draft), sample("abcaaab")).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
  EXPECT_NE(refused.message().find("2 of the target's 4 tokens (50 %), 25 % of a sample text"),
            std::string::npos)
      << refused.message();
  EXPECT_TRUE(VocabularyMap::create(side(target), side(draft), sample("abcaaab", 0.25)).ok());
}

TEST(VocabularyMap, NothingSharedIsRefusedWhateverTheLimit) {
  const PieceVocabulary target({"aa", "ab"});
  const PieceVocabulary draft({"a", "b"});
  EXPECT_FALSE(VocabularyMap::create(side(target), side(draft), sample("aaab", 0.0)).ok());
}

TEST(VocabularyMap, ATokenizerThatChangesTheTextIsRefusedASpaceInFrontIsNot) {
  const PieceVocabulary target(testing::with_all_bytes({}));
  PieceVocabulary draft(testing::with_all_bytes({"the"}));
  EXPECT_TRUE(VocabularyMap::create(side(target), side(draft), {}).ok());
  draft.add_space(true);
  EXPECT_TRUE(VocabularyMap::create(side(target), side(draft), {}).ok());
  draft.change('T', 't');
  const Status refused = VocabularyMap::create(side(target), side(draft), {}).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
  EXPECT_NE(refused.message().find("does not give a text back"), std::string::npos)
      << refused.message();
}

TEST(PieceTable, FindsEveryPieceAndTheLongestThatMatches) {
  const PieceVocabulary vocabulary({"", "a", "ab", "abcd", "b", "a"});
  const PieceTable table(vocabulary);
  EXPECT_EQ(table.find("a"), 5);
  EXPECT_EQ(table.find("ab"), 2);
  EXPECT_EQ(table.find("abc"), kNoToken);
  EXPECT_EQ(table.find(""), kNoToken);
  EXPECT_EQ(table.longest("abcz"), 2);
  EXPECT_EQ(table.longest("abcde"), 3);
  EXPECT_EQ(table.longest("z"), kNoToken);
  EXPECT_EQ(table.longest(""), kNoToken);
}

}  // namespace
}  // namespace outrider
