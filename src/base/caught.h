// An exception that was caught, as a Status.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "base/status.h"

namespace outrider {

// kResourceExhausted where memory was lacking, which itself needs none; else kInternal, with what
// it says. Never throws: where there is no memory for that, memory is what is lacking.
inline Status caught(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return resource_exhausted("out of memory");
  }
  try {
    return internal_error(error.what());
  } catch (const std::bad_alloc&) {
    return resource_exhausted("out of memory");
  }
}

// The same of the loading of `path`, which is named unless memory was lacking. Never throws.
inline Status caught_loading(const std::exception& error, const std::string& path) {
  Status status = caught(error);
  if (status.code() != StatusCode::kInternal) return status;
  try {
    return status.with_context("cannot load '" + path + "'");
  } catch (const std::bad_alloc& lacking) {
    return caught(lacking);
  }
}

}  // namespace outrider
