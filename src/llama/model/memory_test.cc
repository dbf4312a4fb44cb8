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

TEST_F(MemoryTest, ALongerContextAndWiderTypesTakeMore) {
  // With 256 cells to spare: 1,024 and 2,048.
  const MemoryEstimate small = estimate({.n_ctx = 768});
  EXPECT_EQ(estimate({.n_ctx = 1792}).cache, 2 * small.cache);
  EXPECT_EQ(estimate({.n_ctx = 768}, {.type_k = "q8_0", .type_v = "q8_0"}).cache * 64,
            small.cache * 34);
  EXPECT_EQ(estimate({.n_ctx = 2048}).weights, small.weights);
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
