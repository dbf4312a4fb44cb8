// Which layers of a model see all tokens and which a window of the latest only, as llama.cpp reads
// it from a file; and what of it llama.cpp asserts when it makes a context.
//
// A model whose architecture has windows must have a layer with one (llama-model.cpp:2685), in the
// architectures whose cache is of the plain kind. The last layers of Gemma 3n and Gemma 4 use the
// cells of an earlier layer (llama-model.cpp:2660, llama-kv-cache.cpp:268): the last but one of
// those with cells where they have a window, else the last, which must be of their own kind.
//
// Tested by gguf_windows_test.cc.
#pragma once

#include <string>

struct gguf_context;

namespace outrider::llama {

// What is wrong with the keys of `architecture` that say so: "<key> is ..., but must be ..." or the
// like; empty where nothing is known against them. Reads no tensors.
std::string wrong_windows(const gguf_context* gguf, const std::string& architecture);

}  // namespace outrider::llama
