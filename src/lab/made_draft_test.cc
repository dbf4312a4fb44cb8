// Drafts that were made draft: the same text, at every temperature.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "backend/llama_loader.h"
#include "draft/base/drafter_kind.h"
#include "lab/draft_pieces.h"
#include "lab/draft_search.h"
#include "lab/tiny_options_test.h"
#include "llama/gguf/draft_writer.h"
#include "run/harness.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::lab {
namespace {

using testing::TinyModelOptions;

struct MadeCase {
  const char* name;
  testing::TinyTokenizer tokenizer;
  DraftMake make;
};

class MadeDraftTest : public ::testing::TestWithParam<MadeCase> {};

// The finished file is a draft like any other.
TEST_P(MadeDraftTest, TheTextIsThatOfPlainDecodingAndSomeGuessesHold) {
  const testing::TempDir dir;
  TinyModelOptions options;
  options.n_layer = 4;
  options.eos_bias = -6.0f;
  options.vocabulary.tokenizer = GetParam().tokenizer;
  if (options.vocabulary.tokenizer == testing::TinyTokenizer::kBpe) {
    options.vocabulary.add_bos = false;
  }
  const std::string target_path = dir.file("target.gguf");
  ASSERT_TRUE(testing::write_tiny_gguf(target_path, options).ok());
  const DraftMake& make = GetParam().make;
  gguf::DraftRecipe recipe{.type = make.type};
  if (make.n_tokens > 0) {
    const auto tokens = DraftTokens::create(target_path, {"Once upon a time the END ###"}, {});
    ASSERT_TRUE(tokens.ok()) << tokens.status().message();
    recipe.tokens = (*tokens)->chosen(make.n_tokens);
    ASSERT_LT(static_cast<std::int32_t>(recipe.tokens.size()), (*tokens)->size());
  }
  for (std::int32_t layer = 0; layer < 4 && make.n_left_out > 0; ++layer) {
    if (layer < make.first_left_out || layer >= make.first_left_out + make.n_left_out) {
      recipe.layers.push_back(layer);
    }
  }
  ASSERT_TRUE(gguf::write_draft(target_path, dir.file("draft.gguf"), recipe).ok());

  LlamaLoader loader(
      LlamaLoaderOptions{.probe_budget_ms = 100, .cache_folder = std::filesystem::path()});
  Result<std::unique_ptr<Runtime>> runtime =
      Runtime::create({.slots = 1, .reuse_prefix = false}, loader);
  ASSERT_TRUE(runtime.ok());
  ASSERT_TRUE((*runtime)->load(ModelRole::kTarget, tiny_options(target_path)).ok());
  ASSERT_TRUE((*runtime)->load(ModelRole::kDraft, tiny_options(dir.file("draft.gguf"))).ok());
  ASSERT_TRUE((*runtime)->wait_loaded(-1));
  const Status loaded = (*runtime)->status().draft.error;
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  const std::shared_ptr<const Target> target = (*runtime)->target();
  const Harness harness{.runtime = **runtime, .target = *target};
  std::int64_t accepted = 0;
  std::int64_t drafted = 0;
  for (const float temperature : {0.0f, 1.0f}) {
    for (std::int64_t seed = 1; seed <= 4; ++seed) {
      CompletionRequest request;
      request.prompt = {std::string("Once upon a time")};
      request.sampling.temperature = temperature;
      request.seed = seed;
      request.max_tokens = 40;
      request.width = 4;
      request.drafters.chains = {{std::string(kDraftModelName)}};
      const Result<Completion> with_draft = complete(harness, request);
      request.speculative = false;
      const Result<Completion> plain = complete(harness, request);
      ASSERT_TRUE(with_draft.ok() && plain.ok());
      EXPECT_EQ(with_draft->tokens, plain->tokens) << "T " << temperature << ", seed " << seed;
      accepted += with_draft->speculation.accepted;
      drafted += with_draft->speculation.drafted;
    }
  }
  EXPECT_GT(drafted, 0);
  EXPECT_GT(accepted, 0) << "of " << drafted;
}

INSTANTIATE_TEST_SUITE_P(
    Makes, MadeDraftTest,
    ::testing::Values(
        MadeCase{"AsItIs", testing::TinyTokenizer::kSpm, {}},
        MadeCase{"OtherType", testing::TinyTokenizer::kSpm, {.type = "q4_0"}},
        MadeCase{"FewerTokens", testing::TinyTokenizer::kSpm, {.n_tokens = 1}},
        MadeCase{"FewerBytePairs", testing::TinyTokenizer::kBpe, {.n_tokens = 1}},
        MadeCase{
            "FewerLayers", testing::TinyTokenizer::kSpm, {.first_left_out = 1, .n_left_out = 1}},
        MadeCase{"All",
                 testing::TinyTokenizer::kBpe,
                 {.type = "q5_0", .n_tokens = 1, .first_left_out = 2, .n_left_out = 1}}),
    [](const ::testing::TestParamInfo<MadeCase>& instance) {
      return std::string(instance.param.name);
    });

}  // namespace
}  // namespace outrider::lab
