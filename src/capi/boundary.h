// What the C functions do. No exception leaves them; src/capi/outrider.cc only adds the names.
//
// Strings that are returned come from malloc. Tested by boundary_test.cc over models of
// hand-written numbers, and by tests/c_test.c through the library.
#pragma once

#include <memory>

#include "capi/instance.h"
#include "serve/loader.h"

namespace outrider::capi {

// All as in include/outrider.h.
Instance* create(const char* config_json, char** error,
                 std::unique_ptr<ModelLoader> loader) noexcept;
void destroy(Instance* instance) noexcept;
char* call(Instance* instance, const char* request_json) noexcept;
int subscribe(Instance* instance, EventFunction callback, void* user) noexcept;
void free_string(char* string) noexcept;

// Whether this process was forked from one that called this before, with the reason in *error. To
// be asked before an instance is made: what that process has of threads, its pool of those that
// compute among them, is not here, and its locks may be held for ever.
bool refuse_forked(char** error) noexcept;

// Leaves a copy of `message` in *error, where there is an `error`; NULL without memory.
void leave_error(char** error, const char* message) noexcept;

}  // namespace outrider::capi
