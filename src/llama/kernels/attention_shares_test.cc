// Attention over long texts: a token has the same bits however threads share the work, by rows or
// by parts of the cells, alone or with others, and wherever its cells lie.
#include "llama/kernels/attention_shares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "ggml-cpp.h"
#include "ggml.h"
#include "kernels/instruction_set.h"
#include "llama/kernels/attention_parts.h"

namespace outrider::llama {
namespace {

// An attention of 12 heads on 3 of keys.
class LongTexts {
 public:
  static constexpr int kSize = 32;
  static constexpr int kTokens = 24;
  static constexpr std::int64_t kHeads = 12;

  // Of the cells, token t sees those below `n_seen` + t that is_seen() says.
  LongTexts(int n_cells, int n_seen, const std::function<bool(int)>& is_seen)
      : context_(ggml_init({std::size_t{64} << 20, nullptr, false})), n_cells_(n_cells) {
    ggml_context* g = context_.get();
    std::mt19937_64 random(29);
    std::normal_distribution<float> normal;
    q_ = ggml_new_tensor_3d(g, GGML_TYPE_F32, kSize, kTokens, kHeads);
    for (std::int64_t i = 0; i < ggml_nelements(q_); ++i) {
      static_cast<float*>(q_->data)[i] = normal(random);
    }
    // The same keys and values for the cells that are seen, wherever they lie.
    const auto cache = [&] {
      ggml_tensor* cells = ggml_new_tensor_3d(g, GGML_TYPE_F16, kSize, 3, n_cells);
      auto* data = static_cast<ggml_fp16_t*>(cells->data);
      for (int c = 0; c < n_cells; ++c) {
        for (int i = 0; i < kSize * 3; ++i) {
          *data++ = ggml_fp32_to_fp16(is_seen(c) ? normal(random) : INFINITY);
        }
      }
      return ggml_permute(g, cells, 0, 2, 1, 3);
    };
    k_ = cache();
    v_ = cache();
    mask_ = ggml_new_tensor_2d(g, GGML_TYPE_F16, n_cells, kTokens);
    auto* mask = static_cast<ggml_fp16_t*>(mask_->data);
    for (int t = 0; t < kTokens; ++t) {
      int left = n_seen + t;
      for (int c = 0; c < n_cells; ++c) {
        const bool open = left > 0 && is_seen(c);
        left -= open ? 1 : 0;
        *mask++ = ggml_fp32_to_fp16(open ? 0.0F : -INFINITY);
      }
    }
  }

  ggml_tensor* attention(std::size_t first, std::int64_t n) {
    ggml_context* g = context_.get();
    return ggml_flash_attn_ext(
        g, ggml_view_3d(g, q_, kSize, n, kHeads, q_->nb[1], q_->nb[2], first * q_->nb[1]), k_, v_,
        ggml_view_2d(g, mask_, n_cells_, n, mask_->nb[1], first * mask_->nb[1]), 0.2F, 0.0F, 0.0F);
  }
  static std::vector<float> values(const ggml_tensor* out) {
    const auto* data = static_cast<const float*>(out->data);
    return {data, data + ggml_nelements(out)};
  }
  std::vector<float> by_shares(std::size_t first, std::int64_t n, int nth) {
    ggml_tensor* out = attention(first, n);
    const Memory memory(attention_share_bytes(out, nth));
    for (int ith = 0; ith < nth; ++ith) run_attention_share(set(), out, ith, nth, memory.at());
    return values(out);
  }
  std::vector<float> by_parts(std::size_t first, std::int64_t n, int nth) {
    ggml_tensor* out = attention(first, n);
    EXPECT_TRUE(AttentionParts::may_suit(out, nth));
    const Memory memory(AttentionParts::memory_bytes(out, nth));
    std::vector<AttentionParts> threads;
    for (int ith = 0; ith < nth; ++ith) {
      threads.emplace_back(out, ith, nth, memory.at());
      EXPECT_TRUE(threads.back().suits());
    }
    // The last parts first.
    for (int part = threads[0].count() - 1; part >= 0; --part) {
      threads[static_cast<std::size_t>(part % nth)].run(set(), part);
    }
    for (const AttentionParts& thread : threads) thread.join(set());
    return values(out);
  }

 private:
  class Memory {
   public:
    explicit Memory(std::size_t bytes)
        : at_(static_cast<std::uint8_t*>(std::aligned_alloc(64, bytes))) {
      std::memset(at_, 0xFF, bytes);
    }
    ~Memory() { std::free(at_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    std::uint8_t* at() const { return at_; }

   private:
    std::uint8_t* at_;
  };
  static const kernels::InstructionSet& set() { return *kernels::instruction_sets().front(); }

  ggml_context_ptr context_;
  int n_cells_;
  ggml_tensor* q_;
  ggml_tensor* k_;
  ggml_tensor* v_;
  ggml_tensor* mask_;
};

// So many rows and cells that a thread's share is worked on in several calls.
TEST(LongTexts, ATokenIsWhatItIsAloneHoweverThreadsShareTheWork) {
  LongTexts texts(4096, 3900, [](int c) { return c % 37 != 3; });
  const std::vector<float> all = texts.by_shares(0, LongTexts::kTokens, 1);
  EXPECT_EQ(texts.by_shares(0, LongTexts::kTokens, 2), all);
  EXPECT_EQ(texts.by_shares(0, LongTexts::kTokens, 5), all);
  const std::size_t each = all.size() / LongTexts::kTokens;
  for (std::size_t t = 0; t < LongTexts::kTokens; ++t) {
    const std::vector<float> want(all.begin() + static_cast<std::ptrdiff_t>(t * each),
                                  all.begin() + static_cast<std::ptrdiff_t>((t + 1) * each));
    ASSERT_EQ(texts.by_shares(t, 1, 3), want) << "token " << t;
    ASSERT_EQ(texts.by_parts(t, 1, 2), want) << "token " << t;
  }
  for (const int nth : {2, 4, 7}) {
    const std::vector<float> want(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(4 * each));
    EXPECT_EQ(texts.by_parts(0, 4, nth), want) << nth << " threads";
  }
}

// Between the cells that are seen there may be others, which hold no numbers.
TEST(LongTexts, WhereTheCellsLieDoesNotMatter) {
  for (const int n_seen : {200, 250, 256, 257, 600, 1000}) {
    LongTexts dense(1100, n_seen, [](int) { return true; });
    LongTexts sparse(2200, n_seen, [](int c) { return c % 2 == 1; });
    LongTexts uneven(1700, n_seen, [](int c) { return c < 300 || c >= 900; });
    const std::vector<float> want = dense.by_shares(0, LongTexts::kTokens, 1);
    EXPECT_EQ(sparse.by_shares(0, LongTexts::kTokens, 2), want) << n_seen;
    EXPECT_EQ(uneven.by_shares(0, LongTexts::kTokens, 2), want) << n_seen;
    if (n_seen < 600) continue;
    const std::vector<float> three(want.begin(),
                                   want.begin() + 3 * LongTexts::kSize * LongTexts::kHeads);
    EXPECT_EQ(sparse.by_parts(0, 3, 2), three) << n_seen;
    EXPECT_EQ(uneven.by_parts(0, 3, 2), three) << n_seen;
  }
}

}  // namespace
}  // namespace outrider::llama
