// Which of two sets of factors a model's rotary positions take (GgufHeader::short_context).
//
// llama.cpp chooses by the cells of the context, one set for all sequences
// (llama_model::get_rope_factors). Ours has more cells than a sequence has tokens: those of the
// other sequences, and spare ones. So the set would change with the number of sequences, and with
// it every text. It follows the tokens of one sequence instead, as in a context of llama.cpp's that
// has one.
//
// Tested by llama/model/rope_factors_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "llama.h"
#include "llama/files/gguf_header.h"

namespace outrider::llama {

// Behind the architecture's name, the key of the longest context for the first set.
inline constexpr std::string_view kOriginalContext = "rope.scaling.original_context_length";

// Whether sequences of `n_ctx` tokens (0: as many as the model was trained with) take the first
// set. False without two sets.
bool takes_short_factors(const GgufHeader& header, std::int32_t n_ctx);

// What says so to llama.cpp when a file is loaded: llama_model_params::kv_overrides, of which the
// last ends the list. The context then needs GgufHeader::short_context as its yarn_orig_ctx.
// REQUIRES: takes_short_factors().
std::array<llama_model_kv_override, 2> keep_short_factors(const GgufHeader& header);

}  // namespace outrider::llama
