// A worker's device gives a product the bits that a model's own buffer gives it, and keeps
// everything that is not such a matrix as ggml has it.
#include "llama/kernels/kernel_worker.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "llama/base/backend.h"
#include "llama/kernels/kernel_buffer.h"
#include "llama/kernels/own_kernels.h"

namespace outrider::llama {
namespace {

constexpr int kColumns = 512;
constexpr int kRows = 96;
constexpr int kTokens = 3;

// By type: Q4_0 and F32 are packed where they lie, Q4_K takes more room and lies apart.
class KernelWorkerTest : public ::testing::TestWithParam<ggml_type> {
 protected:
  void SetUp() override {
    ensure_backend();
    if (!own_kernels().available) GTEST_SKIP() << own_kernels().reason;
    processor_ = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    device_ = worker_device(processor_);
    std::normal_distribution<float> normal;
    std::vector<float> floats(std::size_t{kColumns} * kRows);
    for (float& value : floats) value = normal(random_);
    bytes_.resize(ggml_row_size(GetParam(), kColumns) * kRows);
    ggml_quantize_chunk(GetParam(), floats.data(), bytes_.data(), 0, kRows, kColumns, nullptr);
    x_.resize(std::size_t{kColumns} * kTokens);
    for (float& value : x_) value = normal(random_);
  }

  // A matrix in a buffer of `type`, filled in `n_parts`.
  ggml_tensor* make(ggml_backend_buffer_type_t type, const char* name, std::size_t n_parts = 1) {
    context_.reset(ggml_init({ggml_tensor_overhead() * 2, nullptr, true}));
    ggml_tensor* weights = ggml_new_tensor_2d(context_.get(), GetParam(), kColumns, kRows);
    ggml_set_name(weights, name);
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(context_.get(), type));
    const std::size_t part = bytes_.size() / n_parts;
    for (std::size_t i = 0; i < n_parts; ++i) {
      ggml_backend_tensor_set(weights, bytes_.data() + i * part, i * part, part);
    }
    return weights;
  }

  std::vector<float> product(ggml_tensor* weights) {
    const ggml_context_ptr context(ggml_init({std::size_t{1} << 20, nullptr, false}));
    ggml_tensor* x = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, kColumns, kTokens);
    std::memcpy(x->data, x_.data(), x_.size() * sizeof(float));
    ggml_tensor* out = ggml_mul_mat(context.get(), weights, x);
    ggml_cgraph* graph = ggml_new_graph(context.get());
    ggml_build_forward_expand(graph, out);
    const ggml_backend_ptr backend(ggml_backend_dev_init(device_, nullptr));
    EXPECT_EQ(ggml_backend_graph_compute(backend.get(), graph), GGML_STATUS_SUCCESS);
    const auto* data = static_cast<const float*>(out->data);
    return {data, data + std::size_t{kRows} * kTokens};
  }

  ggml_backend_buffer_type_t worker_type() const { return ggml_backend_dev_buffer_type(device_); }

  std::mt19937_64 random_{5};
  ggml_backend_dev_t processor_ = nullptr;
  ggml_backend_dev_t device_ = nullptr;
  std::vector<std::uint8_t> bytes_;
  std::vector<float> x_;
  ggml_context_ptr context_;
  ggml_backend_buffer_ptr buffer_;
};

TEST_P(KernelWorkerTest, ABackendOfItHasItsBuffers) {
  ASSERT_NE(device_, processor_);
  const ggml_backend_ptr backend(ggml_backend_dev_init(device_, nullptr));
  ASSERT_TRUE(backend);
  EXPECT_EQ(ggml_backend_get_default_buffer_type(backend.get()), worker_type());
  EXPECT_NE(worker_type(), ggml_backend_cpu_buffer_type());
}

TEST_P(KernelWorkerTest, AMatrixIsMultipliedWithAsInAModelsOwnBuffer) {
  const std::vector<float> wanted = product(make(kernel_buffer_type(), "blk.0.ffn_up.weight"));
  ggml_tensor* weights = make(worker_type(), "blk.0.ffn_up.weight");
  ASSERT_NE(packed_for_worker(weights), nullptr);
  EXPECT_EQ(packed_for_worker(weights) == weights->data,
            GetParam() == GGML_TYPE_Q4_0 || GetParam() == GGML_TYPE_F32);
  EXPECT_EQ(product(weights), wanted);
}

// A cache, activations, and what graphs may look up or reshape.
TEST_P(KernelWorkerTest, EverythingElseStaysAsItIsSent) {
  const std::vector<float> stock =
      product(make(ggml_backend_cpu_buffer_type(), "blk.0.ffn_up.weight"));
  for (const char* name :
       {"cache_k_l0", "blk.0.ssm_conv1d.weight", "position_embd.weight", "RPC0#ffn_residual-3#0",
        "ffn_out-3", "blk.0.ffn_up.weight.lora_a", "blk.0.ffn_up.bias", "blk.0.ffn_up_exps.scale",
        "blk.0.hc_ffn_norm.weight"}) {
    ggml_tensor* other = make(worker_type(), name);
    EXPECT_EQ(packed_for_worker(other), nullptr) << name;
    std::vector<std::uint8_t> back(bytes_.size());
    ggml_backend_tensor_get(other, back.data(), 0, back.size());
    EXPECT_EQ(back, bytes_) << name;
    EXPECT_EQ(product(other), stock) << name;
  }
  ggml_tensor* in_parts = make(worker_type(), "blk.0.ffn_up.weight", /*n_parts=*/2);
  EXPECT_EQ(packed_for_worker(in_parts), nullptr);
  EXPECT_EQ(product(in_parts), stock);
}

TEST_P(KernelWorkerTest, WhatCameToTheSamePlaceLaterCounts) {
  ggml_tensor* weights = make(worker_type(), "blk.0.ffn_up.weight");
  ASSERT_NE(packed_for_worker(weights), nullptr);
  ggml_set_name(weights, "cache_k_l0");
  ggml_backend_tensor_set(weights, bytes_.data(), 0, bytes_.size());
  EXPECT_EQ(packed_for_worker(weights), nullptr);
  ggml_set_name(weights, "blk.0.ffn_up.weight");
  ggml_backend_tensor_set(weights, bytes_.data(), 0, bytes_.size());
  ASSERT_NE(packed_for_worker(weights), nullptr);
  ggml_backend_tensor_set(weights, bytes_.data(), 64, 64);  // somewhere in it
  EXPECT_EQ(packed_for_worker(weights), nullptr);
  ggml_backend_tensor_set(weights, bytes_.data(), 0, bytes_.size());
  ggml_backend_tensor_memset(weights, 0, 0, 32);
  EXPECT_EQ(packed_for_worker(weights), nullptr);
  ggml_backend_tensor_set(weights, bytes_.data(), 0, bytes_.size());
  ASSERT_NE(packed_for_worker(weights), nullptr);
  ggml_backend_buffer_clear(buffer_.get(), 0);
  EXPECT_EQ(packed_for_worker(weights), nullptr);
  // A buffer that goes takes what was known with it: the next may lie in the same place.
  ASSERT_NE(packed_for_worker(make(worker_type(), "blk.0.ffn_up.weight")), nullptr);
  EXPECT_EQ(packed_for_worker(make(worker_type(), "blk.0.ffn_up.weight", /*n_parts=*/2)), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Types, KernelWorkerTest,
                         ::testing::Values(GGML_TYPE_Q4_0, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K,
                                           GGML_TYPE_F32),
                         [](const auto& test) { return std::string(ggml_type_name(test.param)); });

}  // namespace
}  // namespace outrider::llama
