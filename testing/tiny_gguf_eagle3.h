// EAGLE-3 heads for tiny llama targets, as files that llama.cpp v0.5.0 loads beside the target.
//
// Idea. At a position P the head gets three of the target's layer inputs (its taps), joined by `fc`
// into a row g, and the token of P + 1; it guesses the token of P + 2 and gives a row for the next
// step. For a tiny lag target (tiny_gguf_lag.h) with lags {1, 2} that is a shift by one part: the
// first part is the token's code, the second comes out of g, the third out of the head's own cache
// at P - 1. So each of the three inputs, when wrong, makes guesses wrong. The taps are read in
// parts: the first part from taps[0], the second from taps[1], the third and the constant from
// taps[2].
//
// For other llama targets (TinyModelOptions) only noise makes sense.
//
// Tested by tiny_gguf_heads_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "testing/tiny_gguf.h"
#include "testing/tiny_gguf_lag.h"

namespace outrider::testing {

struct TinyEagle3Options {
  TinyHead head = TinyHead::kEqual;
  // Layers of the target, below n_layer, whose input is tapped. kEqual: taps[1] and taps[2] at
  // least 1, since the first layer fills the parts.
  std::array<int, 3> taps = {0, 1, 2};
  // The tokens that the head knows, all different: its d2t. Empty: all of the target's, no d2t.
  std::vector<Token> tokens;
  bool own_output = true;  // false: the target's, which needs `tokens` empty
  bool own_embedding = false;
  // Of an equal head, relative to each matrix's size. Of chains of 4 guesses at temperature 0, 0.03
  // leaves 71 %, 0.06 60 %, 0.12 35 %, 0.5 under 1 %.
  float noise = 0.0F;
  std::uint64_t noise_seed = 1;
  WeightType weight_type = WeightType::kF32;
  std::uint64_t seed = 1;  // of a noise head
};

// Each writes one head, whole or not at all. kInvalidArgument, naming the option, for what cannot
// be.
Status write_tiny_eagle3(const std::string& path, const TinyLagOptions& target,
                         const TinyEagle3Options& options = TinyEagle3Options());
Status write_tiny_eagle3(const std::string& path, const TinyModelOptions& target,
                         const TinyEagle3Options& options);

}  // namespace outrider::testing
