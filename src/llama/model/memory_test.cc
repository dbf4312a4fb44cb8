#include "llama/model/memory.h"

#include <gtest/gtest.h>

#include <string>

#include "testing/llama_fixture.h"

namespace outrider::llama {
namespace {

class MemoryTest : public testing::TinyModelTest {
 protected:
  MemoryEstimate estimate(ModelOptions options, const ContextSettings& settings = {}) {
    options.path = file().facts().path;
    options.n_threads = 1;
    Result<MemoryEstimate> result = estimate_memory(options, settings);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? *result : MemoryEstimate{};
  }
};

TEST_F(MemoryTest, TheEstimateIsWhatTheModelThenTakes) {
  const ModelOptions options{.n_ctx = 1000, .n_sequences = 2};
  const MemoryEstimate bytes = estimate(options);
  const std::unique_ptr<LlamaModel> model = make(options);
  // 512 cells to spare, rounded up to 2,560.
  EXPECT_EQ(bytes.cache, 2560 * file().facts().kv_bytes_per_token("bf16", "f16"));
  EXPECT_EQ(model->settings().n_cells, 2560);
  EXPECT_EQ(bytes.weights, file().facts().size_bytes);
  EXPECT_GT(bytes.compute, 0u);
  EXPECT_EQ(bytes.total(), bytes.weights + bytes.cache + bytes.compute);
}

TEST_F(MemoryTest, TheHeaderAloneGivesNearlyTheSame) {
  for (const std::int32_t n_ctx : {256, 1000, 4096}) {
    ModelOptions options{.n_ctx = n_ctx, .n_sequences = 2};
    const MemoryEstimate bytes = estimate(options);
    options.path = file().facts().path;
    options.n_threads = 1;
    const Result<GgufHeader> header = read_gguf_header(options.path);
    ASSERT_TRUE(header.ok());
    const Result<MemoryEstimate> quick = estimate_memory_from_header(options, {}, *header);
    ASSERT_TRUE(quick.ok()) << quick.status().message();
    EXPECT_EQ(quick->weights, bytes.weights);
    EXPECT_EQ(quick->cache, bytes.cache);
    EXPECT_GT(quick->compute, 0u);
  }
}

TEST_F(MemoryTest, StatesOfRecurrentLayersAreCountedAsLlamaMakesThem) {
  for (const testing::TinyArchitecture architecture :
       {testing::TinyArchitecture::kShortConv, testing::TinyArchitecture::kMamba}) {
    load({.architecture = architecture, .n_layer = 4});
    const Result<GgufHeader> header = read_gguf_header(file().facts().path);
    ASSERT_TRUE(header.ok());
    std::uint64_t with_one = 0;
    for (const std::int32_t n_sequences : {1, 8}) {
      SCOPED_TRACE(std::string(testing::tiny_architecture_name(architecture)) + " with " +
                   std::to_string(n_sequences));
      const ModelOptions options{
          .path = file().facts().path, .n_ctx = 512, .n_sequences = n_sequences, .n_threads = 1};
      const Result<MemoryEstimate> quick = estimate_memory_from_header(options, {}, *header);
      ASSERT_TRUE(quick.ok()) << quick.status().message();
      EXPECT_EQ(quick->cache, estimate(options).cache);
      const std::unique_ptr<LlamaModel> model = make(options);
      const std::uint64_t states = file().facts().states.bytes(n_sequences);
      EXPECT_EQ(model->cache_bytes(), static_cast<std::uint64_t>(model->settings().n_cells) *
                                              file().facts().kv_bytes_per_token("bf16", "f16") +
                                          states);
      if (n_sequences == 1) with_one = states;
      EXPECT_GT(with_one, 0u);
      EXPECT_EQ(states, with_one * static_cast<std::uint64_t>(n_sequences));
    }
  }
}

TEST_F(MemoryTest, ALongerContextAndWiderTypesTakeMore) {
  // With 256 cells to spare: 1,024 and 2,048.
  const MemoryEstimate small = estimate({.n_ctx = 768});
  EXPECT_EQ(estimate({.n_ctx = 1792}).cache, 2 * small.cache);
  EXPECT_EQ(estimate({.n_ctx = 768}, {.type_k = "q8_0", .type_v = "q8_0"}).cache * 64,
            small.cache * 34);
  EXPECT_EQ(estimate({.n_ctx = 2048}).weights, small.weights);
}

// Who knows llama.cpp's own cache would wonder.
TEST_F(MemoryTest, ACacheThatDoesNotFitSaysThatWindowsMakeItNoSmaller) {
  for (const bool windowed : {false, true}) {
    load({.architecture = windowed ? testing::TinyArchitecture::kSlidingWindow
                                   : testing::TinyArchitecture::kLlama,
          .n_layer = 16});
    const Status refused = create({.n_ctx = 2'000'000'000}).status();
    EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused.message();
    EXPECT_NE(refused.message().find("for its cache"), std::string::npos) << refused.message();
    EXPECT_EQ(refused.message().find("sliding window") != std::string::npos, windowed)
        << refused.message();
  }
}

TEST_F(MemoryTest, WhatCannotBeOpenedHasNoEstimate) {
  EXPECT_EQ(estimate_memory({.path = "/no/such.gguf"}, {}).status().code(), StatusCode::kNotFound);
  const Status type =
      estimate_memory({.path = file().facts().path, .n_ctx = 64}, {.type_k = "f17"}).status();
  EXPECT_EQ(type.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(type.message().find("'f17'"), std::string::npos) << type.message();
  EXPECT_EQ(estimate_memory({.path = file().facts().path, .n_ctx = -4}, {}).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace outrider::llama
