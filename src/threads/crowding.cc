#include "threads/crowding.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>

namespace outrider::threads {

namespace {

// Nanoseconds that the calling thread was ready to run and did not; less than 0: nobody tells. The
// file is not kept open: an app that closes what it does not know would close it under us.
std::int64_t waited_by_this_thread() {
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[64] = {};
  const ssize_t n = read(file, text, sizeof text - 1);
  (void)close(file);
  std::int64_t ran_ns = 0;
  std::int64_t waited_ns = 0;
  const bool known = n > 0 && std::sscanf(text, "%" SCNd64 " %" SCNd64, &ran_ns, &waited_ns) == 2;
  return known ? waited_ns : -1;
}

}  // namespace

std::uint64_t thread_number() {
  static std::atomic<std::uint64_t> last{0};
  static thread_local const std::uint64_t number = ++last;
  return number;
}

void Crowding::judge(std::int64_t now_ns, std::int64_t waited_ns) {
  if (looked_at_ns_ != 0 && now_ns > looked_at_ns_) {
    const double share =
        static_cast<double>(waited_ns - waited_ns_) / static_cast<double>(now_ns - looked_at_ns_);
    crowded_ = share > kShare;
  }
  looked_at_ns_ = now_ns;
  waited_ns_ = waited_ns;
}

void Crowding::look(std::int64_t now_ns) {
  if (looked_at_ns_ != 0 && now_ns - looked_at_ns_ < kEachNs && thread_ == thread_number()) return;
  if (thread_ != thread_number()) *this = Crowding();
  thread_ = thread_number();
  const std::int64_t waited_ns = waited_by_this_thread();
  if (waited_ns >= 0) return judge(now_ns, waited_ns);
  looked_at_ns_ = now_ns;
  crowded_ = false;
}

}  // namespace outrider::threads
