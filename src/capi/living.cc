#include "capi/living.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>

namespace outrider::capi {
namespace {

struct Living {
  std::mutex mutex;  // guards what follows; not held while an instance is shut down, whose
                     // callbacks may make and destroy others
  std::map<Instance*, bool> instances;  // whether it is shut down, or being
  Instance* ending = nullptr;           // being shut down
  std::condition_variable ended;
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
  all.instances.emplace(instance, false);
}

void remove_living(Instance* instance) noexcept {
  Living& all = living();
  std::unique_lock<std::mutex> lock(all.mutex);
  all.instances.erase(instance);
  all.ended.wait(lock, [&] { return all.ending != instance; });
}

void shut_down_living() noexcept {
  Living& all = living();
  std::unique_lock<std::mutex> lock(all.mutex);
  while (true) {
    const auto next = std::find_if(all.instances.begin(), all.instances.end(),
                                   [](const auto& entry) { return !entry.second; });
    if (next == all.instances.end()) return;
    next->second = true;
    Instance* const instance = next->first;
    all.ending = instance;
    lock.unlock();
    instance->shut_down();
    lock.lock();
    all.ending = nullptr;
    all.ended.notify_all();
  }
}

}  // namespace outrider::capi
