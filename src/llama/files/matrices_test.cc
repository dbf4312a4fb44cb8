#include "llama/files/matrices.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ggml-cpp.h"
#include "ggml.h"
#include "gguf.h"
#include "llama/base/backend.h"
#include "llama/kernels/own_kernels.h"
#include "testing/tiny_dir.h"

namespace outrider::llama {
namespace {

// Metadata only: the weights are not looked at.
std::vector<Matrix> matrices_of(const std::vector<std::string>& names, std::int64_t n_matrices) {
  const testing::TempDir dir;
  const ggml_context_ptr context(ggml_init({std::size_t{1} << 16, nullptr, true}));
  const gguf_context_ptr gguf(gguf_init_empty());
  for (const std::string& name : names) {
    ggml_tensor* tensor = ggml_new_tensor_3d(context.get(), GGML_TYPE_Q4_0, 64, 8, n_matrices);
    ggml_set_name(tensor, name.c_str());
    gguf_add_tensor(gguf.get(), tensor);
  }
  const std::string path = dir.file("some.gguf");
  EXPECT_TRUE(gguf_write_to_file(gguf.get(), path.c_str(), /*only_meta=*/true));
  const Result<std::vector<Matrix>> matrices = read_matrices(path, GgufHeader());
  EXPECT_TRUE(matrices.ok()) << matrices.status().message();
  return matrices.ok() ? *matrices : std::vector<Matrix>{};
}

// Experts, and the heads of latent attention, each multiplied with a part of the activations.
TEST(Matrices, OwnKernelsTakeSeveralInOneTensor) {
  ensure_backend();
  if (!own_kernels().available) GTEST_SKIP() << own_kernels().reason;
  const auto taken = [](const std::string& name, std::int64_t n_matrices) {
    const std::vector<Matrix> matrices = matrices_of({name}, n_matrices);
    return matrices.size() == 1 && matrices[0].own_kernels_take_it;
  };
  EXPECT_TRUE(taken("blk.0.ffn_up.weight", 1));
  EXPECT_TRUE(taken("blk.0.attn_v_b.weight", 1));
  for (const char* name : {"blk.0.attn_k_b.weight", "blk.0.attn_v_b.weight",
                           "blk.0.ffn_up_exps.weight", "blk.0.ffn_down_exps.weight",
                           "blk.0.ffn_gate_up_exps.weight", "blk.0.ffn_up_chexps.weight"}) {
    EXPECT_TRUE(taken(name, 4)) << name;
  }
}

TEST(Matrices, WhatIsAddedConvolvedOrScannedIsNone) {
  const std::vector<Matrix> matrices = matrices_of(
      {"blk.0.ffn_up_exps.bias", "blk.0.ssm_conv1d.weight", "blk.0.ssm_conv1d_q.weight",
       "blk.0.shortconv.conv.weight", "blk.0.ssm_a", "blk.0.ssm_d", "position_embd.weight",
       "blk.0.ssm_in.weight", "blk.0.shortconv.in_proj.weight", "blk.0.attn_q.lora_a"},
      1);
  ASSERT_EQ(matrices.size(), 3U);
  EXPECT_EQ(matrices[0].name, "blk.0.ssm_in.weight");
  EXPECT_EQ(matrices[1].name, "blk.0.shortconv.in_proj.weight");
  EXPECT_EQ(matrices[2].name, "blk.0.attn_q.lora_a");
}

}  // namespace
}  // namespace outrider::llama
