// Whether a file is a GGUF file at all, before ggml reads it: of another one ggml says only that it
// failed. Tested by llama/files/model_file_test.cc.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace outrider::gguf {

std::string in_quotes(const std::string& path);

// The bytes of the regular file at `path`, which begins as GGUF files do. Errors name the file and
// what would be right: kNotFound, kInvalidArgument (no path; a folder, a device; it cannot be read;
// it is empty, or something else, whose first bytes the message has).
Result<std::uint64_t> size_of_gguf(const std::string& path);

}  // namespace outrider::gguf
