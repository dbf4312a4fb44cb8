// The sizes of a model's heads, as far as its architecture's graph in llama.cpp asserts them: keys
// and values of one size, and positions that are in all of a key or in an even part of it.
//
// Some architectures have heads of other sizes, and many assert nothing. So only those are held to
// it that assert it (`grep 'GGML_ASSERT(n_embd_head ==' src/models/*.cpp` in llama.cpp), or that
// hand the number to ggml_rope_ext, which does.
//
// Tested by gguf_checks_test.cc.
#pragma once

#include <string>

struct gguf_context;

namespace outrider::llama {

// The key, what it is, and what would be right; empty: nothing is wrong.
std::string wrong_head_sizes(const gguf_context* gguf, const std::string& architecture);

}  // namespace outrider::llama
