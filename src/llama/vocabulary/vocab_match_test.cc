#include "llama/vocabulary/vocab_match.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "llama/files/model_file.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::llama {
namespace {

using Kind = VocabularyMatch::Kind;

class VocabMatchTest : public ::testing::Test {
 protected:
  VocabularyMatch match(const testing::TinyVocabularyOptions& target,
                        const testing::TinyVocabularyOptions& draft) {
    target_ = load("target.gguf", target);
    draft_ = load("draft.gguf", draft);
    return match_vocabularies(target_->vocabulary(), draft_->vocabulary());
  }

  std::shared_ptr<ModelFile> load(const std::string& name,
                                  const testing::TinyVocabularyOptions& vocabulary) {
    testing::TinyModelOptions options;
    options.vocabulary = vocabulary;
    const Status status = testing::write_tiny_gguf(dir_.file(name), options);
    EXPECT_TRUE(status.ok()) << status.message();
    return ModelFile::load(dir_.file(name), 0, true, LoadHooks{}).value();
  }

  testing::TempDir dir_;
  std::shared_ptr<ModelFile> target_;
  std::shared_ptr<ModelFile> draft_;
};

void expect_mentions(const VocabularyMatch& match, const std::string& text) {
  EXPECT_NE(match.message.find(text), std::string::npos) << match.message;
}

TEST_F(VocabMatchTest, TheSameVocabularyIsIdentical) {
  const VocabularyMatch result = match({}, {});
  EXPECT_EQ(result.kind, Kind::kIdentical) << result.message;
  EXPECT_EQ(result.message, "");
  EXPECT_TRUE(result.usable());
}

TEST_F(VocabMatchTest, UpToAHundredTokensOfPaddingAreTolerated) {
  testing::TinyVocabularyOptions padded;
  padded.n_padding = 100;
  VocabularyMatch result = match({}, padded);
  EXPECT_EQ(result.kind, Kind::kPadded) << result.message;
  expect_mentions(result, "the sizes are");
  EXPECT_TRUE(result.usable());
  result = match(padded, {});
  EXPECT_EQ(result.kind, Kind::kPadded) << result.message;

  padded.n_padding = 101;
  result = match({}, padded);
  EXPECT_EQ(result.kind, Kind::kDifferent);
  expect_mentions(result, std::to_string(target_->vocabulary().size()));
  expect_mentions(result, std::to_string(draft_->vocabulary().size()));
}

TEST_F(VocabMatchTest, DifferentTokensAreNamedWithBothTexts) {
  testing::TinyVocabularyOptions swapped;
  swapped.swaps = {{testing::kTinyFirstByte + 'a', testing::kTinyFirstByte + 'b'}};
  const VocabularyMatch result = match({}, swapped);
  EXPECT_EQ(result.kind, Kind::kDifferent);
  expect_mentions(result, "2 common ids differ in text: ");
  expect_mentions(result,
                  std::to_string(testing::kTinyFirstByte + 'a') + " (\"<0x61>\" and \"<0x62>\")");
  EXPECT_FALSE(result.usable());
}

TEST_F(VocabMatchTest, NoMoreThanFiveTokensAreNamed) {
  testing::TinyVocabularyOptions rotated;
  rotated.rotate_bytes = 1;
  const VocabularyMatch result = match({}, rotated);
  EXPECT_EQ(result.kind, Kind::kDifferent);
  std::size_t named = 0;
  for (std::size_t at = 0; (at = result.message.find("<0x", at)) != std::string::npos; ++at) {
    ++named;
  }
  EXPECT_EQ(named, 10u) << result.message;
  expect_mentions(result, ", ...");
}

TEST_F(VocabMatchTest, TheSpellingOfTheFirstFiveIdsMayDiffer) {
  testing::TinyVocabularyOptions swapped;
  swapped.swaps = {{testing::kTinyFirstByte, testing::kTinyFirstByte + 1}};  // ids 3 and 4
  const VocabularyMatch result = match({}, swapped);
  EXPECT_EQ(result.kind, Kind::kPadded) << result.message;
  expect_mentions(result, "first 5 ids");
}

TEST_F(VocabMatchTest, AnotherTokenizerIsDifferent) {
  testing::TinyVocabularyOptions bpe;
  bpe.tokenizer = testing::TinyTokenizer::kBpe;
  const VocabularyMatch result = match({}, bpe);
  EXPECT_EQ(result.kind, Kind::kDifferent);
  expect_mentions(result, "SentencePiece and BPE");
}

TEST_F(VocabMatchTest, AddingBosDifferentlyIsDifferent) {
  testing::TinyVocabularyOptions without;
  without.add_bos = false;
  const VocabularyMatch result = match({}, without);
  EXPECT_EQ(result.kind, Kind::kDifferent);
  expect_mentions(result, "only the target adds BOS");
}

}  // namespace
}  // namespace outrider::llama
