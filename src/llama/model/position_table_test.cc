// Models whose positions are rows of a table: ggml ends the process for a position behind it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "llama/files/gguf_header.h"
#include "llama/model/context_params.h"
#include "llama/model/memory.h"
#include "testing/llama_fixture.h"
#include "testing/tiny_gguf_tensors.h"
#include "testing/tiny_metadata.h"

namespace outrider::llama {
namespace {

constexpr int kPositions = 32;
constexpr int kWidth = 64;
constexpr int kHidden = 128;

// A GPT-2 of one layer with one head.
Status write_gpt2(const std::string& path) {
  const Result<testing::TinyVocabulary> vocabulary = testing::make_tiny_vocabulary({});
  if (!vocabulary.ok()) return vocabulary.status();
  const testing::GgufHandle metadata(gguf_init_empty());
  gguf_set_val_str(metadata.get(), "general.architecture", "gpt2");
  gguf_set_val_str(metadata.get(), "general.type", "model");
  const auto set = [&](const char* key, std::uint32_t value) {
    gguf_set_val_u32(metadata.get(), (std::string("gpt2.") + key).c_str(), value);
  };
  set("block_count", 1);
  set("context_length", kPositions);
  set("embedding_length", kWidth);
  set("feed_forward_length", kHidden);
  set("attention.head_count", 1);
  gguf_set_val_f32(metadata.get(), "gpt2.attention.layer_norm_epsilon", 1e-5F);
  testing::set_tiny_vocabulary(metadata.get(), *vocabulary);

  testing::TinyTensors tensors(testing::WeightType::kF32, /*seed=*/1);
  const auto add = [&](const std::string& name, int columns, int rows) {
    tensors.gaussian(name + ".weight", columns, rows, 1.0 / std::sqrt(columns));
    tensors.plain(name + ".bias", rows, 0, 0.0);
  };
  const auto add_norm = [&](const std::string& name) {
    tensors.plain(name + ".weight", kWidth, 0, 1.0);
    tensors.plain(name + ".bias", kWidth, 0, 0.0);
  };
  tensors.gaussian("token_embd.weight", kWidth, vocabulary->size(), 1.0);
  tensors.gaussian("position_embd.weight", kWidth, kPositions, 1.0);
  add_norm("blk.0.attn_norm");
  add("blk.0.attn_qkv", kWidth, 3 * kWidth);
  add("blk.0.attn_output", kWidth, kWidth);
  add_norm("blk.0.ffn_norm");
  add("blk.0.ffn_up", kWidth, kHidden);
  add("blk.0.ffn_down", kHidden, kWidth);
  add_norm("output_norm");
  return tensors.write(path, metadata.get());
}

class PositionTableTest : public testing::TinyModelTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_gpt2(path_).ok());
    load_file(path_);
  }

  testing::TempDir dir_of_table_;
  const std::string path_ = dir_of_table_.file("gpt2.gguf");
};

TEST_F(PositionTableTest, AContextEndsWhereTheTableDoes) {
  EXPECT_TRUE(file().facts().position_table);
  for (const std::int32_t n_ctx : {0, kPositions, kPositions + 1, 2 * kPositions, 4096}) {
    const std::unique_ptr<LlamaModel> model = make({.n_ctx = n_ctx});
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->capabilities().n_ctx, kPositions) << n_ctx;
    ASSERT_EQ(model->notes().size(), n_ctx > kPositions ? 1U : 0U) << n_ctx;
    if (n_ctx <= kPositions) continue;
    EXPECT_NE(model->notes()[0].find("is 32 tokens, not " + std::to_string(n_ctx)),
              std::string::npos)
        << model->notes()[0];
  }
  EXPECT_EQ(make({.n_ctx = 16})->capabilities().n_ctx, 16);
}

TEST_F(PositionTableTest, ATokenBehindTheTableIsAnErrorAndEndsNoProcess) {
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 2 * kPositions});
  ASSERT_NE(model, nullptr);
  testing::prefill(*model, 0, random_text(kPositions - 1, test_seed()));
  EXPECT_FALSE(testing::step(*model, 0, 7).empty());
  EXPECT_EQ(model->room(0), 0);
  const TokenTree root(7);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
  EXPECT_EQ(model->evaluate({&item, 1}).code(), StatusCode::kResourceExhausted);
}

TEST_F(PositionTableTest, MemoryIsEstimatedForWhatTheTableHas) {
  const Result<GgufHeader> header = read_gguf_header(path_);
  ASSERT_TRUE(header.ok()) << header.status().message();
  const auto cache_of = [&](std::int32_t n_ctx) {
    const ModelOptions options{.path = path_, .n_ctx = n_ctx, .n_threads = 1};
    const Result<MemoryEstimate> bytes = estimate_memory_from_header(options, {}, *header);
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    return bytes.ok() ? bytes->cache : 0;
  };
  EXPECT_GT(cache_of(kPositions), 0U);
  EXPECT_EQ(cache_of(4096), cache_of(kPositions));
}

TEST(PositionTable, WithoutOneAContextMayBeLongerThanWhatAModelWasTrainedWith) {
  const ModelOptions options{.n_ctx = 64, .n_threads = 1};
  for (const bool table : {false, true}) {
    const Result<ContextSizes> sizes =
        plan_sizes(options, {}, {.n_ctx_train = 32, .position_table = table});
    ASSERT_TRUE(sizes.ok()) << sizes.status().message();
    EXPECT_EQ(sizes->n_ctx, table ? 32 : 64);
    EXPECT_EQ(sizes->n_cells, sizes->n_ctx + 256);
  }
}

}  // namespace
}  // namespace outrider::llama
