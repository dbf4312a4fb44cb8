#include "base/process_end.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#if defined(__linux__)
#include <unistd.h>
#elif defined(__APPLE__)
#include <pthread.h>
#endif

namespace outrider {
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

thread_local bool main_thread_ended = false;

// Destroyed first of all at the process's end: exit() begins with its thread's own objects.
struct MainThreadHandlers {
  std::vector<void (*)()> handlers;

  ~MainThreadHandlers() {
    main_thread_ended = true;
    for (void (*const handler)() : handlers) handler();
  }
};

}  // namespace

void at_process_end(void (*handler)()) {
  (void)std::atexit(handler);  // where it cannot be had, the process ends without waiting
  if (!is_main_thread() || main_thread_ended) return;
  static thread_local MainThreadHandlers at_end;
  std::vector<void (*)()>& handlers = at_end.handlers;
  if (std::find(handlers.begin(), handlers.end(), handler) == handlers.end()) {
    handlers.push_back(handler);
  }
}

}  // namespace outrider
