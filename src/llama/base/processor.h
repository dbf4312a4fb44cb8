// Whether this processor has what llama.cpp's kernels were compiled for. A package is compiled for
// AVX2 (docs/decisions.md), a build that is tuned to its machine for more; elsewhere the first of
// these instructions would end the process.
#pragma once

#include "base/status.h"

namespace outrider::llama {

// To be asked before ensure_backend(). Fails (kUnsupported) with what is missing.
Status check_processor();

}  // namespace outrider::llama
