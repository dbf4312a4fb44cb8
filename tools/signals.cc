#include "tools/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "tools/report.h"

namespace outrider::tools {
namespace {

// Ends the watching thread; not sent by anybody else in practice, and harmless if so.
constexpr int kWakeUp = SIGUSR2;

bool is_ignored(int number) {
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SignalWatch::SignalWatch(const std::vector<int>& others, NowMs now) : now_(std::move(now)) {
  std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&ending_);
  sigemptyset(&watched_);
  sigaddset(&watched_, kWakeUp);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    if (is_ignored(number)) continue;
    sigaddset(&ending_, number);
    sigaddset(&watched_, number);
  }
  for (const int number : others) {
    sigdelset(&ending_, number);
    if (!is_ignored(number)) sigaddset(&watched_, number);
  }
  pthread_sigmask(SIG_BLOCK, &watched_, &before_);
  thread_ = std::thread([this] { watch(); });
}

SignalWatch::~SignalWatch() {
  stopping_.store(true);
  pthread_kill(thread_.native_handle(), kWakeUp);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalWatch::exit_code() const { return raised() ? kSignalBase + number_.load() : kDone; }

void SignalWatch::on_signal(std::function<void()> callback) {
  std::unique_lock<std::mutex> lock(mutex_);
  callback_ = std::move(callback);
  if (raised() && callback_) callback_();
}

void SignalWatch::on_other(std::function<void(int)> callback) {
  const std::lock_guard<std::mutex> lock(others_mutex_);
  other_callback_ = std::move(callback);
}

void SignalWatch::before_exit(std::function<void()> callback) {
  const std::lock_guard<std::mutex> lock(others_mutex_);
  before_exit_ = std::move(callback);
}

void SignalWatch::lower() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!terminated()) raised_.store(false);
}

// Where the first one only stops an answer (repeat_interrupts()), another that ends all is no
// repetition of it.
bool SignalWatch::is_told_twice(int number) const {
  return now_() - first_ms_ < kSameSignalMs && (number == number_.load() || terminated());
}

// One that asks for an end.
void SignalWatch::take(int number) {
  if (raised()) {
    if (number == SIGINT && repeat_interrupts_.load()) return;
    if (is_told_twice(number)) return;
    // The second one: as if nobody had watched.
    const std::lock_guard<std::mutex> lock(others_mutex_);
    if (before_exit_) before_exit_();
    std::signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &watched_, nullptr);
    kill(getpid(), number);
    // Of a container's first process Linux takes no signal that would end it.
    std::_Exit(kSignalBase + number);
  }
  first_ms_ = now_();
  number_.store(number);
  const std::lock_guard<std::mutex> lock(mutex_);
  raised_.store(true);
  if (callback_) callback_();
}

void SignalWatch::watch() {
  for (;;) {
    int number = 0;
    if (sigwait(&watched_, &number) != 0) continue;
    if (stopping_.load()) return;
    if (number == kWakeUp) continue;
    if (sigismember(&ending_, number) == 1) {
      take(number);
      continue;
    }
    const std::lock_guard<std::mutex> lock(others_mutex_);
    if (other_callback_) other_callback_(number);
  }
}

void stop_process() {
  sigset_t stop;
  sigset_t before;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &stop, &before);
  raise(SIGTSTP);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace outrider::tools
