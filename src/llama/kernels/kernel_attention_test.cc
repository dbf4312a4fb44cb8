// Attention that ggml runs with Outrider's kernels: taken where the queries come from a matrix of
// ours and only there, the values that ggml's own gives, and the same bits for any number of tokens
// and threads.
#include "llama/kernels/kernel_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "llama/base/backend.h"
#include "llama/kernels/attention_parts.h"
#include "llama/kernels/attention_shares.h"
#include "llama/kernels/kernel_buffer.h"
#include "llama/kernels/own_kernels.h"

namespace outrider::llama {
namespace {

constexpr int kSize = 64;  // of a head
constexpr int kHeads = 6;  // of queries
constexpr int kKeyHeads = 2;
constexpr int kWidth = 128;  // of the activations that queries are made of
constexpr int kCells = 1344;
constexpr int kMostTokens = 20;

struct Case {
  ggml_type type_k = GGML_TYPE_F16;
  ggml_type type_v = GGML_TYPE_F16;
  int n_tokens = 1;
  int n_threads = 1;
  int n_streams = 1;
  int n_texts = 1;  // whose cells lie between each other's, two tokens of each in turn
  bool own_weights = true;
  bool rotated = false;  // the queries, as llama.cpp does for quantised keys
  bool sinks = false;
  int n_added = 0;  // zeros, to what the queries' matrix gives, as adapters add
};

class KernelAttentionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ensure_backend();
    if (!own_kernels().available) GTEST_SKIP() << own_kernels().reason;
    std::mt19937_64 random(23);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>* x, std::size_t n, float scale) {
      for (std::size_t i = 0; i < n; ++i) x->push_back(scale * normal(random));
    };
    fill(&weights_, static_cast<std::size_t>(kWidth * kSize * kHeads), 0.2F);
    fill(&x_, static_cast<std::size_t>(kWidth * kMostTokens * 2), 1.0F);
    fill(&keys_, static_cast<std::size_t>(kSize * kKeyHeads * kCells * 2), 1.0F);
    fill(&values_, keys_.size(), 1.0F);
    fill(&sinks_, kHeads, 1.0F);
  }

  static ggml_tensor* with_zeros_added(ggml_context* g, ggml_tensor* t, int times) {
    for (int i = 0; i < times; ++i) {
      ggml_tensor* zeros = ggml_dup_tensor(g, t);
      ggml_set_zero(zeros);
      t = ggml_add(g, t, zeros);
    }
    return t;
  }

  // Attention of the first tokens of each stream: [n_streams * n_tokens, heads * size].
  std::vector<float> attention(const Case& c) {
    const ggml_context_ptr weights_context(ggml_init({ggml_tensor_overhead() * 2, nullptr, true}));
    const ggml_context_ptr context(ggml_init({std::size_t{64} << 20, nullptr, false}));
    const ggml_backend_ptr backend(ggml_backend_cpu_init());
    ggml_backend_cpu_set_n_threads(backend.get(), c.n_threads);
    ggml_tensor* w =
        ggml_new_tensor_2d(weights_context.get(), GGML_TYPE_F32, kWidth, kSize * kHeads);
    ggml_set_name(w, "blk.0.attn_q.weight");
    const ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors_from_buft(
        weights_context.get(),
        c.own_weights ? kernel_buffer_type() : ggml_backend_cpu_buffer_type()));
    ggml_backend_tensor_set(w, weights_.data(), 0, weights_.size() * sizeof(float));

    ggml_context* g = context.get();
    ggml_tensor* x = ggml_new_tensor_3d(g, GGML_TYPE_F32, kWidth, c.n_tokens, c.n_streams);
    for (int s = 0; s < c.n_streams; ++s) {
      std::memcpy(static_cast<char*>(x->data) + static_cast<std::size_t>(s) * x->nb[2],
                  x_.data() + s * kWidth * kMostTokens, x->nb[2]);
    }
    ggml_tensor* q = ggml_mul_mat(g, w, ggml_reshape_2d(g, x, kWidth, c.n_tokens * c.n_streams));
    q = with_zeros_added(g, q, c.n_added);
    if (c.rotated) {
      ggml_tensor* rotation = ggml_new_tensor_2d(g, GGML_TYPE_F32, kSize, kSize);
      ggml_set_zero(rotation);  // known by the hint, not by its numbers
      q = ggml_mul_mat(g, rotation,
                       ggml_reshape_2d(g, q, kSize, kHeads * c.n_tokens * c.n_streams));
      ggml_mul_mat_set_hint(q, GGML_HINT_SRC0_IS_HADAMARD);
    }
    q = ggml_reshape_4d(g, q, kSize, kHeads, c.n_tokens, c.n_streams);
    q = ggml_permute(g, ggml_scale(g, q, 0.5F), 0, 2, 1, 3);
    const auto cache = [&](ggml_type type, const std::vector<float>& from) {
      // [size * heads, cells, streams], seen as [size, cells, heads, streams].
      ggml_tensor* cells = ggml_new_tensor_3d(g, type, kSize * kKeyHeads, kCells, c.n_streams);
      const std::int64_t n = ggml_nelements(cells);
      if (type == GGML_TYPE_F32) {
        std::memcpy(cells->data, from.data(), ggml_nbytes(cells));
      } else {
        ggml_get_type_traits(type)->from_float_ref(from.data(), cells->data, n);
      }
      return ggml_view_4d(g, cells, kSize, kCells, kKeyHeads, c.n_streams, cells->nb[1],
                          ggml_row_size(type, kSize), cells->nb[2], 0);
    };
    ggml_tensor* k = cache(c.type_k, keys_);
    ggml_tensor* v = cache(c.type_v, values_);
    ggml_tensor* mask = ggml_new_tensor_4d(g, GGML_TYPE_F16, kCells, c.n_tokens, 1, c.n_streams);
    for (int s = 0; s < c.n_streams; ++s) {
      for (int t = 0; t < c.n_tokens; ++t) {
        auto* row = reinterpret_cast<ggml_fp16_t*>(static_cast<char*>(mask->data) +
                                                   static_cast<std::size_t>(t) * mask->nb[1] +
                                                   static_cast<std::size_t>(s) * mask->nb[3]);
        for (int cell = 0; cell < kCells; ++cell) {
          const bool is_seen = cell > 2 && cell <= 1300 + t - 30 * s && cell % 11 != s &&
                               cell / 5 % c.n_texts == t / 2 % c.n_texts;
          row[cell] = ggml_fp32_to_fp16(is_seen ? 0.0F : -INFINITY);
        }
      }
    }
    ggml_tensor* out = ggml_flash_attn_ext(g, q, k, v, mask, 0.125F, 0.0F, 0.0F);
    if (c.sinks) {
      ggml_tensor* sinks = ggml_new_tensor_1d(g, GGML_TYPE_F32, kHeads);
      std::memcpy(sinks->data, sinks_.data(), ggml_nbytes(sinks));
      ggml_flash_attn_ext_add_sinks(out, sinks);
    }
    ggml_cgraph* graph = ggml_new_graph(g);
    ggml_build_forward_expand(graph, out);
    EXPECT_EQ(ggml_backend_graph_compute(backend.get(), graph), GGML_STATUS_SUCCESS);
    const auto* data = static_cast<const float*>(out->data);
    return {data, data + ggml_nelements(out)};
  }

  static double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double most = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      most = std::max(most, static_cast<double>(std::fabs(a[i] - b[i])));
    }
    return most;
  }

  std::vector<float> weights_, x_, keys_, values_, sinks_;
};

TEST_F(KernelAttentionTest, GivesWhatGgmlsOwnGivesForEveryCacheType) {
  for (const ggml_type type_k : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0}) {
    for (const ggml_type type_v : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0}) {
      for (const bool sinks : {false, true}) {
        for (const int n_streams : {1, 2}) {
          Case c{.type_k = type_k,
                 .type_v = type_v,
                 .n_tokens = 3,
                 .n_streams = n_streams,
                 .n_texts = n_streams,
                 .sinks = sinks};
          const std::vector<float> own = attention(c);
          c.own_weights = false;
          const std::vector<float> ggmls = attention(c);
          // ggml rounds queries, and sums of values, to the cache's type.
          EXPECT_LT(largest_difference(own, ggmls), 0.02)
              << ggml_type_name(type_k) << " " << ggml_type_name(type_v);
          EXPECT_GT(largest_difference(own, std::vector<float>(own.size())), 0.1);
        }
      }
    }
  }
}

TEST_F(KernelAttentionTest, HasTheSameBitsForAnyNumberOfTokensAndThreads) {
  for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_Q8_0}) {
    for (const int n_texts : {1, 4}) {
      Case c{.type_k = type, .type_v = type, .n_tokens = kMostTokens, .n_texts = n_texts};
      const std::vector<float> all = attention(c);
      for (c.n_tokens = 1; c.n_tokens <= kMostTokens; ++c.n_tokens) {
        for (const int n_threads : {1, 2, 3, 4, 7}) {
          c.n_threads = n_threads;
          const std::vector<float> some = attention(c);
          ASSERT_EQ(std::memcmp(some.data(), all.data(), some.size() * sizeof(float)), 0)
              << n_texts << " texts, " << c.n_tokens << " tokens, " << n_threads << " threads";
        }
      }
    }
  }
}

// Own attention is more precise than ggml's with half-precision caches, so its bits differ: seen
// here as a sign of which one ran.
TEST_F(KernelAttentionTest, IsTakenOnlyWhereTheQueriesComeFromOurMatrices) {
  EXPECT_NE(attention({}), attention({.own_weights = false}));
  EXPECT_NE(attention({.type_k = GGML_TYPE_Q8_0, .type_v = GGML_TYPE_Q8_0}),
            attention({.type_k = GGML_TYPE_Q8_0, .type_v = GGML_TYPE_Q8_0, .own_weights = false}));
}

TEST_F(KernelAttentionTest, QueriesThatWereRotatedAreStillOurs) {
  const Case own{.type_k = GGML_TYPE_Q8_0, .n_tokens = 3, .rotated = true};
  Case ggmls = own;
  ggmls.own_weights = false;
  EXPECT_NE(attention(own), attention(ggmls));
  EXPECT_LT(largest_difference(attention(own), attention(ggmls)), 0.05);
}

TEST_F(KernelAttentionTest, QueriesThatManyAdaptersChangeAreStillOurs) {
  EXPECT_EQ(attention({.n_added = 40}), attention({}));
}

// With fewer threads than were planned the pieces are other ones.
TEST_F(KernelAttentionTest, ThePlannedMemoryIsEnoughForFewerThreads) {
  for (const int n_tokens : {1, 2, 9, 300}) {
    for (const int n_key_heads : {1, 2, 8}) {
      const ggml_context_ptr context(ggml_init({std::size_t{1} << 22, nullptr, true}));
      ggml_context* g = context.get();
      const ggml_context_ptr weights_context(
          ggml_init({ggml_tensor_overhead() * 2, nullptr, true}));
      ggml_tensor* w = ggml_new_tensor_2d(weights_context.get(), GGML_TYPE_F32, 32, kSize * 32);
      ggml_set_name(w, "blk.0.attn_q.weight");
      const ggml_backend_buffer_ptr buffer(
          ggml_backend_alloc_ctx_tensors_from_buft(weights_context.get(), kernel_buffer_type()));
      ggml_tensor* x = ggml_new_tensor_2d(g, GGML_TYPE_F32, 32, n_tokens);
      ggml_tensor* q = ggml_reshape_3d(g, ggml_mul_mat(g, w, x), kSize, 32, n_tokens);
      ggml_tensor* k = ggml_new_tensor_3d(g, GGML_TYPE_F16, kSize, 32768, n_key_heads);
      ggml_tensor* out =
          ggml_flash_attn_ext(g, ggml_permute(g, q, 0, 2, 1, 3), k, k, nullptr, 0.125F, 0.0F, 0.0F);
      ggml_cgraph* graph = ggml_new_graph(g);
      ggml_build_forward_expand(graph, out);
      for (const int planned : {1, 2, 5, 16, 48}) {
        const ggml_cplan plan = ggml_graph_plan(graph, planned, nullptr);
        std::size_t most = 0;
        for (int n = 1; n <= planned; ++n) {
          const std::size_t shares = static_cast<std::size_t>(n) * attention_share_bytes(out, n);
          const bool by_parts = AttentionParts::may_suit(out, n);
          EXPECT_LT(shares, static_cast<std::size_t>(n) * (std::size_t{3} << 20));
          most = std::max(most, shares + (by_parts ? AttentionParts::memory_bytes(out, n) : 0));
        }
        EXPECT_GE(plan.work_size, most) << n_tokens << " tokens, " << planned << " threads";
      }
    }
  }
}

TEST_F(KernelAttentionTest, OtherTypesAndKindsAreLeftToGgml) {
  const ggml_context_ptr context(ggml_init({std::size_t{1} << 20, nullptr, true}));
  ggml_context* g = context.get();
  const auto taken = [g](ggml_type type, float max_bias, float soft_cap) {
    ggml_tensor* q = ggml_new_tensor_3d(g, GGML_TYPE_F32, kSize, 2, kHeads);
    ggml_tensor* k = ggml_new_tensor_3d(g, type, kSize, kCells, kKeyHeads);
    ggml_tensor* mask = ggml_new_tensor_2d(g, GGML_TYPE_F16, kCells, 64);
    return kernel_attention_takes(
        ggml_flash_attn_ext(g, q, k, k, mask, 0.125F, max_bias, soft_cap));
  };
  EXPECT_TRUE(taken(GGML_TYPE_F16, 0.0F, 0.0F));
  EXPECT_TRUE(taken(GGML_TYPE_Q8_0, 0.0F, 0.0F));
  EXPECT_FALSE(taken(GGML_TYPE_Q4_0, 0.0F, 0.0F));
  EXPECT_FALSE(taken(GGML_TYPE_F16, 8.0F, 0.0F));
  EXPECT_FALSE(taken(GGML_TYPE_F16, 0.0F, 30.0F));
}

// ggml plans a graph with them, too, and a worker's peer may send any.
TEST_F(KernelAttentionTest, SizesOfZeroAndShapesThatDoNotFitAreNotTaken) {
  const ggml_context_ptr context(ggml_init({std::size_t{1} << 20, nullptr, true}));
  ggml_context* g = context.get();
  ggml_tensor* k = ggml_new_tensor_3d(g, GGML_TYPE_F16, kSize, kCells, kKeyHeads);
  ggml_tensor* mask = ggml_new_tensor_2d(g, GGML_TYPE_F16, kCells, 64);
  ggml_tensor* out = ggml_flash_attn_ext(g, ggml_new_tensor_3d(g, GGML_TYPE_F32, kSize, 2, kHeads),
                                         k, k, mask, 0.125F, 0.0F, 0.0F);
  EXPECT_TRUE(kernel_attention_takes(out));
  for (const int dimension : {1, 2, 3}) {
    for (const int operand : {0, 1, 2, 3}) {
      std::int64_t& size = out->src[operand]->ne[dimension];
      const std::int64_t before = size;
      size = 0;
      EXPECT_FALSE(kernel_attention_takes(out)) << operand << " " << dimension;
      size = before;
    }
  }
  ggml_tensor* sinks = ggml_new_tensor_1d(g, GGML_TYPE_F32, kHeads);
  ggml_flash_attn_ext_add_sinks(out, sinks);
  EXPECT_TRUE(kernel_attention_takes(out));
  sinks->nb[0] *= 2;
  EXPECT_FALSE(kernel_attention_takes(out)) << "sinks that do not lie one behind the other";
  sinks->nb[0] /= 2;
  // Outputs would be written beyond their memory.
  for (int dimension = 0; dimension < 4; ++dimension) {
    for (const int change : {-1, 1}) {
      out->ne[dimension] += change;
      EXPECT_FALSE(kernel_attention_takes(out)) << "output " << dimension;
      out->ne[dimension] -= change;
    }
    const std::size_t before = out->nb[dimension];
    out->nb[dimension] = dimension == 0 ? 2 * before : 1;
    EXPECT_FALSE(kernel_attention_takes(out)) << "output's stride " << dimension;
    out->nb[dimension] = before;
  }
  mask->ne[0] = kCells - 1;
  EXPECT_FALSE(kernel_attention_takes(out));
  mask->ne[0] = kCells;
  EXPECT_TRUE(kernel_attention_takes(out));
}

}  // namespace
}  // namespace outrider::llama
