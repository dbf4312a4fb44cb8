#include "serve/events.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace outrider {
namespace {

// True when `event` went into one that waits already.
bool joined(std::deque<RuntimeEvent>& waiting, RuntimeEvent& event) {
  if (event.model) {
    if (waiting.empty() || !waiting.back().model) return false;
    ModelEvent& last = *waiting.back().model;
    const ModelStatus& status = event.model->status;
    const bool progress = last.role == event.model->role && status.path == last.status.path &&
                          status.state == ModelState::kLoading &&
                          last.status.state == ModelState::kLoading;
    if (!progress) return false;
    last = std::move(*event.model);
    return true;
  }
  if (!event.completion) return false;
  // Not past a model's or a drafter's event: these stay where they are in the order.
  std::deque<RuntimeEvent>::reverse_iterator same = waiting.rbegin();
  while (same != waiting.rend() && same->completion &&
         same->completion->id != event.completion->id) {
    ++same;
  }
  if (same == waiting.rend() || !same->completion) return false;
  std::vector<SaidToken>& tokens = same->completion->tokens;
  // Whatever throws does so here. Doubled: room for the new ones alone would move all that wait
  // with each token.
  const std::size_t needed = tokens.size() + event.completion->tokens.size();
  if (needed > tokens.capacity()) tokens.reserve(std::max(needed, 2 * tokens.capacity()));
  tokens.insert(tokens.end(), std::make_move_iterator(event.completion->tokens.begin()),
                std::make_move_iterator(event.completion->tokens.end()));
  same->completion->result = std::move(event.completion->result);
  return true;
}

}  // namespace

EventThread::~EventThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EventThread::subscribe(EventCallback callback, bool wait) {
  std::unique_lock<std::mutex> lock(mutex_);
  waiting_.clear();  // what happened before is not for the new one
  lost_ = false;
  callback_ = callback ? std::make_shared<const EventCallback>(std::move(callback)) : nullptr;
  if (!wait || std::this_thread::get_id() == thread_.get_id()) return;
  // The call that is running now may be the old one's; later ones are not.
  const std::uint64_t last = begun_;
  changed_.wait(lock, [this, last] { return ended_ >= last; });
}

bool EventThread::wanted() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return callback_ != nullptr;
}

void EventThread::post(RuntimeEvent event) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (callback_ == nullptr) return;
    if (joined(waiting_, event)) return;  // whoever posted that one has woken the thread
    waiting_.push_back(std::move(event));
  }
  changed_.notify_all();
}

// Needs no memory.
void EventThread::lose() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    lost_ = callback_ != nullptr;
  }
  changed_.notify_all();
}

void EventThread::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || lost_ || !waiting_.empty(); });
    if (!lost_ && waiting_.empty()) return;
    RuntimeEvent event;  // empty where one was lost
    if (!std::exchange(lost_, false)) {
      event = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const std::shared_ptr<const EventCallback> callback = callback_;
    if (callback == nullptr) continue;
    ++begun_;
    lock.unlock();
    try {
      (*callback)(event);
    } catch (const std::exception&) {  // the client's own; nobody here can do anything about it
    }
    lock.lock();
    ++ended_;
    changed_.notify_all();
  }
}

}  // namespace outrider
