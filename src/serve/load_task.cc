#include "serve/load_task.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace outrider {

ModelState LoadTask::model_state() const {
  if (pending()) return ModelState::kLoading;
  if (state_ == State::kFailed) return ModelState::kFailed;
  return state_ == State::kReady ? ModelState::kReady : ModelState::kAbsent;
}

void LoadTask::ask(std::uint64_t number) {
  interrupt();
  number_ = number;
  progress_ = 0.0;
  error_ = Status();
  state_ = State::kWaiting;
}

LoadTask::Opening LoadTask::begin() {
  assert(waiting());
  cancel_->store(false);
  state_ = State::kOpening;
  return {.number = number_, .cancel = cancel_};
}

bool LoadTask::note_progress(double fraction) {
  assert(opening());
  const bool shown = fraction >= progress_ + 0.01;
  progress_ = std::clamp(fraction, progress_, 1.0);
  return shown;
}

void LoadTask::wait_again() {
  assert(opening());
  state_ = State::kWaiting;
}

void LoadTask::become(State state, Status error) {
  state_ = state;
  error_ = std::move(error);
}

void LoadTask::succeed() {
  assert(opening());
  become(State::kReady, Status());
  progress_ = 1.0;
  serving_ = true;
}

void LoadTask::fail(Status why) {
  assert(pending());
  interrupt();
  become(State::kFailed, std::move(why));
}

void LoadTask::lose(Status why) {
  serving_ = false;
  if (pending()) return;
  const State state = why.ok() ? State::kAbsent : State::kFailed;
  become(state, std::move(why));
}

void LoadTask::take_away() {
  interrupt();
  serving_ = false;
  become(State::kAbsent, Status());
}

void LoadTask::stop_serving() {
  assert(state_ != State::kReady);
  serving_ = false;
}

std::string LoadTask::check_integrity() const {
  if (!error_.ok() && state_ != State::kFailed) return "an error without a failure";
  if (error_.ok() && state_ == State::kFailed) return "a failure without an error";
  if (state_ == State::kReady && !serving_) return "it is ready, but not at work";
  if (state_ == State::kAbsent && serving_) return "it is at work, but absent";
  return "";
}

}  // namespace outrider
