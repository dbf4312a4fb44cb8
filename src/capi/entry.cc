#include "capi/entry.h"

#include <memory>

#include "backend/llama_loader.h"
#include "base/process_end.h"
#include "capi/background.h"
#include "capi/boundary.h"
#include "capi/living.h"
#include "capi/log.h"
#include "llama/base/backend.h"

namespace outrider_c {
namespace {

outrider::capi::Instance* of(void* instance) {
  return static_cast<outrider::capi::Instance*>(instance);
}

// What instances compute must not outlive what they compute with. The app's log callback may be
// part of what is gone. An exit() from inside a callback cannot wait for who waits for that
// callback, nor, from a log line's, for the thread that it is on.
void end_all() noexcept {
  outrider::capi::end_log();
  if (outrider::capi::in_log_callback()) return;
  const bool wait = !outrider::capi::in_callback();
  if (wait) outrider::capi::finish_background();
  outrider::capi::shut_down_living(wait);
}

}  // namespace

const char* version() noexcept { return OUTRIDER_VERSION; }

void* create(const char* config_json, char** error) noexcept {
  std::unique_ptr<outrider::ModelLoader> loader;
  try {
    outrider::llama::ensure_backend();
    outrider::at_process_end(end_all);
    loader = std::make_unique<outrider::LlamaLoader>(
        outrider::LlamaLoaderOptions{.at_weights = [] { outrider::at_process_end(end_all); }});
  } catch (...) {
    outrider::capi::leave_error(error, "out of memory");
    return nullptr;
  }
  return outrider::capi::create(config_json, error, std::move(loader));
}

void destroy(void* instance) noexcept { outrider::capi::destroy(of(instance)); }

char* call(void* instance, const char* request_json) noexcept {
  return outrider::capi::call(of(instance), request_json);
}

void free_string(char* string) noexcept { outrider::capi::free_string(string); }

int subscribe(void* instance, void (*callback)(void*, const char*), void* user) noexcept {
  return outrider::capi::subscribe(of(instance), callback, user);
}

void set_log(void (*callback)(void*, int, const char*), void* user) noexcept {
  outrider::capi::set_log(callback, user);
}

}  // namespace outrider_c
