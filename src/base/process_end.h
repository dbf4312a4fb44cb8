// What must be done before the process's statics are destroyed.
#pragma once

#include <atomic>

namespace outrider {

// Has `handler` run when the process ends by exit() or by the return of main(): before the
// destructors of all statics that are made before this call, and, called on the main thread and
// where that one ends the process, before every static's and every handler of std::atexit. The
// first is not enough for threads that compute: ggml and llama.cpp make statics as they go. (A main
// thread that ends alone, by pthread_exit, runs it too.)
//
// Not in a child that was forked and has not asked for it itself. `handler` may run more than once,
// and must not throw. Asking again is fine, and has all handlers run before what was made in
// between. Any thread; throws std::bad_alloc.
void at_process_end(void (*handler)());

// Of this process: another one in a forked child. 0 where there is no fork.
long process_id();

// The process that may use what has threads: the first that asks. A child that is forked later has
// none of these threads, so its calls would wait for ever. Any thread.
class FirstProcess {
 public:
  // Whether this process is the first to ask, or has asked before.
  bool may() noexcept;
  // Whether another one has asked first: this one is its child.
  bool is_another() const noexcept;

 private:
  std::atomic<long> id_{0};
};

}  // namespace outrider
