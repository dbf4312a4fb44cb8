// What a worker's folder of tensors (`outrider worker --tensor-cache`) may not hold.
//
// ggml writes each large tensor to a file that is named by its hash, and later takes what such a
// file holds for the tensor, without looking. One that a full disk or the worker's end cut short
// would be weights whose rest was never set, and no error.
//
// Tested by tensor_cache_test.cc.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace outrider::llama {

// Removes the files in `folder` that have a hash for a name (16 hexadecimal digits) and another one
// themselves. Others stay. Returns how many. Reads all of them: about a second a gigabyte. Errors:
// kInvalidArgument (the folder, or a file in it, cannot be read).
Result<std::int64_t> remove_damaged_tensors(const std::string& folder);

}  // namespace outrider::llama
