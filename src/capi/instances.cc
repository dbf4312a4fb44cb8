#include "capi/instances.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace outrider::capi {
namespace {

// Busy: somebody shuts it down, keeps what it learned, or destroys it.
enum class State { kAtWork, kBusy, kShutDown, kKept };

struct Instances {
  std::mutex mutex;  // guards what follows; not held while somebody is busy with an instance, whose
                     // callbacks may make and destroy others
  std::map<Instance*, State> living;
  std::condition_variable changed;  // a state
  // Those that end in the background, a list, so that none is ever lost for want of memory. One
  // thread at a time, which ends when there is nothing left.
  Instance* first_to_end = nullptr;
  bool running = false;
  std::thread thread;
};

// Never destroyed: instances may be destroyed while the process ends.
Instances& instances() {
  static Instances& all = *new Instances();
  return all;
}

// Ends those in the list, on this thread. `background`: it is all.thread. Else those that it ends
// are left to it: the callback that destroyed one may still run, and wait for whoever is here.
void end_listed(Instances& all, bool background = false) {
  for (;;) {
    std::unique_ptr<Instance> instance;  // is destroyed once the mutex is free
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (!background && all.running) return;
    instance.reset(all.first_to_end);
    if (instance == nullptr) {
      if (background) all.running = false;
      return;
    }
    all.first_to_end = instance->next;
  }
}

}  // namespace

void add_living(Instance* instance) {
  Instances& all = instances();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.living.emplace(instance, State::kAtWork);
}

void begin_destroying(Instance* instance) noexcept {
  Instances& all = instances();
  std::unique_lock<std::mutex> lock(all.mutex);
  const auto found = all.living.find(instance);
  if (found == all.living.end()) return;
  all.changed.wait(lock, [&] { return found->second != State::kBusy; });
  found->second = State::kBusy;
}

void remove_living(Instance* instance) noexcept {
  Instances& all = instances();
  // Told while the mutex is held: the process may end as soon as it is free.
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.living.erase(instance);
  all.changed.notify_all();
}

void end_in_background(std::unique_ptr<Instance> instance) noexcept {
  instance->close();
  Instances& all = instances();
  const std::lock_guard<std::mutex> lock(all.mutex);
  instance->next = all.first_to_end;
  all.first_to_end = instance.release();
  if (all.running) return;
  try {
    if (all.thread.joinable()) all.thread.join();  // it is at its end, and needs the mutex no more
    all.thread = std::thread([&all] { end_listed(all, /*background=*/true); });
    all.running = true;
  } catch (const std::system_error&) {  // no thread now
  } catch (const std::bad_alloc&) {
  }
}

void end_waiting() noexcept { end_listed(instances()); }

void finish_background() noexcept {
  Instances& all = instances();
  for (;;) {
    std::thread last;
    {
      const std::lock_guard<std::mutex> lock(all.mutex);
      last.swap(all.thread);
    }
    if (!last.joinable()) break;
    last.join();
  }
  end_listed(all);
}

void shut_down_living(bool wait) noexcept {
  Instances& all = instances();
  std::unique_lock<std::mutex> lock(all.mutex);
  const auto find = [&all](State state) {
    return std::find_if(all.living.begin(), all.living.end(),
                        [state](const auto& entry) { return entry.second == state; });
  };
  const auto go_through = [&](State from, State to, void (Instance::*work)()) {
    while (true) {
      const auto next = find(from);
      if (next == all.living.end()) {
        if (!wait || find(State::kBusy) == all.living.end()) return;
        all.changed.wait(lock);
        continue;
      }
      next->second = State::kBusy;
      lock.unlock();
      (next->first->*work)();
      lock.lock();
      next->second = to;
      all.changed.notify_all();
    }
  };
  // Writing takes as long as the disk: nobody computes meanwhile.
  go_through(State::kAtWork, State::kShutDown, &Instance::shut_down);
  go_through(State::kShutDown, State::kKept, &Instance::keep_learned);
}

}  // namespace outrider::capi
