// LoadTask: the state of one load from a file, from the load request to the end: the target, the
// draft model, or a file of a drafter.
//
//                ask()              begin()              succeed()
//     absent  ----------> waiting ----------> opening  --------------> ready     serving
//     ready   ---------->    ^                 |     |
//     failed  ---------->    |  wait_again()   |     |  fail()
//                            +-----------------+     +---------------> failed
//
//     waiting             fail()       failed, with the reason, as from opening; what is at work
//                                      stays
//     ready, failed       lose()       absent, or failed with a reason; waiting and opening stay
//     any                 take_away()  absent
//
// waiting: the loading thread will open it, as soon as what it is for is there (a target, for a
// draft model and for a drafter's file). opening: it is at it. Both are ModelState::kLoading.
//
// Beside the state, serving(): one is at work. A load that is asked for or fails does not change
// that; succeed() puts the new one at work, and lose() and take_away() none.
//
// Each ask() is a load of its own, with a number. An opening that ends finds out by the number
// whether it is still wanted (is_current()); where it is not, its flag was raised, so that it ends
// soon.
//
// Invariants: an error only when failed; ready is serving.
//
// Who owns one guards it, here by the runtime's mutex. Nothing but the constructor needs memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "serve/runtime_status.h"

namespace outrider {

class LoadTask {
 public:
  enum class State { kAbsent, kWaiting, kOpening, kReady, kFailed };

  // An opening, for whoever does it; the one before has come to its end.
  struct Opening {
    std::uint64_t number = 0;
    // Raised when it is to end: it was called off or replaced.
    std::shared_ptr<std::atomic<bool>> cancel;
  };

  State state() const { return state_; }
  ModelState model_state() const;
  bool serving() const { return serving_; }
  const Status& error() const { return error_; }
  double progress() const { return progress_; }  // 0 to 1, of the newest load
  bool pending() const { return state_ == State::kWaiting || state_ == State::kOpening; }
  bool waiting() const { return state_ == State::kWaiting; }
  bool opening() const { return state_ == State::kOpening; }
  std::uint64_t number() const { return number_; }  // of the newest load

  // Whether `opening` is of the newest load, and that was not called off.
  bool is_current(const Opening& opening) const {
    return state_ == State::kOpening && opening.number == number_;
  }

  // `number`: of no other load of the same owner; later ones are larger.
  void ask(std::uint64_t number);
  // REQUIRES: waiting()
  Opening begin();
  // Never goes back. True when it is worth telling: a hundredth more. REQUIRES: opening()
  bool note_progress(double fraction);
  // What it is for is gone: it will be opened for the next one. REQUIRES: opening()
  void wait_again();
  // REQUIRES: opening()
  void succeed();
  // It failed, or was called off: what is opening ends soon. REQUIRES: pending()
  void fail(Status why);
  // The one at work is lost; without a reason, because what it was for has gone.
  void lose(Status why = {});
  void take_away();
  // The one at work is not at work any more; the state stays. REQUIRES: not ready
  void stop_serving();
  // At the runtime's end: what is opening ends soon.
  void interrupt() { cancel_->store(true); }

  // Empty, or which invariant is broken.
  std::string check_integrity() const;

 private:
  void become(State state, Status error);

  State state_ = State::kAbsent;
  bool serving_ = false;
  std::uint64_t number_ = 0;
  double progress_ = 0.0;
  Status error_;
  std::shared_ptr<std::atomic<bool>> cancel_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace outrider
