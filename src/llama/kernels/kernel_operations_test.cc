// Operations in exactly the memory that they asked for, with any number of threads up to that for
// which it was planned: the bits of one thread, and nothing written behind it. (What one thread
// computes is compared with the reference in kernel_buffer_test.cc and kernel_attention_test.cc.)
#include "llama/kernels/kernel_operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "llama/base/backend.h"
#include "llama/kernels/attention_parts.h"
#include "llama/kernels/kernel_buffer.h"
#include "llama/kernels/own_kernels.h"
#include "testing/chi_square.h"
#include "testing/kernel_reference.h"

namespace outrider::llama {
namespace {

constexpr int kColumns = 512;

class KernelOperationsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ensure_backend();
    if (!own_kernels().available) GTEST_SKIP() << own_kernels().reason;
  }

  // A matrix, or `n_experts` of them, in our buffer.
  ggml_tensor* make_weights(int n_rows, int n_experts, const char* name) {
    weights_context_.reset(ggml_init({ggml_tensor_overhead() * 2, nullptr, true}));
    ggml_tensor* weights =
        ggml_new_tensor_3d(weights_context_.get(), GGML_TYPE_Q4_0, kColumns, n_rows, n_experts);
    ggml_set_name(weights, name);
    buffer_.reset(
        ggml_backend_alloc_ctx_tensors_from_buft(weights_context_.get(), kernel_buffer_type()));
    bytes_ =
        testing::random_rows(kernels::WeightType::kQ40,
                             static_cast<std::int64_t>(n_rows) * n_experts, kColumns, &random_);
    ggml_backend_tensor_set(weights, bytes_.data(), 0, bytes_.size());
    return weights;
  }

  ggml_tensor* make_rows(int inner, int n, int outer = 1) {
    ggml_tensor* x = ggml_new_tensor_4d(context_.get(), GGML_TYPE_F32, kColumns, inner, n, outer);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < ggml_nelements(x); ++i) {
      static_cast<float*>(x->data)[i] = normal(random_);
    }
    return x;
  }

  // What `out` becomes with `n_threads` of `planned` in `bytes` of memory.
  std::vector<char> compute(ggml_tensor* out, int planned, int n_threads, std::size_t bytes) {
    constexpr std::size_t kGuard = 65536;
    constexpr std::uint8_t kUntouched = 0x5A;
    ggml_cgraph* graph = ggml_new_graph(context_.get());
    ggml_build_forward_expand(graph, out);
    ggml_cplan plan = ggml_graph_plan(graph, planned, nullptr);
    EXPECT_GE(plan.work_size, bytes);
    std::vector<std::uint8_t> memory(bytes + kGuard, kUntouched);
    plan.work_data = memory.data();
    plan.work_size = bytes;
    plan.n_threads = n_threads;
    std::memset(out->data, 0xFF, ggml_nbytes(out));
    EXPECT_EQ(ggml_graph_compute(graph, &plan), GGML_STATUS_SUCCESS);
    EXPECT_TRUE(std::all_of(memory.begin() + static_cast<std::ptrdiff_t>(bytes), memory.end(),
                            [](std::uint8_t byte) { return byte == kUntouched; }))
        << n_threads << " threads of " << planned;
    const char* data = static_cast<const char*>(out->data);
    return {data, data + ggml_nbytes(out)};
  }

  // `bytes(n)`: the memory for n threads.
  void expect_the_same_with_any_threads(ggml_tensor* out, const auto& bytes) {
    const std::vector<char> one = compute(out, 1, 1, bytes(1));
    for (const int planned : {2, 3, 16}) {
      for (const int n : {1, 2, 3, 5, 16}) {
        if (n > planned) continue;
        EXPECT_TRUE(compute(out, planned, n, bytes(planned)) == one)
            << n << " threads of " << planned;
      }
    }
  }

  std::mt19937_64 random_{testing::test_seed(11)};
  ggml_context_ptr context_{ggml_init({std::size_t{64} << 20, nullptr, false})};
  ggml_context_ptr weights_context_;
  ggml_backend_buffer_ptr buffer_;
  std::vector<std::uint8_t> bytes_;  // of the weights, as in a file
};

// As latent attention has them: the heads' activations lie beside each other for each token, and
// are seen head by head. Two heads may share a matrix.
TEST_F(KernelOperationsTest, AMatrixForEachHead) {
  constexpr int kRows = 75;
  constexpr int kMatrices = 3;
  ggml_tensor* weights = make_weights(kRows, kMatrices, "blk.0.attn_v_b.weight");
  const std::size_t row_bytes = bytes_.size() / (kRows * kMatrices);
  std::vector<testing::ReferenceRow> rows;
  for (std::size_t at = 0; at < bytes_.size(); at += row_bytes) {
    rows.push_back(testing::reference_row(kernels::WeightType::kQ40, bytes_.data() + at, kColumns));
  }
  for (const auto& [n, share, outer] :
       {std::array{1, 1, 1}, std::array{9, 1, 1}, std::array{5, 2, 1}, std::array{2, 2, 3}}) {
    const int heads = kMatrices * share;
    ggml_tensor* x = make_rows(heads, n, outer);
    ggml_tensor* by_heads = ggml_permute(context_.get(), x, 0, 2, 1, 3);
    ggml_tensor* out = ggml_mul_mat(context_.get(), weights, by_heads);
    expect_the_same_with_any_threads(out, [&](int threads) { return product_bytes(out, threads); });
    const auto* computed = static_cast<const float*>(out->data);
    for (int i = 0; i < outer * heads * n; ++i) {
      const int token = i % n;
      const int head = i / n % heads;
      const float* at = static_cast<const float*>(x->data) +
                        ((i / n / heads * n + token) * heads + head) * kColumns;
      const std::vector<float> values(at, at + kColumns);
      const auto activations = testing::reference_activations(values);
      for (int r = 0; r < kRows; ++r) {
        const testing::ReferenceRow& row = rows[static_cast<std::size_t>(head / share * kRows + r)];
        ASSERT_EQ(*computed++, testing::reference_product(row, values, activations))
            << "head " << head << ", token " << token << ", row " << r;
      }
    }
  }
}

// 75 rows: fewer pieces than threads. 3,000: several for each.
TEST_F(KernelOperationsTest, DenseProducts) {
  for (const int n_rows : {75, 3000}) {
    ggml_tensor* weights = make_weights(n_rows, 1, "blk.0.ffn_up.weight");
    for (const int n : {1, 9, 70}) {
      ggml_tensor* out = ggml_mul_mat(context_.get(), weights, make_rows(n, 1));
      expect_the_same_with_any_threads(out,
                                       [&](int threads) { return product_bytes(out, threads); });
    }
  }
}

// Experts that nobody asks for lie before, between and behind those that are.
TEST_F(KernelOperationsTest, ProductsWithExperts) {
  constexpr int kUsed = 2;
  for (const int n_rows : {40, 1500}) {
    ggml_tensor* weights = make_weights(n_rows, 6, "blk.0.ffn_up_exps.weight");
    for (const int n : {1, 9}) {
      ggml_tensor* ids = ggml_new_tensor_2d(context_.get(), GGML_TYPE_I32, kUsed, n);
      for (int i = 0; i < n; ++i) {
        static_cast<std::int32_t*>(ids->data)[kUsed * i] = 4;
        static_cast<std::int32_t*>(ids->data)[kUsed * i + 1] = i % 3 == 2 ? 2 : 1;
      }
      // One row for all experts of a token gives what as many equal ones give.
      ggml_tensor* one = make_rows(1, n);
      ggml_tensor* equal = make_rows(kUsed, n);
      for (std::size_t i = 0; i < kUsed * static_cast<std::size_t>(n); ++i) {
        std::memcpy(static_cast<char*>(equal->data) + i * equal->nb[1],
                    static_cast<const char*>(one->data) + i / kUsed * one->nb[2], one->nb[2]);
      }
      std::vector<std::vector<char>> outs;
      for (ggml_tensor* x : {one, equal, make_rows(kUsed, n)}) {
        ggml_tensor* out = ggml_mul_mat_id(context_.get(), weights, x, ids);
        const auto bytes = [&](int threads) { return product_bytes(out, threads); };
        expect_the_same_with_any_threads(out, bytes);
        outs.push_back(compute(out, 1, 1, bytes(1)));
      }
      EXPECT_TRUE(outs[0] == outs[1]);
      EXPECT_FALSE(outs[1] == outs[2]);
    }
  }
}

// Three heads: two threads share them by the cells, three by the heads.
TEST_F(KernelOperationsTest, Attention) {
  constexpr int kHeads = 3;
  constexpr int kSize = 64;
  constexpr int kCells = 2048;
  ggml_context* g = context_.get();
  ggml_tensor* weights = make_weights(kHeads * kSize, 1, "blk.0.attn_q.weight");
  ggml_tensor* cells[2];
  for (ggml_tensor*& kind : cells) {
    kind = ggml_new_tensor_3d(g, GGML_TYPE_F16, kSize, kCells, kHeads);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < ggml_nelements(kind); ++i) {
      static_cast<ggml_fp16_t*>(kind->data)[i] = ggml_fp32_to_fp16(normal(random_));
    }
  }
  for (const int n : {1, 5, 40}) {
    ggml_tensor* q =
        ggml_reshape_3d(g, ggml_mul_mat(g, weights, make_rows(n, 1)), kSize, kHeads, n);
    ggml_tensor* out = ggml_flash_attn_ext(g, ggml_permute(g, q, 0, 2, 1, 3), cells[0], cells[1],
                                           nullptr, 0.125F, 0.0F, 0.0F);
    EXPECT_TRUE(AttentionParts::may_suit(out, 2) || n == 40);
    expect_the_same_with_any_threads(out, [&](int threads) {
      return std::max(product_bytes(q->src[0], threads), attention_bytes(out, threads));
    });
  }
}

// A thread that has not asked before works it out; one that has remembers the last two shapes.
TEST_F(KernelOperationsTest, AnAttentionThatWasAskedForBeforeGetsTheSameMemoryAndAnotherItsOwn) {
  ggml_context* g = context_.get();
  std::vector<ggml_tensor*> attentions;
  for (const auto& [n_heads, n_tokens, n_cells, size] : {std::array<int, 4>{3, 4, 2048, 64},
                                                         {3, 4, 2304, 64},
                                                         {6, 4, 2048, 64},
                                                         {3, 40, 2048, 64},
                                                         {3, 4, 2048, 128}}) {
    ggml_tensor* q = ggml_new_tensor_3d(g, GGML_TYPE_F32, size, n_tokens, n_heads);
    ggml_tensor* cells = ggml_new_tensor_3d(g, GGML_TYPE_F16, size, n_cells, 3);
    attentions.push_back(ggml_flash_attn_ext(g, q, cells, cells, nullptr, 0.125F, 0.0F, 0.0F));
  }
  std::vector<std::size_t> different;
  for (const std::size_t i : {0U, 1U, 0U, 1U, 2U, 0U, 3U, 4U, 0U, 4U}) {
    for (const int threads : {2, 16, 2}) {
      std::size_t worked_out = 0;
      std::thread([&] { worked_out = attention_bytes(attentions[i], threads); }).join();
      EXPECT_EQ(attention_bytes(attentions[i], threads), worked_out) << i << ", " << threads;
      different.push_back(worked_out);
    }
  }
  std::sort(different.begin(), different.end());
  EXPECT_EQ(std::unique(different.begin(), different.end()) - different.begin(), 10);
}

}  // namespace
}  // namespace outrider::llama
