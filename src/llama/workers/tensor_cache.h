// What a worker's folder of tensors (`outrider worker --tensor-cache`) may not hold: what is
// damaged, and more than its limit.
//
// ggml writes each large tensor to a file that is named by its hash, and later takes what such a
// file holds for the tensor, without looking. One that a full disk or the worker's end cut short
// would be weights whose rest was never set, and no error.
//
// It removes none, so that the folder has the tensors of all models that the worker ever had a part
// of. Nor does it note which it reads: what was written longest ago goes first, whether it is in
// use or not, and is sent again where it is.
//
// Both are done when a worker starts. What is written while it runs is limited by the next start.
//
// Tensors are the files with a hash for a name (16 hexadecimal digits). Others stay, and do not
// count. Tested by tensor_cache_test.cc.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace outrider::llama {

// Removes the tensors in `folder` whose hash is not their name. Returns how many. Reads all of
// them: about a second a gigabyte. Errors: kInvalidArgument (the folder, or a file in it, cannot be
// read).
Result<std::int64_t> remove_damaged_tensors(const std::string& folder);

// Removes the tensors that were written longest ago, until the others have `most` bytes or fewer.
// Returns how many. Reads none. Errors: kInvalidArgument (the folder cannot be read, or a file in
// it not removed).
Result<std::int64_t> remove_oldest_tensors(const std::string& folder, std::uint64_t most);

}  // namespace outrider::llama
