#include "capi/living.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>

namespace outrider::capi {
namespace {

enum class State { kAtWork, kBusy, kShutDown };  // busy: somebody shuts it down or destroys it

struct Living {
  std::mutex mutex;  // guards what follows; not held while somebody is busy with an instance, whose
                     // callbacks may make and destroy others
  std::map<Instance*, State> instances;
  std::condition_variable changed;
};

// Never destroyed: instances may be destroyed while the process ends.
Living& living() {
  static Living& instances = *new Living();
  return instances;
}

}  // namespace

void add_living(Instance* instance) {
  Living& all = living();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.instances.emplace(instance, State::kAtWork);
}

void begin_destroying(Instance* instance) noexcept {
  Living& all = living();
  std::unique_lock<std::mutex> lock(all.mutex);
  const auto found = all.instances.find(instance);
  if (found == all.instances.end()) return;
  all.changed.wait(lock, [&] { return found->second != State::kBusy; });
  found->second = State::kBusy;
}

void remove_living(Instance* instance) noexcept {
  Living& all = living();
  // Told while the mutex is held: the process may end as soon as it is free.
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.instances.erase(instance);
  all.changed.notify_all();
}

void shut_down_living(bool wait) noexcept {
  Living& all = living();
  std::unique_lock<std::mutex> lock(all.mutex);
  const auto find = [&all](State state) {
    return std::find_if(all.instances.begin(), all.instances.end(),
                        [state](const auto& entry) { return entry.second == state; });
  };
  while (true) {
    const auto next = find(State::kAtWork);
    if (next == all.instances.end()) {
      if (!wait || find(State::kBusy) == all.instances.end()) return;
      all.changed.wait(lock);
      continue;
    }
    next->second = State::kBusy;
    lock.unlock();
    next->first->shut_down();
    lock.lock();
    next->second = State::kShutDown;
    all.changed.notify_all();
  }
}

}  // namespace outrider::capi
