// How threads share the pieces of an operation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace outrider::llama {

// Pieces 0 to n - 1, each for one thread of `nth`. Each thread has a range of its own, in order: so
// it reads one stream of weights, and writes the same columns of outputs in each layer, which then
// lie in its own cache. Whoever has ended takes from the next threads' ranges, in turn, so that a
// thread that is held up does not hold up the others for long.
//
// Steps of the stand-in on a Zen 5 with 1, 8, 16 tokens take 15.8, 28.7, 53.5 ms, and 16.6, 30.2,
// 54.0 where threads take pieces from one counter (docs/decisions.md, "What one core writes").
class PieceRanges {
  static constexpr std::size_t kLine = 128;  // or a pair of lines, which some processors fetch

 public:
  // Of the memory that the threads share, at any address.
  static std::size_t bytes(int nth) { return kLine * (static_cast<std::size_t>(nth) + 1); }

  // Each thread makes its own on the same `memory`. No thread may take a piece before all have.
  PieceRanges(void* memory, std::int64_t n, int ith, int nth)
      : counters_((reinterpret_cast<std::uintptr_t>(memory) + kLine - 1) / kLine * kLine),
        n_(n),
        ith_(ith),
        nth_(nth) {
    new (&next_of(ith)) std::atomic<std::int64_t>(begin(ith));
  }

  // The next piece for this thread; -1: there are no more.
  std::int64_t take() {
    for (; n_ended_ < nth_; ++n_ended_) {
      const int whose = (ith_ + n_ended_) % nth_;
      const std::int64_t end = begin(whose + 1);
      if (next_of(whose).load(std::memory_order_relaxed) >= end) continue;
      const std::int64_t piece = next_of(whose).fetch_add(1, std::memory_order_relaxed);
      if (piece < end) return piece;
    }
    return -1;
  }

 private:
  std::int64_t begin(int thread) const { return n_ * thread / nth_; }

  // The next piece of a thread's range, in a line of its own.
  std::atomic<std::int64_t>& next_of(int thread) const {
    return *reinterpret_cast<std::atomic<std::int64_t>*>(counters_ +
                                                         static_cast<std::size_t>(thread) * kLine);
  }

  std::uintptr_t counters_;
  std::int64_t n_;
  int ith_;
  int nth_;
  int n_ended_ = 0;  // ranges, this thread's own first, of which nothing is left
};

}  // namespace outrider::llama
