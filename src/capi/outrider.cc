// The exported functions: names only (capi/entry.h says why).
#include <outrider.h>

#include "capi/entry.h"

const char* outrider_version(void) { return outrider_c::version(); }

outrider* outrider_create(const char* config_json, char** error) {
  return static_cast<outrider*>(outrider_c::create(config_json, error));
}

void outrider_destroy(outrider* instance) { outrider_c::destroy(instance); }

char* outrider_call(outrider* instance, const char* request_json) {
  return outrider_c::call(instance, request_json);
}

void outrider_free(char* string) { outrider_c::free_string(string); }

int outrider_subscribe(outrider* instance, outrider_event_fn callback, void* user) {
  return outrider_c::subscribe(instance, callback, user);
}

void outrider_set_log(outrider_log_fn callback, void* user) { outrider_c::set_log(callback, user); }
