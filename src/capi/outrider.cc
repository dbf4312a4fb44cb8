// The exported functions: capi/boundary.h, with models from llama.cpp.

// In C, `outrider` is a type; in C++, our namespace. Here the type goes by another name, which the
// names of functions with C linkage do not depend on.
#define outrider outrider_instance
#include <outrider.h>
#undef outrider

#include <memory>

#include "backend/llama_loader.h"
#include "base/process_end.h"
#include "capi/boundary.h"
#include "capi/instances.h"
#include "capi/log.h"
#include "llama/base/backend.h"
#include "llama/base/processor.h"

namespace outrider::capi {
namespace {

Instance* of(outrider_instance* instance) { return reinterpret_cast<Instance*>(instance); }

// What instances compute must not outlive what they compute with. The app's log callback may be
// part of what is gone. An exit() from inside a callback cannot wait for who waits for that
// callback, nor, from a log line's, for the thread that it is on.
void end_all() noexcept {
  end_log();
  if (in_log_callback()) return;
  const bool wait = !in_callback();
  if (wait) finish_background();
  shut_down_living(wait);
}

Instance* create_with_llama(const char* config_json, char** error) noexcept {
  if (refuse_forked(error)) return nullptr;
  std::unique_ptr<ModelLoader> loader;
  try {
    const Status processor = llama::check_processor();
    if (!processor.ok()) {
      leave_error(error, processor.message().c_str());
      return nullptr;
    }
    llama::ensure_backend();
    at_process_end(end_all);
    loader = std::make_unique<LlamaLoader>(
        LlamaLoaderOptions{.at_weights = [] { at_process_end(end_all); }});
  } catch (...) {
    leave_error(error, "out of memory");
    return nullptr;
  }
  return create(config_json, error, std::move(loader));
}

}  // namespace
}  // namespace outrider::capi

namespace capi = outrider::capi;

const char* outrider_version(void) { return OUTRIDER_VERSION; }

outrider_instance* outrider_create(const char* config_json, char** error) {
  return reinterpret_cast<outrider_instance*>(capi::create_with_llama(config_json, error));
}

void outrider_destroy(outrider_instance* instance) { capi::destroy(capi::of(instance)); }

char* outrider_call(outrider_instance* instance, const char* request_json) {
  return capi::call(capi::of(instance), request_json);
}

void outrider_free(char* string) { capi::free_string(string); }

int outrider_subscribe(outrider_instance* instance, outrider_event_fn callback, void* user) {
  return capi::subscribe(capi::of(instance), callback, user);
}

void outrider_set_log(outrider_log_fn callback, void* user) { capi::set_log(callback, user); }
