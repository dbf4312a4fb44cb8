// A GGUF file's header together with all that it was read from, for who needs more of it than the
// header says: a vocabulary of 150,000 tokens takes 10 to 100 ms each time it is read.
// For this layer's own files only.
#pragma once

#include <string>

#include "base/status.h"
#include "llama/base/handles.h"
#include "llama/files/gguf_header.h"

namespace outrider::llama {

struct OpenedGguf {
  GgufHeader header;
  GgufHandle gguf;  // metadata and tensors' places, without their data
};

// As read_gguf_header(), with its errors.
Result<OpenedGguf> open_gguf(const std::string& path);

}  // namespace outrider::llama
