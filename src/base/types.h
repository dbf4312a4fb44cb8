// The small integer types that name the project's index spaces, and what is said with them.
#pragma once

#include <cstdint>
#include <limits>

namespace outrider {

using Token = std::int32_t;  // id in a model's vocabulary, 0 <= id < n_vocab
using Pos = std::int32_t;  // index of a token in its sequence's text, 0 = first token of the prompt
using NodeId = std::int32_t;  // index in one TokenTree, 0 = root
using SeqId = std::int32_t;  // index of a sequence in a model, 0 <= id < capabilities().n_sequences

// What models are opened for at most, and requests can ask for.
inline constexpr std::int32_t kMaxSequences = 64;
inline constexpr std::int32_t kMaxStepWidth = 64;  // tokens of one sequence in a step

inline constexpr Token kNoToken = -1;
inline constexpr NodeId kNoNode = -1;
inline constexpr NodeId kRoot = 0;

// The logit of a token that may not follow.
inline constexpr float kRuledOut = -std::numeric_limits<float>::infinity();

}  // namespace outrider
