// Crowding: whether other threads want the core that this one computes on.
//
// Idea. The kernel counts for each thread the time that it was ready to run and did not, because
// another had its core (Linux: the second number of /proc/thread-self/schedstat). On a machine of
// one's own that is next to nothing; beside a program that computes as well it is a part of all
// time.
#pragma once

#include <cstdint>

namespace outrider::threads {

// About the thread that looks; another may do so later. Where the kernel does not tell, nothing is
// crowded.
class Crowding {
 public:
  Crowding() = default;
  ~Crowding();
  Crowding(const Crowding&) = delete;
  Crowding& operator=(const Crowding&) = delete;

  bool crowded() const { return crowded_; }

  // Looks again if that is due (every 20 ms; 2 microseconds). `now_ns`: a clock that never falls.
  void look(std::int64_t now_ns);

  // Of the time since the last look, what part a thread waits for its core where it is crowded.
  static constexpr double kShare = 0.05;
  static constexpr std::int64_t kEachNs = 20'000'000;

  // What look() does, given what the kernel says: nanoseconds waited since the thread began.
  void judge(std::int64_t now_ns, std::int64_t waited_ns);

 private:
  bool open_for_this_thread();

  int file_ = -1;
  const void* thread_ = nullptr;  // that the file is about
  bool crowded_ = false;
  std::int64_t looked_at_ns_ = 0;
  std::int64_t waited_ns_ = 0;
};

}  // namespace outrider::threads
