// How large the states of a model's recurrent layers are, as llama.cpp makes them.
//
// A sequence has one state in each of these layers: what its convolution saw last, and what its
// scan adds up (llama-hparams.cpp n_embd_r(), n_embd_s(), in F32). They are as large whatever the
// context, and where llama.cpp keeps snapshots there are kSnapshots more of them
// (llama-memory-recurrent.cpp): 63 MB with 30 layers of 128 x 4,096, 2 GB for 4 sequences.
//
// Left out: the third state of Qwen4-exp's layers with embeddings of their own, which is small.
//
// Tested by gguf_header_test.cc, and against llama.cpp's own figures by llama/model/memory_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct gguf_context;

namespace outrider::llama {

// Tokens that models with recurrent layers can go back, where llama.cpp keeps snapshots of their
// state (elsewhere the number has no effect). Each takes as much memory as the state itself: 18 MB
// for Qwen3.5 0.8B. The same whether speculation is on or off, as everything that may touch
// results.
inline constexpr std::int32_t kSnapshots = 7;

struct RecurrentStates {
  std::uint64_t bytes_of_one = 0;  // of a sequence's state over all layers; 0: there is none
  bool snapshots = false;          // llama.cpp keeps kSnapshots of it beside it

  // What a context has for so many sequences.
  std::uint64_t bytes(std::int32_t n_sequences) const;
};

// `n_head_kv`: GgufHeader's, 0 for recurrent layers. Of an architecture without such, or one that
// is not known, and where the numbers are too large for any machine: no bytes.
RecurrentStates recurrent_states(const gguf_context* gguf, const std::string& architecture,
                                 const std::vector<std::int32_t>& n_head_kv);

}  // namespace outrider::llama
