#include "capi/entry.h"

#include <new>

#include "backend/llama_loader.h"
#include "capi/boundary.h"
#include "capi/log.h"

namespace outrider_c {
namespace {

outrider::capi::Instance* of(void* instance) {
  return static_cast<outrider::capi::Instance*>(instance);
}

}  // namespace

const char* version() noexcept { return OUTRIDER_VERSION; }

void* create(const char* config_json, char** error) noexcept {
  std::unique_ptr<outrider::ModelLoader> loader(new (std::nothrow) outrider::LlamaLoader());
  if (loader == nullptr) {
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
