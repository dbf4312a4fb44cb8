// Crowding: whether other threads want the core that this one computes on.
//
// Idea. The kernel counts for each thread the time that it was ready to run and did not, because
// another had its core (Linux: the second number of /proc/thread-self/schedstat). On a machine of
// one's own that is next to nothing; beside a program that computes as well it is a part of all
// time.
#pragma once

#include <cstdint>

namespace outrider::threads {

// A number of the calling thread: no other has it, nor will have, as addresses and the system's.
std::uint64_t thread_number();

// About the thread that looks. Another may look later: then what was known is forgotten. Where the
// kernel does not tell, nothing is crowded.
class Crowding {
 public:
  bool crowded() const { return crowded_; }

  // Looks again if that is due (every 20 ms; 5 microseconds). `now_ns`: a clock that never falls.
  void look(std::int64_t now_ns);

  // Of the time since the last look, what part a thread waits for its core where it is crowded.
  static constexpr double kShare = 0.05;
  static constexpr std::int64_t kEachNs = 20'000'000;

  // What look() does, given what the kernel says: nanoseconds waited since the thread began.
  void judge(std::int64_t now_ns, std::int64_t waited_ns);

 private:
  std::uint64_t thread_ = 0;  // that it is about
  bool crowded_ = false;
  std::int64_t looked_at_ns_ = 0;
  std::int64_t waited_ns_ = 0;
};

}  // namespace outrider::threads
