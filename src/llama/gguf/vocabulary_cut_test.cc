// What is left of a vocabulary, and that it cuts texts as the whole one does.
#include "llama/gguf/vocabulary_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "llama/gguf/draft_writer.h"
#include "testing/gguf_damage.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"
#include "testing/tiny_runner.h"

namespace outrider::gguf {
namespace {

using testing::TinyRunner;
using testing::TinyTokenizer;

constexpr const char* kText =
    "Once upon a time there was and and the ing in 12 caf\xc3\xa9 \xe6\x97\xa5. \n\nEND ###";

FileVocabulary small(FileVocabulary::Kind kind) {
  FileVocabulary v;
  v.kind = kind;
  v.tokens = {"<unk>", "<|end|>", "t", "h", "e", "he", "the", "th", "x", "xt", "<|odd|>"};
  v.types = {2, 3, 1, 1, 1, 1, 1, 1, 1, 1, 3};
  v.scores = {0, 0, -9, -9, -9, -1, -3, -2, -9, -4, 0};
  if (kind == FileVocabulary::Kind::kBytePairs) {
    v.scores.clear();
    v.merges = {"h e", "t h", "t he", "x t"};
  }
  v.named = {1};
  return v;
}

TEST(TokenSelection, ATokenIsKeptWithAllThatItIsBuiltOf) {
  for (const auto kind : {FileVocabulary::Kind::kSentencePiece, FileVocabulary::Kind::kBytePairs}) {
    const FileVocabulary v = small(kind);
    TokenSelection selection(v);
    selection.keep(6);  // "the" is t + he, he is h + e; "th" is no part of it
    const std::vector<Token> kept = selection.kept();
    for (const Token token : {0, 1, 2, 3, 4, 5, 6}) {
      EXPECT_TRUE(std::binary_search(kept.begin(), kept.end(), token)) << token;
    }
    EXPECT_FALSE(std::binary_search(kept.begin(), kept.end(), 7)) << "not on the way to it";
    EXPECT_FALSE(std::binary_search(kept.begin(), kept.end(), 9));
    EXPECT_FALSE(std::binary_search(kept.begin(), kept.end(), 10)) << "a control token unused";
    EXPECT_EQ(selection.size(), kept.size());
  }
}

TEST(TokenSelection, TheChatTemplatesControlTokensStayAndFillingTakesTheFirstIds) {
  FileVocabulary v = small(FileVocabulary::Kind::kSentencePiece);
  v.chat_template = "{{ message }}<|odd|>";
  TokenSelection selection(v);
  EXPECT_EQ(selection.kept(), (std::vector<Token>{0, 1, 10}));
  selection.fill(5);
  EXPECT_EQ(selection.kept(), (std::vector<Token>{0, 1, 2, 3, 10}));
  selection.fill(2);
  EXPECT_EQ(selection.size(), 5U) << "nothing is taken back";
  selection.fill(100);
  EXPECT_EQ(selection.size(), v.tokens.size());
}

TEST(CutMetadata, NamesKeepTheirTokensAndMergesOnlyMakeWhatIsThere) {
  FileVocabulary v = small(FileVocabulary::Kind::kBytePairs);
  const Handle metadata(gguf_init_empty());
  gguf_set_val_u32(metadata.get(), "tokenizer.ggml.eos_token_id", 1);
  gguf_set_val_u32(metadata.get(), "tokenizer.ggml.mask_token_id", 10);
  const std::int32_t suppressed[] = {10, 6};
  gguf_set_arr_data(metadata.get(), "tokenizer.ggml.suppress_tokens", GGUF_TYPE_INT32, suppressed,
                    2);
  const std::vector<Token> kept = {1, 2, 3, 4, 5, 6};
  cut_metadata(metadata.get(), v, kept);
  const auto find = [&](const char* key) { return gguf_find_key(metadata.get(), key); };
  EXPECT_EQ(gguf_get_val_u32(metadata.get(), find("tokenizer.ggml.eos_token_id")), 0U);
  EXPECT_LT(find("tokenizer.ggml.mask_token_id"), 0) << "it is not there any more";
  const std::int64_t left = find("tokenizer.ggml.suppress_tokens");
  ASSERT_EQ(gguf_get_arr_n(metadata.get(), left), 1U);
  EXPECT_EQ(static_cast<const std::int32_t*>(gguf_get_arr_data(metadata.get(), left))[0], 5);
  const std::int64_t merges = find("tokenizer.ggml.merges");
  ASSERT_EQ(gguf_get_arr_n(metadata.get(), merges), 2U);
  EXPECT_STREQ(gguf_get_arr_str(metadata.get(), merges, 0), "h e");
  EXPECT_STREQ(gguf_get_arr_str(metadata.get(), merges, 1), "t he");
}

// The token's spelling in the file tells the same token in both.
std::vector<std::string> cut(const TinyRunner& runner, std::string_view text) {
  std::vector<std::string> tokens;
  for (const Token token : runner.tokenize(text, true, true)) {
    tokens.emplace_back(llama_vocab_get_text(runner.vocab(), token));
  }
  return tokens;
}

// Cuts the vocabulary of the model at `path` to what `text` needs, and compares.
void expect_same_cut(const std::string& path, std::string_view text, std::size_t least_left_out) {
  const testing::TempDir dir;
  testing::silence_llama_log();
  testing::TinyRunnerOptions options;
  options.n_ctx = 64;
  Result<TinyRunner> whole = TinyRunner::load(path, options);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const Result<GgufReader> file = GgufReader::open(path);
  ASSERT_TRUE(file.ok());
  const Result<FileVocabulary> vocabulary = FileVocabulary::read(*file);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  TokenSelection selection(*vocabulary);
  for (const Token token : whole->tokenize(text, true, true)) selection.keep(token);
  DraftRecipe recipe;
  recipe.tokens = selection.kept();
  ASSERT_LT(recipe.tokens.size() + least_left_out, vocabulary->tokens.size());
  const Status written = write_draft(path, dir.file("cut.gguf"), recipe);
  ASSERT_TRUE(written.ok()) << written.message();
  Result<TinyRunner> less = TinyRunner::load(dir.file("cut.gguf"), options);
  ASSERT_TRUE(less.ok()) << less.status().message();
  EXPECT_EQ(less->n_vocab(), static_cast<int>(recipe.tokens.size()));
  EXPECT_EQ(cut(*less, text), cut(*whole, text));
  // Other texts are cut otherwise, but nothing is lost.
  const std::string other = "Zebra quartz, 7 jinxed \xe6\x9c\xac!";
  EXPECT_EQ(less->detokenize(less->tokenize(other, false, false)), other);
}

TEST(VocabularyCut, ATextWhoseTokensAreKeptIsCutAsBefore) {
  const testing::TempDir dir;
  for (const TinyTokenizer tokenizer : {TinyTokenizer::kSpm, TinyTokenizer::kBpe}) {
    testing::TinyModelOptions options;
    options.vocabulary.tokenizer = tokenizer;
    options.vocabulary.n_padding = 20;
    ASSERT_TRUE(testing::write_tiny_gguf(dir.file("tiny.gguf"), options).ok());
    expect_same_cut(dir.file("tiny.gguf"), kText, 20);
  }
}

// llama.cpp reads scores of either type.
TEST(VocabularyCut, IntegerScoresAreCutLikeOthersAndAreNoIds) {
  const testing::TempDir dir;
  testing::TinyModelOptions options;
  options.vocabulary.n_padding = 20;
  for (const TinyTokenizer tokenizer : {TinyTokenizer::kSpm, TinyTokenizer::kBpe}) {
    options.vocabulary.tokenizer = tokenizer;
    ASSERT_TRUE(testing::write_tiny_gguf(dir.file("tiny.gguf"), options).ok());
    const auto whole_scores = [](gguf_context* gguf) {
      const std::int64_t id = gguf_find_key(gguf, "tokenizer.ggml.tokens");
      std::vector<std::int32_t> scores(gguf_get_arr_n(gguf, id));
      for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = -static_cast<std::int32_t>(i);
      gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_INT32, scores.data(),
                        scores.size());
    };
    ASSERT_TRUE(testing::copy_changed(dir.file("tiny.gguf"), dir.file("whole.gguf"), whole_scores,
                                      /*left_out=*/"")
                    .ok());
    expect_same_cut(dir.file("whole.gguf"), kText, 20);

    const Result<GgufReader> file = GgufReader::open(dir.file("whole.gguf"));
    const Result<FileVocabulary> vocabulary = FileVocabulary::read(*file);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
    const Handle metadata(gguf_init_empty());
    gguf_set_kv(metadata.get(), file->metadata());
    const std::vector<Token> kept = {0, 1, 5, 9};
    cut_metadata(metadata.get(), *vocabulary, kept);
    const std::int64_t left = gguf_find_key(metadata.get(), "tokenizer.ggml.scores");
    ASSERT_EQ(gguf_get_arr_type(metadata.get(), left), GGUF_TYPE_INT32);
    ASSERT_EQ(gguf_get_arr_n(metadata.get(), left), 4U);
    const auto* scores = static_cast<const std::int32_t*>(gguf_get_arr_data(metadata.get(), left));
    EXPECT_EQ(std::vector<std::int32_t>(scores, scores + 4),
              (std::vector<std::int32_t>{0, -1, -5, -9}));
  }
}

TEST(RealModelVocabularyCut, TextsAreCutAsBeforeByRealTokenizers) {
  const char* folder = std::getenv("OUTRIDER_MODELS_DIR");
  if (folder == nullptr) GTEST_SKIP() << "OUTRIDER_MODELS_DIR is not set; see ./dev models";
  const std::string text =
      "<|im_start|>user\nWrite a function that counts words.<|im_end|>\n"
      "def count_words(path: str) -> dict[str, int]:\n    \"\"\"How often?\"\"\"\n"
      "It's the 1st of 23,456 caf\xc3\xa9s in \xe6\x9d\xb1\xe4\xba\xac; internationally "
      "renowned,\n\n\tanti-inflammatory... \xf0\x9f\x8c\x8d!";
  expect_same_cut(std::string(folder) + "/SmolLM2-135M-Instruct-Q4_1.gguf", text, 40000);
  expect_same_cut(std::string(folder) + "/gemma-3-270m-q4_k_m.gguf", text, 200000);
}

TEST(VocabularyCut, OtherTokenizersAreRefusedByName) {
  const testing::TempDir dir;
  ASSERT_TRUE(testing::write_tiny_gguf(dir.file("tiny.gguf"), {}).ok());
  const Result<GgufReader> good = GgufReader::open(dir.file("tiny.gguf"));
  ASSERT_TRUE(good.ok());
  Handle metadata(gguf_init_empty());
  gguf_set_kv(metadata.get(), good->metadata());
  gguf_set_val_str(metadata.get(), "tokenizer.ggml.model", "t5");
  std::string bytes;
  const Status written =
      write_gguf(metadata.get(), {}, {}, [&bytes](std::span<const std::uint8_t> more) {
        bytes.append(reinterpret_cast<const char*>(more.data()), more.size());
        return Status();
      });
  ASSERT_TRUE(written.ok());
  testing::write_bytes(dir.file("t5.gguf"), bytes);
  const Result<GgufReader> file = GgufReader::open(dir.file("t5.gguf"));
  ASSERT_TRUE(file.ok());
  const Result<FileVocabulary> vocabulary = FileVocabulary::read(*file);
  ASSERT_FALSE(vocabulary.ok());
  EXPECT_EQ(vocabulary.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(vocabulary.status().message().find("'t5'"), std::string::npos);
}

}  // namespace
}  // namespace outrider::gguf
