#include "llama/vocabulary/vocab_match.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "llama/files/model_file.h"
#include "testing/gguf_damage.h"
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

TEST_F(VocabMatchTest, UpTo128TokensOfPaddingAreTolerated) {
  testing::TinyVocabularyOptions padded;
  padded.n_padding = 128;
  VocabularyMatch result = match({}, padded);
  EXPECT_EQ(result.kind, Kind::kPadded) << result.message;
  expect_mentions(result, "the sizes are");
  EXPECT_TRUE(result.usable());
  result = match(padded, {});
  EXPECT_EQ(result.kind, Kind::kPadded) << result.message;

  padded.n_padding = 129;
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

// Qwen2.5 ends a text with <|endoftext|>, its Instruct with <|im_end|>.
TEST_F(VocabMatchTest, AnotherEndOfTextThatNobodyAddsIsNoOtherVocabulary) {
  target_ = load("target.gguf", {});
  const auto with = [&](const std::string& name, bool adds, const char* role) {
    const auto change = [&](gguf_context* gguf) {
      gguf_set_val_u32(gguf, ("tokenizer.ggml." + std::string(role) + "_token_id").c_str(),
                       testing::kTinyTurnStart);
      gguf_set_val_bool(gguf, "tokenizer.ggml.add_eos_token", adds);
    };
    EXPECT_TRUE(testing::copy_changed(dir_.file("target.gguf"), dir_.file(name), change, "").ok());
    return ModelFile::load(dir_.file(name), 0, true, LoadHooks{}).value();
  };
  for (const char* role : {"eos", "eot"}) {
    draft_ = with(std::string(role) + ".gguf", /*adds=*/false, role);
    const VocabularyMatch other = match_vocabularies(target_->vocabulary(), draft_->vocabulary());
    EXPECT_EQ(other.kind, Kind::kPadded) << other.message;
    expect_mentions(other, role == std::string("eos") ? "EOS is 2 and 259" : "EOT is 260 and 259");
  }
  const std::shared_ptr<ModelFile> one = with("one.gguf", /*adds=*/true, "eos");
  const std::shared_ptr<ModelFile> two = with("two.gguf", /*adds=*/true, "eot");
  EXPECT_EQ(match_vocabularies(one->vocabulary(), two->vocabulary()).kind, Kind::kDifferent)
      << "both add an end of text, and it is another one";
  // BOS likewise.
  testing::TinyVocabularyOptions without;
  without.add_bos = false;
  (void)load("without.gguf", without);
  const auto other_bos = [](gguf_context* gguf) {
    gguf_set_val_u32(gguf, "tokenizer.ggml.bos_token_id", testing::kTinyTurnStart);
  };
  for (const char* name : {"target.gguf", "without.gguf"}) {
    ASSERT_TRUE(testing::copy_changed(dir_.file(name), dir_.file("bos.gguf"), other_bos, "").ok());
    target_ = ModelFile::load(dir_.file(name), 0, true, LoadHooks{}).value();
    draft_ = ModelFile::load(dir_.file("bos.gguf"), 0, true, LoadHooks{}).value();
    const VocabularyMatch bos = match_vocabularies(target_->vocabulary(), draft_->vocabulary());
    EXPECT_EQ(bos.usable(), name == std::string("without.gguf")) << bos.message;
  }
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
