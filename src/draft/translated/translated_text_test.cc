// What the draft sees of a target's text is what its tokenizer makes of it, however the text grew.
#include "draft/translated/translated_text.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/random.h"
#include "testing/chi_square.h"
#include "testing/piece_vocabulary.h"

namespace outrider {
namespace {

using testing::PieceVocabulary;

// Two vocabularies that cut the same bytes differently, with control tokens: 0 is in front of a
// text, 1 ends one, 2 is a tool call by name, 3 exists in the target only.
struct World {
  explicit World(std::vector<std::string> target_pieces, std::vector<std::string> draft_pieces)
      : target(with_controls(std::move(target_pieces), 4)),
        draft(with_controls(std::move(draft_pieces), 3)) {}

  static std::vector<std::string> with_controls(std::vector<std::string> pieces, std::size_t n) {
    pieces.insert(pieces.begin(), n, "");
    return pieces;
  }
  static std::string name(Token token) {
    return std::vector<std::string>{"<s>", "</s>", "<tool>",
                                    "<x>"}[static_cast<std::size_t>(token)];
  }

  const VocabularyMap& map(std::string_view sample) {
    VocabularySide t{.vocabulary = &target, .front = 0, .end_of_text = 1, .name = name};
    VocabularySide d{.vocabulary = &draft, .front = 0, .end_of_text = 1, .name = name};
    Result<VocabularyMap> made =
        VocabularyMap::create(t, d, {.sample = sample, .least_share = 0.0});
    EXPECT_TRUE(made.ok()) << made.status().message();
    made_.emplace(std::move(*made));
    return *made_;
  }

  PieceVocabulary target;
  PieceVocabulary draft;

 private:
  std::optional<VocabularyMap> made_;
};

std::vector<Token> fresh(const VocabularyMap& map, const std::vector<Token>& text) {
  TranslatedText translated(map, /*window=*/1 << 20);
  EXPECT_TRUE(translated.set(0, text).ok());
  EXPECT_EQ(translated.check_integrity(), "");
  return {translated.tokens().begin(), translated.tokens().end()};
}

std::vector<Token> tokens_of(const TranslatedText& text) {
  return {text.tokens().begin(), text.tokens().end()};
}

// Target: a 4, b 5, ab 6, ba 7. Draft: a 3, b 4, aab 5, bb 6.
World small() { return World({"a", "b", "ab", "ba"}, {"a", "b", "aab", "bb"}); }

TEST(TranslatedText, IsTheDraftsOwnCutOfTheBytes) {
  World world = small();
  const VocabularyMap& map = world.map("ab");
  TranslatedText text(map);
  EXPECT_EQ(tokens_of(text), std::vector<Token>({0}));
  ASSERT_TRUE(text.set(0, std::vector<Token>{0, 4, 6, 7}).ok());  // <s> a ab ba
  EXPECT_EQ(tokens_of(text), std::vector<Token>({0, 5, 4, 3}));   // <s> aab b a
  EXPECT_EQ(text.check_integrity(), "");
}

TEST(TranslatedText, ControlTokensSeparateAndTheDraftsOwnStandForThem) {
  World world = small();
  const VocabularyMap& map = world.map("ab");
  // a a <tool> b b </s> b: without the tool call it would be "aab".
  EXPECT_EQ(fresh(map, {4, 4, 2, 5, 5, 1, 5}), std::vector<Token>({0, 3, 3, 2, 6, 1, 4}));
}

TEST(TranslatedText, AControlTokenThatTheDraftHasNotIsSpeltOut) {
  World world({"a"}, {"a", "<", "x", ">"});
  EXPECT_EQ(fresh(world.map("a"), {4, 3, 4}), std::vector<Token>({0, 3, 4, 5, 6, 3}));
}

TEST(TranslatedText, ASpaceStandsInFrontOfABeginningOnly) {
  World world({"a", " ", "b"}, {" a", "a", " ", "b", " b"});
  world.draft.add_space(true);
  const VocabularyMap& map = world.map("a b");
  EXPECT_EQ(fresh(map, {4, 5, 6, 4}), std::vector<Token>({0, 3, 7, 4}));  // " a" " b" "a"
  // The window begins in the middle, with and without a space of the text's own.
  TranslatedText text(map, 2);
  std::vector<Token> said;
  for (const Token token : {4, 6, 4, 5, 6, 4, 5, 4, 4, 6, 5, 5, 6}) {
    said.push_back(token);
    ASSERT_TRUE(text.set(said.size() - 1, std::vector<Token>{token}).ok());
    ASSERT_EQ(text.check_integrity(), "");
    ASSERT_EQ(tokens_of(text), fresh(map, said)) << said.size();
  }
}

TEST(TranslatedText, PartsOfACharacterAreBytesUntilItIsWhole) {
  World world(testing::with_all_bytes({}), testing::with_all_bytes({"\xC3\xA9", "\xF0\x9F"}));
  const VocabularyMap& map = world.map("ab");
  const auto byte = [](unsigned char b) { return static_cast<Token>(4 + b - 1); };
  const auto draft_byte = [](unsigned char b) { return static_cast<Token>(3 + 2 + b - 1); };
  TranslatedText text(map);
  ASSERT_TRUE(text.set(0, std::vector<Token>{byte('a'), byte(0xC3)}).ok());
  EXPECT_EQ(tokens_of(text), std::vector<Token>({0, draft_byte('a'), draft_byte(0xC3)}));
  ASSERT_TRUE(text.set(2, std::vector<Token>{byte(0xA9)}).ok());
  EXPECT_EQ(tokens_of(text), std::vector<Token>({0, draft_byte('a'), 3}));
  // Never a character: the longest tokens that match.
  ASSERT_TRUE(text.set(0, std::vector<Token>{byte(0xF0), byte(0x9F), byte(0x9F), byte('b')}).ok());
  EXPECT_EQ(tokens_of(text), std::vector<Token>({0, 4, draft_byte(0x9F), draft_byte('b')}));
  EXPECT_EQ(text.check_integrity(), "");
}

TEST(TranslatedText, BytesThatTheDraftHasNotAreLeftOut) {
  World world({"a", "\xFF", "b"}, {"a", "b"});
  const VocabularyMap& map = world.map("ab");
  TranslatedText text(map);
  ASSERT_TRUE(text.set(0, std::vector<Token>{5, 4, 5, 5, 6}).ok());
  EXPECT_EQ(tokens_of(text), std::vector<Token>({0, 3, 4}));
  EXPECT_EQ(text.check_integrity(), "");
}

TEST(TranslatedText, ATextWithoutTokensHasAStandIn) {
  const PieceVocabulary target({"a", "\xFF"});
  const PieceVocabulary draft({"b", "a", ""});
  VocabularySide t{.vocabulary = &target};
  VocabularySide d{.vocabulary = &draft, .end_of_text = 2};
  const Result<VocabularyMap> map =
      VocabularyMap::create(t, d, {.sample = "a", .least_share = 0.0});
  ASSERT_TRUE(map.ok()) << map.status().message();
  TranslatedText text(*map);
  EXPECT_EQ(tokens_of(text), std::vector<Token>({2}));
  ASSERT_TRUE(text.set(0, std::vector<Token>{1}).ok());
  EXPECT_EQ(tokens_of(text), std::vector<Token>({2}));
  ASSERT_TRUE(text.set(0, std::vector<Token>{0}).ok());
  EXPECT_EQ(tokens_of(text), std::vector<Token>({1}));
}

TEST(TranslatedText, AFailingTokenizerLeavesAnEmptyTextThatCanBeFilledAgain) {
  World world = small();
  const VocabularyMap& map = world.map("ab");
  TranslatedText text(map);
  ASSERT_TRUE(text.set(0, std::vector<Token>{4, 5}).ok());
  world.draft.fail(true);
  EXPECT_EQ(text.set(2, std::vector<Token>{4}).code(), StatusCode::kInternal);
  EXPECT_EQ(text.size(), 0u);
  EXPECT_EQ(text.check_integrity(), "");
  world.draft.fail(false);
  ASSERT_TRUE(text.set(0, std::vector<Token>{4, 5, 4}).ok());
  EXPECT_EQ(tokens_of(text), fresh(map, {4, 5, 4}));
}

// Every text of up to six tokens over the small alphabet with a control token, grown token by token
// and cut back to every length in between.
TEST(TranslatedText, EverySmallTextThatGrewOrShrankEqualsAFreshCut) {
  World world = small();
  const VocabularyMap& map = world.map("ab");
  const std::vector<Token> alphabet = {4, 5, 6, 7, 2};
  const std::size_t n = 6;
  std::size_t texts = 1;
  for (std::size_t i = 0; i < n; ++i) texts *= alphabet.size();
  for (std::size_t code = 0; code < texts; ++code) {
    std::vector<Token> whole;
    for (std::size_t i = 0, rest = code; i < n; ++i, rest /= alphabet.size()) {
      whole.push_back(alphabet[rest % alphabet.size()]);
    }
    TranslatedText text(map, 6);  // half of it is as long as the longest piece
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_TRUE(text.set(i, std::vector<Token>{whole[i]}).ok());
    }
    ASSERT_EQ(tokens_of(text), fresh(map, whole)) << "text " << code;
    for (std::size_t keep = n - 1; keep > 0; --keep) {
      ASSERT_TRUE(text.set(keep, {}).ok());
      ASSERT_EQ(text.check_integrity(), "");
      const std::vector<Token> kept(whole.begin(),
                                    whole.begin() + static_cast<std::ptrdiff_t>(keep));
      ASSERT_EQ(tokens_of(text), fresh(map, kept)) << "text " << code << " cut to " << keep;
    }
  }
}

// Long texts, in steps of any size, with steps back: the window's splice is what works here.
TEST(TranslatedText, LongTextsInStepsOfAnySizeEqualAFreshCut) {
  const std::uint64_t seed = testing::test_seed(7);
  for (const bool adds_space : {false, true}) {
    World world({"a", "b", " ", "ab", " b", "ba", "\xC3", "\xA9"},
                {"a", "b", " ", "aab", "bb", " a", " bb", "\xC3", "\xA9", "\xC3\xA9", "a\xC3\xA9"});
    world.draft.add_space(adds_space);
    const VocabularyMap& map = world.map("a b");
    TranslatedText text(map, 8);
    std::vector<Token> said;
    for (std::uint32_t step = 0; step < 3000; ++step) {
      const NoiseKey key = noise_key(seed, step, adds_space ? 1 : 0);
      std::size_t keep = said.size();
      if (noise_bits(key, 0) % 4 == 0 && keep > 0)
        keep -= noise_bits(key, 1) % std::min<std::size_t>(keep, 20);
      if (said.size() > 400) keep = 10;
      std::vector<Token> more;
      for (std::uint32_t i = 0; i < noise_bits(key, 2) % 6; ++i) {
        const std::uint32_t draw = noise_bits(key, 3 + i) % 41;
        more.push_back(draw == 40 ? 2 : static_cast<Token>(4 + draw % 8));
      }
      said.resize(keep);
      said.insert(said.end(), more.begin(), more.end());
      ASSERT_TRUE(text.set(keep, more).ok());
      ASSERT_EQ(text.size(), said.size());
      ASSERT_EQ(text.check_integrity(), "") << "step " << step;
      ASSERT_EQ(tokens_of(text), fresh(map, said)) << "step " << step;
    }
  }
}

// The negative control: without a window that is cut again the tokens are those of the pieces.
TEST(TranslatedText, CutTokenByTokenItWouldBeAnotherText) {
  World world = small();
  const VocabularyMap& map = world.map("ab");
  const std::vector<Token> whole = fresh(map, {4, 6});
  std::vector<Token> apart = fresh(map, {4});
  const std::vector<Token> last = fresh(map, {6});
  apart.insert(apart.end(), last.begin() + 1, last.end());
  EXPECT_NE(apart, whole);
}

}  // namespace
}  // namespace outrider
