#include "testing/tiny_vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace outrider::testing {
namespace {

TinyVocabulary make(const TinyVocabularyOptions& options) {
  const Result<TinyVocabulary> vocabulary = make_tiny_vocabulary(options);
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  return vocabulary.ok() ? *vocabulary : TinyVocabulary();
}

bool has_text(const TinyVocabulary& vocabulary, const std::string& text) {
  return std::any_of(vocabulary.tokens.begin(), vocabulary.tokens.end(),
                     [&](const TinyToken& token) { return token.text == text; });
}

class TinyVocabularyTest : public ::testing::TestWithParam<TinyTokenizer> {
 protected:
  TinyVocabularyOptions options() const {
    TinyVocabularyOptions options;
    options.tokenizer = GetParam();
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, TinyVocabularyTest,
                         ::testing::Values(TinyTokenizer::kSpm, TinyTokenizer::kBpe),
                         [](const ::testing::TestParamInfo<TinyTokenizer>& kind) {
                           return kind.param == TinyTokenizer::kSpm ? "Spm" : "Bpe";
                         });

TEST_P(TinyVocabularyTest, LayoutIsTheOneInTheHeader) {
  const TinyVocabulary vocabulary = make(options());
  ASSERT_GT(vocabulary.size(), kTinyFirstPiece);
  EXPECT_EQ(vocabulary.tokens[kTinyUnknown].text, "<unk>");
  EXPECT_EQ(vocabulary.tokens[kTinyBos].text, "<s>");
  EXPECT_EQ(vocabulary.tokens[kTinyEos].text, "</s>");
  EXPECT_EQ(vocabulary.tokens[kTinyTurnStart].text, "<|im_start|>");
  EXPECT_EQ(vocabulary.tokens[kTinyTurnEnd].text, "<|im_end|>");
  EXPECT_EQ(vocabulary.tokens[kTinyPad].text, "<pad>");
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(vocabulary.tokens[kTinyFirstByte + byte].bytes,
              std::string(1, static_cast<char>(byte)));
  }
}

// llama.cpp aborts the process on a repeated token.
TEST_P(TinyVocabularyTest, NoTwoTokensHaveTheSameText) {
  TinyVocabularyOptions with_padding = options();
  with_padding.n_padding = 20;
  const TinyVocabulary vocabulary = make(with_padding);
  std::set<std::string> texts;
  for (const TinyToken& token : vocabulary.tokens) texts.insert(token.text);
  EXPECT_EQ(texts.size(), vocabulary.tokens.size());
}

TEST_P(TinyVocabularyTest, PaddingComesLastAndPrintsNothing) {
  TinyVocabularyOptions padded = options();
  padded.n_padding = 3;
  const TinyVocabulary vocabulary = make(padded);
  EXPECT_EQ(vocabulary.size(), make(options()).size() + 3);
  EXPECT_EQ(vocabulary.tokens.back().text, "[PAD2]");
  EXPECT_EQ(vocabulary.tokens.back().type, TinyTokenType::kUnused);
  EXPECT_EQ(vocabulary.tokens.back().bytes, "");
}

TEST_P(TinyVocabularyTest, RotationMovesEveryByteAndKeepsThemAll) {
  TinyVocabularyOptions rotated = options();
  rotated.rotate_bytes = 7;
  const TinyVocabulary vocabulary = make(rotated);
  std::set<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) {
    const TinyToken& token = vocabulary.tokens[kTinyFirstByte + byte];
    EXPECT_EQ(token.bytes, std::string(1, static_cast<char>((byte + 7) % 256)));
    bytes.insert(token.bytes);
  }
  EXPECT_EQ(bytes.size(), 256U);
}

TEST_P(TinyVocabularyTest, SwapsExchangeTwoTokensAndNothingElse) {
  TinyVocabularyOptions swapped = options();
  swapped.swaps = {{100, 101}};
  const TinyVocabulary plain = make(options());
  const TinyVocabulary vocabulary = make(swapped);
  for (int id = 0; id < plain.size(); ++id) {
    const int other = id == 100 ? 101 : id == 101 ? 100 : id;
    EXPECT_EQ(vocabulary.tokens[id].text, plain.tokens[other].text) << id;
  }
}

TEST_P(TinyVocabularyTest, RefusesPiecesThatLlamaCppCouldNotLoad) {
  for (const std::vector<std::string>& pieces :
       {std::vector<std::string>{""}, {"the", "the"}, {std::string("a\0b", 3)}, {"<s>x", "<s>x"}}) {
    TinyVocabularyOptions bad = options();
    bad.pieces = pieces;
    const Result<TinyVocabulary> vocabulary = make_tiny_vocabulary(bad);
    ASSERT_FALSE(vocabulary.ok()) << pieces[0];
    EXPECT_EQ(vocabulary.status().code(), StatusCode::kInvalidArgument);
  }
}

TEST_P(TinyVocabularyTest, RefusesSwapsAndPaddingOutOfRange) {
  TinyVocabularyOptions bad_swap = options();
  bad_swap.swaps = {{0, 100000}};
  EXPECT_FALSE(make_tiny_vocabulary(bad_swap).ok());
  TinyVocabularyOptions bad_padding = options();
  bad_padding.n_padding = -1;
  EXPECT_FALSE(make_tiny_vocabulary(bad_padding).ok());
}

TEST(TinyVocabulary, SpmPiecesComeWithThePrefixesThatMergingPassesThrough) {
  TinyVocabularyOptions options;
  options.pieces = {" the", "日本語"};
  const TinyVocabulary vocabulary = make(options);
  EXPECT_TRUE(has_text(vocabulary, "▁t"));
  EXPECT_TRUE(has_text(vocabulary, "▁th"));
  EXPECT_TRUE(has_text(vocabulary, "▁the"));
  EXPECT_TRUE(has_text(vocabulary, "日本"));
  EXPECT_FALSE(has_text(vocabulary, "t"));  // a single character is a byte token
}

TEST(TinyVocabulary, APieceMayBeThePrefixOfAnEarlierOne) {
  TinyVocabularyOptions options;
  options.pieces = {"stop", "st"};
  EXPECT_TRUE(make_tiny_vocabulary(options).ok());
  options.pieces = {"stop", "st", "st"};
  EXPECT_FALSE(make_tiny_vocabulary(options).ok());
}

TEST(TinyVocabulary, BpeSpellsBytesAsGpt2Does) {
  TinyVocabularyOptions options;
  options.tokenizer = TinyTokenizer::kBpe;
  options.pieces = {" the"};
  const TinyVocabulary vocabulary = make(options);
  EXPECT_EQ(vocabulary.tokens[kTinyFirstByte + ' '].text, "Ġ");
  EXPECT_EQ(vocabulary.tokens[kTinyFirstByte + '\n'].text, "Ċ");
  EXPECT_EQ(vocabulary.tokens[kTinyFirstByte + 'A'].text, "A");
  EXPECT_EQ(vocabulary.tokens[kTinyFirstByte + 0xad].text, "Ń");
  EXPECT_EQ(vocabulary.merges, (std::vector<std::string>{"Ġ Ġ", "Ġ t", "Ġt h", "Ġth e"}));
}

TEST(TinyVocabulary, BpeCanMakeAPieceFromAnyTwoTokens) {
  TinyVocabularyOptions options;
  options.tokenizer = TinyTokenizer::kBpe;
  options.pieces = {"the", " the"};
  EXPECT_EQ(make(options).merges, (std::vector<std::string>{"Ġ Ġ", "t h", "th e", "Ġ t", "Ġt h",
                                                            "Ġ th", "Ġth e", "Ġ the"}));
}

}  // namespace
}  // namespace outrider::testing
