// StepGate: holds a fake target's evaluations, so that a test says what happens between which two
// of them, on any machine.
//
//   StepGate gate;
//   loader.add("target", {.on_evaluated = gate.hold()});   // held from its first evaluation on
//   ... load it, start a text ...
//   gate.let(3);   // what the text needs to say a few tokens
//   ... here it stands still ...
//   gate.open();   // it runs to its end
//
// What stands still does not end when it is interrupted either. So whoever waits for a cancelled
// text, for a target's end or for a runtime's end opens the gate first, or from another thread. A
// text that only has to be running when something comes needs no gate, but to have no end
// (testing::endless()).
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>

#include "serve/runtime.h"
#include "testing/fake_loader.h"

namespace outrider::testing {

// Closed at the start: each evaluation stands still at its end until it is let through. Opens at
// its own end. Any thread.
class StepGate {
 public:
  // Of the targets of whichever files get hold().
  StepGate() : state_(std::make_shared<State>()) {}
  // Of the target that is at work in `runtime`. REQUIRES: nothing runs on the target
  explicit StepGate(const Runtime& runtime) : StepGate() {
    fake_target(*runtime.target()).fake_model().on_evaluated([held = hold()](std::int64_t) {
      held();
    });
  }
  ~StepGate() { open(); }
  StepGate(const StepGate&) = delete;
  StepGate& operator=(const StepGate&) = delete;

  // As FakeFile::on_evaluated. May outlive the gate, which is open then.
  std::function<void()> hold() const {
    return [state = state_] {
      std::unique_lock<std::mutex> lock(state->mutex);
      ++state->done;
      state->changed.notify_all();
      state->changed.wait(lock, [&] { return state->done <= state->allowed; });
    };
  }

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
  // Those that are done, and no more: the next one stands still.
  void close() {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->allowed = std::min(state_->allowed, state_->done);
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

  std::shared_ptr<State> state_;  // the targets', too, which may live longer
};

}  // namespace outrider::testing
