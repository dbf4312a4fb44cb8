// What llama.cpp would abort on while it loads a damaged file, checked before it sees it.
//
// Found by changing single bytes of a good file and values of its metadata: assertions in
// llama-model.cpp (the numbers of layers and experts, how positions are scaled), llama-vocab.cpp
// (two tokens with one text), the architectures' graphs (the sizes of heads, gguf_head_sizes.h; how
// positions are turned, and attention scaled by them), their caches (windows, gguf_windows.h) and
// ggml's normalisation (its epsilon). A damaged file may still abort it in ways not listed here:
// what is not trusted belongs into a process of its own.
//
// Tested by gguf_checks_test.cc.
#pragma once

#include <string>

#include "base/status.h"

struct gguf_context;

namespace outrider::llama {

// Errors: kDataLoss, naming the file, the key and what would be right. Milliseconds for 250,000
// tokens.
Status check_gguf_values(const std::string& path, const gguf_context* gguf,
                         const std::string& architecture);

// Whether contexts of the architecture may have this base of rotary positions: DeepSeek-OCR's graph
// asserts 10000.
bool takes_rope_base(const std::string& architecture, float base);

}  // namespace outrider::llama
