#include "threads/crowding.h"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

namespace outrider::threads {

Crowding::~Crowding() {
  if (file_ >= 0) (void)close(file_);
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

// Which thread the file is about is decided when it is opened.
bool Crowding::open_for_this_thread() {
  static thread_local char this_thread = 0;
  if (thread_ == &this_thread) return file_ >= 0;
  if (file_ >= 0) (void)close(file_);
  file_ = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  thread_ = &this_thread;
  looked_at_ns_ = 0;
  crowded_ = false;
  return file_ >= 0;
}

void Crowding::look(std::int64_t now_ns) {
  if (looked_at_ns_ != 0 && now_ns - looked_at_ns_ < kEachNs) return;
  if (!open_for_this_thread()) return;
  char text[64] = {};
  std::int64_t ran_ns = 0;
  std::int64_t waited_ns = 0;
  const bool known = pread(file_, text, sizeof text - 1, 0) > 0 &&
                     std::sscanf(text, "%" SCNd64 " %" SCNd64, &ran_ns, &waited_ns) == 2;
  if (known) judge(now_ns, waited_ns);
}

}  // namespace outrider::threads
