// OnExit: what is to be done at a scope's end, however it ends. Tested by on_exit_test.cc.
#pragma once

#include <utility>

namespace outrider {

// `action` must not throw.
template <typename Action>
class OnExit {
 public:
  explicit OnExit(Action action) : action_(std::move(action)) {}
  ~OnExit() { action_(); }
  OnExit(const OnExit&) = delete;
  OnExit& operator=(const OnExit&) = delete;

 private:
  Action action_;
};

}  // namespace outrider
