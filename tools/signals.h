// Ctrl-C, SIGTERM and SIGHUP (a closed terminal, a lost connection) as a request to end, not as a
// death: the first one raises a flag and calls whoever asked; the second one has its usual effect.
// Where one may stop several things after each other (repeat_interrupts()), lower() makes the next
// signal a first one again.
//
// What comes within half a second of the first is no second wish, but the same one told twice: GNU
// timeout signals its child and then the group that the child is in; a shell that ends passes on
// the SIGHUP that the terminal has sent already.
//
// How. The signals are blocked in all threads and a thread of their own waits for them (sigwait),
// so that what happens on a signal is ordinary code, which may take locks. SIGPIPE is ignored: a
// reader that went away is seen as EPIPE where it is written to. Other signals can be watched the
// same way; they do not ask for an end, and are told each time.
//
// Tested by signals_test.cc.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace outrider::tools {

// At most one at a time; create it before any other thread is started, so that they inherit the
// blocked signals. A signal that is ignored when it is created (a background job, nohup) stays
// ignored.
class SignalWatch {
 public:
  // Between the first signal and the next that counts.
  static constexpr double kSameSignalMs = 500.0;

  // `others`: signals that on_other() is told of; SIGHUP among them asks for no end. `now` is asked
  // on the watching thread.
  explicit SignalWatch(const std::vector<int>& others = {}, NowMs now = steady_ms);
  ~SignalWatch();  // as before, SIGPIPE apart
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // Raised with the first signal, until lower().
  const std::atomic<bool>* flag() const { return &raised_; }
  bool raised() const { return raised_.load(); }

  // The exit code that tells of the signal: 128 + its number; kDone where none is raised.
  int exit_code() const;

  // From now on a SIGINT that comes while another is still raised does nothing: who presses Ctrl-C
  // twice to stop an answer does not lose the conversation. The others keep their usual effect
  // then.
  void repeat_interrupts() { repeat_interrupts_.store(true); }

  // What was to end has ended: the flag is lowered, unless it is SIGTERM or SIGHUP that raised it.
  void lower();

  // Whether the program shall end, and not only what it is doing.
  bool terminated() const { return raised() && number_.load() != SIGINT; }

  // Called once, on the watching thread, with the first signal; at once, on this thread, when it
  // has already come. An empty one takes it back; afterwards it is not running any more.
  void on_signal(std::function<void()> callback);

  // Called on the watching thread with each of the other signals; nothing comes of those before.
  // An empty one takes it back, as above. It may call stop_process().
  void on_other(std::function<void(int number)> callback);

  // Called on the watching thread before a second signal has its usual effect.
  void before_exit(std::function<void()> callback);

 private:
  void watch();
  void take(int number);
  bool is_told_twice(int number) const;

  const NowMs now_;
  sigset_t ending_;  // those of watched_ that ask for an end
  sigset_t watched_;
  sigset_t before_;
  std::mutex mutex_;  // guards callback_
  std::function<void()> callback_;
  std::mutex others_mutex_;  // guards the two below
  std::function<void(int)> other_callback_;
  std::function<void()> before_exit_;
  std::atomic<bool> raised_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> repeat_interrupts_{false};
  std::atomic<int> number_{0};
  double first_ms_ = 0.0;  // when it was raised; the watching thread's
  std::thread thread_;
};

// Stops the process as Ctrl-Z does; returns when it goes on.
void stop_process();

}  // namespace outrider::tools
