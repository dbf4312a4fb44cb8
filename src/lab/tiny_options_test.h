// How this layer's tests open their tiny models.
#pragma once

#include <string>

#include "model/model_options.h"

namespace outrider::lab {

inline ModelOptions tiny_options(const std::string& path) {
  ModelOptions options;
  options.path = path;
  options.n_ctx = 1024;
  options.n_batch = 256;
  options.n_threads = 1;
  options.widest = 8;
  return options;
}

}  // namespace outrider::lab
