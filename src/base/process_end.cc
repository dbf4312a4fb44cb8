#include "base/process_end.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif
#if defined(__APPLE__)
#include <pthread.h>
#endif

namespace outrider {

long process_id() {
#if defined(__unix__) || defined(__APPLE__)
  return getpid();
#else
  return 0;
#endif
}

bool FirstProcess::may() noexcept {
  long first = 0;
  return id_.compare_exchange_strong(first, process_id()) || first == process_id();
}

bool FirstProcess::is_another() const noexcept {
  const long first = id_.load();
  return first != 0 && first != process_id();
}

namespace {

bool is_main_thread() {
#if defined(__linux__)
  return gettid() == getpid();
#elif defined(__APPLE__)
  return pthread_main_np() != 0;
#else
  return false;
#endif
}

struct Handlers {
  std::mutex mutex;  // guards what follows
  std::vector<void (*)()> all;
  std::atomic<long> process{0};  // in which they were asked for last
};

// Never destroyed: it is for the end.
Handlers& handlers() {
  static Handlers& instance = *new Handlers();
  return instance;
}

// A forked child has copies of the handlers, but none of the threads that they would wait for.
void run_all() {
  if (handlers().process.load() != process_id()) return;
  std::vector<void (*)()> all;
  {
    const std::lock_guard<std::mutex> lock(handlers().mutex);
    all = handlers().all;
  }
  for (void (*const handler)() : all) handler();
}

thread_local bool main_thread_ended = false;

// Destroyed first of all at the process's end: exit() begins with its thread's own objects.
struct MainThread {
  ~MainThread() {
    main_thread_ended = true;
    run_all();
  }
};

}  // namespace

void at_process_end(void (*handler)()) {
  {
    Handlers& h = handlers();
    const std::lock_guard<std::mutex> lock(h.mutex);
    if (std::find(h.all.begin(), h.all.end(), handler) == h.all.end()) h.all.push_back(handler);
    h.process.store(process_id());
  }
  (void)std::atexit(run_all);  // where it cannot be had, the process ends without waiting
  if (!is_main_thread() || main_thread_ended) return;
  static thread_local MainThread at_end;
  (void)at_end;
}

}  // namespace outrider
