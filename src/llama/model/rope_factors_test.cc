#include "llama/files/rope_factors.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "llama/base/handles.h"
#include "llama/model/llama_model.h"
#include "testing/llama_fixture.h"

namespace outrider::llama {
namespace {

using testing::Row;
using testing::step;

class RopeFactorsTest : public testing::TinyModelTest {
 protected:
  static constexpr std::int32_t kShort = 512;

  void SetUp() override {
    load({.n_ctx_train = 2048, .short_context = kShort});
    text_ = random_text(100, 1);
  }

  // What llama.cpp says behind text_ in a context of its own.
  Row llamas(std::uint32_t n_ctx) const {
    llama_model_params how = llama_model_default_params();
    how.n_gpu_layers = 0;
    how.use_extra_bufts = false;
    const ModelHandle model(llama_model_load_from_file(file().facts().path.c_str(), how));
    llama_context_params params = llama_context_default_params();
    params.n_ctx = n_ctx;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    params.type_k = GGML_TYPE_BF16;
    params.type_v = GGML_TYPE_F16;
    params.n_threads = 1;
    params.n_threads_batch = 1;
    const ContextHandle context(llama_init_from_model(model.get(), params));
    for (Token token : text_) {
      EXPECT_EQ(llama_decode(context.get(), llama_batch_get_one(&token, 1)), 0);
    }
    const float* row = llama_get_logits_ith(context.get(), 0);
    return Row(row, row + file().facts().n_vocab);
  }

  Row ours(std::int32_t n_ctx, std::int32_t n_sequences) const {
    const ModelOptions options{.n_ctx = n_ctx,
                               .n_sequences = n_sequences,
                               .n_threads = 1,
                               .n_gpu_layers = 0,
                               .kernels = KernelChoice::kStock};
    const Result<std::shared_ptr<ModelFile>> file = ModelFile::load(
        this->file().facts().path, file_options(options, /*extra_bufts=*/false), LoadHooks{});
    EXPECT_TRUE(file.ok()) << file.status().message();
    const Result<std::unique_ptr<LlamaModel>> model = LlamaModel::create(*file, options, {});
    EXPECT_TRUE(model.ok()) << model.status().message();
    Row row;
    for (const Token token : text_) row = step(**model, 0, token);
    return row;
  }

  std::vector<Token> text_;
};

// All of them have more than 512 cells.
TEST_F(RopeFactorsTest, FollowTheTokensOfASequenceNotTheCells) {
  const Row short_row = llamas(kShort);
  const Row long_row = llamas(2 * kShort);
  ASSERT_NE(short_row, long_row);
  EXPECT_EQ(ours(kShort, 1), short_row);
  EXPECT_EQ(ours(kShort, 4), short_row);
  EXPECT_EQ(ours(200, 8), short_row);
  EXPECT_EQ(ours(kShort + 1, 1), long_row);
  EXPECT_EQ(ours(kShort + 1, 3), long_row);
  EXPECT_EQ(ours(0, 1), long_row) << "as many as it was trained with";
}

TEST(RopeFactors, ContextsAreShortOnlyWhereThereAreTwoSets) {
  GgufHeader header{.n_ctx_train = 4096};
  EXPECT_FALSE(takes_short_factors(header, 100));
  header.short_context = 4096;
  EXPECT_TRUE(takes_short_factors(header, 100));
  EXPECT_TRUE(takes_short_factors(header, 4096));
  EXPECT_TRUE(takes_short_factors(header, 0));
  EXPECT_FALSE(takes_short_factors(header, 4097));
  header.n_ctx_train = 131072;
  EXPECT_FALSE(takes_short_factors(header, 0));
}

}  // namespace
}  // namespace outrider::llama
