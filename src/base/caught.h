// An exception that was caught, as a Status.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "base/status.h"

namespace outrider {

// kResourceExhausted where memory was lacking, which itself needs none; else kInternal, with what
// it says.
inline Status caught(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return resource_exhausted("out of memory");
  }
  return internal_error(error.what());
}

// The same of the loading of `path`, which is named unless memory was lacking.
inline Status caught_loading(const std::exception& error, const std::string& path) {
  Status status = caught(error);
  if (status.code() != StatusCode::kInternal) return status;
  return status.with_context("cannot load '" + path + "'");
}

}  // namespace outrider
