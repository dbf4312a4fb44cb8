#include "llama/kernels/piece_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "testing/chi_square.h"

namespace outrider::llama {
namespace {

std::vector<std::uint8_t> memory_for(int nth) {
  // What an earlier operation left.
  return std::vector<std::uint8_t>(PieceRanges::bytes(nth) + 1, 0xA5);
}

// Whichever thread is how quick, each piece is taken once; first a thread's own, in order.
TEST(PieceRanges, EachPieceIsTakenOnceAndOwnOnesFirst) {
  std::mt19937_64 random(testing::test_seed(5));
  for (int nth = 1; nth <= 9; ++nth) {
    for (std::int64_t n = 0; n <= 40; ++n) {
      std::vector<std::uint8_t> memory = memory_for(nth);
      std::vector<PieceRanges> threads;
      for (int t = 0; t < nth; ++t) threads.emplace_back(memory.data() + 1, n, t, nth);
      std::vector<std::vector<std::int64_t>> taken(static_cast<std::size_t>(nth));
      std::vector<int> left(static_cast<std::size_t>(nth));
      std::iota(left.begin(), left.end(), 0);
      while (!left.empty()) {
        const auto i = random() % left.size();
        const auto t = static_cast<std::size_t>(left[i]);
        const std::int64_t piece = threads[t].take();
        if (piece < 0) {
          EXPECT_EQ(threads[t].take(), -1);
          left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
          taken[t].push_back(piece);
        }
      }
      std::vector<std::int64_t> all;
      for (int t = 0; t < nth; ++t) {
        const std::vector<std::int64_t>& of = taken[static_cast<std::size_t>(t)];
        const std::int64_t begin = n * t / nth;
        const std::int64_t end = n * (t + 1) / nth;
        const auto own = [&](std::int64_t piece) { return piece >= begin && piece < end; };
        EXPECT_TRUE(std::is_partitioned(of.begin(), of.end(), own));
        EXPECT_TRUE(std::is_sorted(of.begin(), std::partition_point(of.begin(), of.end(), own)));
        all.insert(all.end(), of.begin(), of.end());
      }
      std::sort(all.begin(), all.end());
      std::vector<std::int64_t> each(static_cast<std::size_t>(n));
      std::iota(each.begin(), each.end(), 0);
      ASSERT_EQ(all, each) << n << " pieces, " << nth << " threads";
    }
  }
}

// One operation after the other on the same memory, as in a graph.
TEST(PieceRanges, ThreadsThatRunAtOnceTakeEachOnce) {
  constexpr int kThreads = 4;
  constexpr std::int64_t kOperations = 2000;
  std::vector<std::uint8_t> memory = memory_for(kThreads);
  std::vector<std::int64_t> times(kOperations * 32, 0);
  std::barrier meeting(kThreads);
  const auto run = [&](int ith) {
    for (std::int64_t op = 0; op < kOperations; ++op) {
      PieceRanges ranges(memory.data(), op % 32, ith, kThreads);
      meeting.arrive_and_wait();
      for (std::int64_t p = ranges.take(); p >= 0; p = ranges.take()) {
        ++times[static_cast<std::size_t>(op * 32 + p)];
      }
      meeting.arrive_and_wait();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back(run, t);
  }
  for (std::int64_t op = 0; op < kOperations; ++op) {
    for (std::int64_t p = 0; p < 32; ++p) {
      ASSERT_EQ(times[static_cast<std::size_t>(op * 32 + p)], p < op % 32 ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace outrider::llama
