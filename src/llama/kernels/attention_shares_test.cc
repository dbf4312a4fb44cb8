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

// An attention of 36 heads on 9 of keys.
class LongTexts {
 public:
  static constexpr int kSize = 32;
  static constexpr int kTokens = 24;
  static constexpr std::int64_t kHeads = 36;
  static constexpr std::int64_t kKeyHeads = 9;
  using Sees = std::function<bool(int token, int cell)>;

  // Cells that no token sees hold no numbers; the others the same keys and values, in their order,
  // wherever they lie.
  LongTexts(int n_cells, const Sees& sees)
      : context_(ggml_init({std::size_t{64} << 20, nullptr, false})), n_cells_(n_cells) {
    ggml_context* g = context_.get();
    std::mt19937_64 random(29);
    std::normal_distribution<float> normal;
    q_ = ggml_new_tensor_3d(g, GGML_TYPE_F32, kSize, kTokens, kHeads);
    for (std::int64_t i = 0; i < ggml_nelements(q_); ++i) {
      static_cast<float*>(q_->data)[i] = normal(random);
    }
    const auto is_seen = [&](int c) {
      for (int t = 0; t < kTokens; ++t) {
        if (sees(t, c)) return true;
      }
      return false;
    };
    const auto cache = [&] {
      ggml_tensor* cells = ggml_new_tensor_3d(g, GGML_TYPE_F16, kSize, kKeyHeads, n_cells);
      auto* data = static_cast<ggml_fp16_t*>(cells->data);
      for (int c = 0; c < n_cells; ++c) {
        const bool seen = is_seen(c);
        for (int i = 0; i < kSize * kKeyHeads; ++i) {
          *data++ = ggml_fp32_to_fp16(seen ? normal(random) : INFINITY);
        }
      }
      return ggml_permute(g, cells, 0, 2, 1, 3);
    };
    k_ = cache();
    v_ = cache();
    mask_ = ggml_new_tensor_2d(g, GGML_TYPE_F16, n_cells, kTokens);
    auto* mask = static_cast<ggml_fp16_t*>(mask_->data);
    for (int t = 0; t < kTokens; ++t) {
      for (int c = 0; c < n_cells; ++c) {
        *mask++ = ggml_fp32_to_fp16(sees(t, c) ? 0.0F : -INFINITY);
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
    // What lies in it makes no numbers, and nobody may write behind it.
    explicit Memory(std::size_t bytes)
        : bytes_(bytes), at_(static_cast<std::uint8_t*>(std::aligned_alloc(64, bytes + kGuard))) {
      std::memset(at_, 0xFF, bytes_ + kGuard);
    }
    ~Memory() {
      for (std::size_t i = 0; i < kGuard; ++i) EXPECT_EQ(at_[bytes_ + i], 0xFF);
      std::free(at_);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    std::uint8_t* at() const { return at_; }

   private:
    static constexpr std::size_t kGuard = 256;
    std::size_t bytes_;
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

std::vector<float> some_tokens(const std::vector<float>& all, std::size_t first, std::size_t n) {
  const auto each = static_cast<std::ptrdiff_t>(all.size() / LongTexts::kTokens);
  const auto begin = all.begin() + each * static_cast<std::ptrdiff_t>(first);
  return {begin, begin + each * static_cast<std::ptrdiff_t>(n)};
}

void expect_each_alone(LongTexts* texts) {
  const std::vector<float> all = texts->by_shares(0, LongTexts::kTokens, 1);
  for (const int nth : {2, 5, 40}) {
    EXPECT_EQ(texts->by_shares(0, LongTexts::kTokens, nth), all) << nth << " threads";
  }
  for (std::size_t t = 0; t < LongTexts::kTokens; ++t) {
    ASSERT_EQ(texts->by_shares(t, 1, 3), some_tokens(all, t, 1)) << "token " << t;
    ASSERT_EQ(texts->by_parts(t, 1, 2), some_tokens(all, t, 1)) << "token " << t;
  }
  for (const int nth : {2, 4}) {
    EXPECT_EQ(texts->by_parts(0, 4, nth), some_tokens(all, 0, 4)) << nth << " threads";
  }
}

// So many rows that one thread works on them in several calls.
TEST(LongTexts, ATokenIsWhatItIsAloneHoweverThreadsShareTheWork) {
  LongTexts texts(4096, [](int t, int c) { return c % 37 != 3 && c < 3900 + t; });
  expect_each_alone(&texts);
}

// As the branches of a tree: what the tokens have in common, then cells of which each sees some, so
// that a token's parts end in other places than its neighbour's.
TEST(LongTexts, BranchesAreWhatEachIsAlone) {
  LongTexts texts(1600, [](int t, int c) { return c < 600 || (c < 1400 + t && c % 2 == t % 2); });
  expect_each_alone(&texts);
}

TEST(LongTexts, ATokenThatSeesNothingBecomesZerosBesideOthers) {
  LongTexts texts(512, [](int t, int c) { return t != 5 && c < 300; });
  const std::vector<float> all = texts.by_shares(0, LongTexts::kTokens, 2);
  EXPECT_EQ(some_tokens(all, 5, 1), std::vector<float>(all.size() / LongTexts::kTokens, 0.0F));
  EXPECT_EQ(texts.by_shares(4, 1, 1), some_tokens(all, 4, 1));
}

// Between the cells that are seen there may be others.
TEST(LongTexts, WhereTheCellsLieDoesNotMatter) {
  for (const int n : {200, 250, 256, 257, 600, 1000}) {
    LongTexts dense(1100, [n](int t, int c) { return c < n + t; });
    LongTexts sparse(2200, [n](int t, int c) { return c % 2 == 1 && c / 2 < n + t; });
    LongTexts uneven(
        1700, [n](int t, int c) { return c < 100 ? c < n + t : c >= 700 && c - 600 < n + t; });
    const std::vector<float> want = dense.by_shares(0, LongTexts::kTokens, 1);
    EXPECT_EQ(sparse.by_shares(0, LongTexts::kTokens, 2), want) << n;
    EXPECT_EQ(uneven.by_shares(0, LongTexts::kTokens, 2), want) << n;
    if (n < 1000) continue;  // three parts on two threads are not shared evenly
    EXPECT_EQ(sparse.by_parts(0, 3, 2), some_tokens(want, 0, 3)) << n;
    EXPECT_EQ(uneven.by_parts(0, 3, 2), some_tokens(want, 0, 3)) << n;
  }
}

}  // namespace
}  // namespace outrider::llama
