// StepGate: holds a fake target's evaluations, so that a test says what happens between which two
// of them, on any machine.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>

#include "serve/runtime.h"
#include "testing/fake_loader.h"

namespace outrider::testing {

// Of the target that is at work in `runtime`. Closed at the start: each evaluation stands still at
// its end until it is let through. Opens at its own end.
class StepGate {
 public:
  // REQUIRES: nothing runs on the target
  explicit StepGate(const Runtime& runtime) : state_(std::make_shared<State>()) {
    fake_target(*runtime.target()).fake_model().on_evaluated([state = state_](std::int64_t) {
      std::unique_lock<std::mutex> lock(state->mutex);
      ++state->done;
      state->changed.notify_all();
      state->changed.wait(lock, [&] { return state->done <= state->allowed; });
    });
  }
  ~StepGate() { open(); }
  StepGate(const StepGate&) = delete;
  StepGate& operator=(const StepGate&) = delete;

  // `n` more. When it is open, no effect.
  void let(std::int64_t n) {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->allowed < kAll) state_->allowed += n;
    state_->changed.notify_all();
  }
  // All, from now on.
  void open() {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->allowed = kAll;
    state_->changed.notify_all();
  }
  // Until an evaluation stands still.
  void wait_until_held() {
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->done > state_->allowed; });
  }

  static FakeTarget& fake_target(const Target& target) {
    return const_cast<FakeTarget&>(dynamic_cast<const FakeTarget&>(target));
  }

 private:
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::int64_t done = 0;  // evaluations
    std::int64_t allowed = 0;
  };

  std::shared_ptr<State> state_;  // the target's, too, which may live longer
};

}  // namespace outrider::testing
