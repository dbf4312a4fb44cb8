#include "threads/deep_stack.h"

#include <pthread.h>

#include <cstring>
#include <string>

namespace outrider {
namespace {

void* call(void* work) {
  (*static_cast<const std::function<void()>*>(work))();
  return nullptr;
}

}  // namespace

Status call_with_stack(std::size_t bytes, const std::function<void()>& work) {
  constexpr std::size_t kPage = 65536;  // a multiple of every system's
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    pthread_t thread{};
    error = pthread_attr_setstacksize(&attributes, (bytes + 2 * kPage - 1) / kPage * kPage);
    if (error == 0) {
      error = pthread_create(&thread, &attributes, call, const_cast<std::function<void()>*>(&work));
    }
    (void)pthread_attr_destroy(&attributes);
    if (error == 0) error = pthread_join(thread, nullptr);
  }
  if (error == 0) return Status();
  return resource_exhausted("no thread with a stack of " + std::to_string(bytes >> 20) +
                            " MiB can be had: " + std::strerror(error));
}

}  // namespace outrider
