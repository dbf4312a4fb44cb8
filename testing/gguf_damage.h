// Files that a loader must refuse: damaged copies of a good GGUF, and files that never were one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "gguf.h"

namespace outrider::testing {

// The first `bytes` bytes of `from` (all of it where it is shorter).
Status copy_truncated(const std::string& from, const std::string& to, std::uint64_t bytes);

// A copy whose byte at `offset` is replaced; kInvalidArgument when `from` is not that long.
Status copy_with_byte(const std::string& from, const std::string& to, std::uint64_t offset,
                      std::uint8_t value);

// A copy with the string metadata `key` set to `value`, tensors unchanged. For example
// ("general.architecture", "gptj") or ("tokenizer.ggml.model", "none").
Status copy_with_string(const std::string& from, const std::string& to, const std::string& key,
                        const std::string& value);

// A copy with its metadata changed and without the tensor `left_out` (empty: with all);
// kInvalidArgument when there is no such tensor.
Status copy_changed(const std::string& from, const std::string& to,
                    const std::function<void(gguf_context*)>& change, const std::string& left_out);

// A copy without the metadata `key`, or without the tensor `name`.
Status copy_without_key(const std::string& from, const std::string& to, const std::string& key);
Status copy_without_tensor(const std::string& from, const std::string& to, const std::string& name);

// One file that is not a usable model, and what it is, for a test to loop over.
struct BadModelFile {
  std::string what;  // "an empty file"
  std::string path;
};

// Writes one of each kind into the folder `folder`, made from the good model `good`: empty; text;
// the magic alone; a version from the future; a header that declares more than there is; cut in
// the header, in the tensor data, and just before the end; GGUF without tensors; another
// architecture; a missing tensor; a missing key; a folder instead of a file.
Result<std::vector<BadModelFile>> write_bad_model_files(const std::string& good,
                                                        const std::string& folder);

// Copies of `good` with values on which llama.cpp itself aborts. Nothing but a loader that checks
// them first may be given these.
Result<std::vector<BadModelFile>> write_models_that_abort(const std::string& good,
                                                          const std::string& folder);

}  // namespace outrider::testing
