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

#include <cstdint>
#include <string>
#include <vector>

struct gguf_context;

namespace outrider::llama {

// What is wrong with the keys of `architecture` that say so: "<key> is ..., but must be ..." or the
// like; empty where nothing is known against them. Reads no tensors.
std::string wrong_windows(const gguf_context* gguf, const std::string& architecture);

// For each layer (block_count of them) whether it has a window; empty where no layer has one, or
// where it is not known: of architectures that are not listed in gguf_windows.cc.
std::vector<bool> windowed_layers(const gguf_context* gguf, const std::string& architecture);

// How many layers, from the first on, have cells of their own: of `n_layer` all, unless the
// architecture is one of those whose last layers use an earlier one's. From 0 to `n_layer`.
std::int32_t count_layers_with_cells(const gguf_context* gguf, const std::string& architecture,
                                     std::int32_t n_layer);

}  // namespace outrider::llama
