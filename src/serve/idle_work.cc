#include "serve/idle_work.h"

#include <utility>

namespace outrider {

Status IdleWork::queue(const Work& work, Lock& lock) {
  Entry entry{.work = &work};
  queue_.push_back(&entry);
  ++clients_;
  shared_.decode_work.notify_all();
  changed_.wait(lock, [&entry] { return entry.done; });
  --clients_;
  changed_.notify_all();
  return std::move(entry.status);
}

IdleWork::Entry& IdleWork::take() {
  Entry& entry = *queue_.front();
  queue_.pop_front();
  return entry;
}

void IdleWork::done(Entry& entry, Status status) {
  entry.status = std::move(status);
  entry.done = true;
  changed_.notify_all();
}

void IdleWork::end_everything(Lock& lock) {
  while (wanted()) done(take(), RuntimeShared::is_shut_down());
  changed_.wait(lock, [this] { return clients_ == 0; });
}

}  // namespace outrider
