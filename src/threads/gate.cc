#include "threads/gate.h"

#include <algorithm>
#include <chrono>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#endif

namespace outrider::threads {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace {

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");  // about as long as x86's pause; yield returns at once
#endif
}

// std::atomic's own wait yields four times first (libstdc++ 12). Whoever yields waits behind every
// other process' time slice, whoever sleeps goes first when woken.
#if defined(__linux__)
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

void sleep_at(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  (void)syscall(SYS_futex, &value, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
}

void wake_all_at(const std::atomic<std::uint32_t>& value) {
  (void)syscall(SYS_futex, &value, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}
#else
void sleep_at(const std::atomic<std::uint32_t>& value, std::uint32_t old) { value.wait(old); }

void wake_all_at(std::atomic<std::uint32_t>& value) { value.notify_all(); }
#endif

}  // namespace

void Patience::learn(std::int64_t ns, std::int64_t now_ns) {
  crowding_.look(now_ns);
  spin_ns_ = ns < kMostNs ? std::min(kMostNs, 2 * spin_ns_) : std::max(kLeastNs, spin_ns_ / 2);
}

// Of the two writes of set() and of a sleeper (value, n_sleepers_) one comes first in the order of
// all sequentially consistent operations: either set() sees the sleeper, or it sees the value.
void Gate::set(std::uint32_t value) {
  value_.store(value, std::memory_order_seq_cst);
  if (n_sleepers_.load(std::memory_order_seq_cst) != 0) wake_all_at(value_);
}

void Gate::sleep_while(std::uint32_t old) const {
  n_sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (value_.load(std::memory_order_seq_cst) == old) sleep_at(value_, old);
  n_sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

std::uint32_t Gate::wait_while(std::uint32_t old, Patience& patience) const {
  // Most waits end within a microsecond; only others are worth asking the clock, which takes 25 ns.
  constexpr int kPausesAtATime = 32;
  std::int64_t begin = 0;
  for (;;) {
    for (int i = 0; i < kPausesAtATime; ++i) {
      if (const std::uint32_t now = value(); now != old) {
        if (begin != 0) {
          const std::int64_t end = now_ns();
          patience.learn(end - begin, end);
        }
        return now;
      }
      relax();
    }
    const std::int64_t now = now_ns();
    if (begin == 0) begin = now;
    if (now - begin >= patience.spin_ns()) break;
  }
  sleep_while(old);
  const std::int64_t end = now_ns();
  patience.learn(end - begin, end);
  return value();
}

}  // namespace outrider::threads
