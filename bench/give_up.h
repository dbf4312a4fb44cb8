// What the benchmarks that run models do with an error: say it and end.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/status.h"

namespace outrider {

[[noreturn]] inline void give_up(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

// The value, or the end, with `what` in front of the error.
template <typename T>
T need(Result<T> result, const std::string& what) {
  if (!result.ok()) give_up(what + ": " + result.status().message());
  return std::move(result).value();
}

}  // namespace outrider
