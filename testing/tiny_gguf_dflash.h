// DFlash heads for tiny lag targets, as files that llama.cpp v0.5.0 loads beside the target.
//
// Idea. A DFlash head gets layer inputs of the target for all tokens before the last, writes keys
// and values of its own for them, and guesses a whole block in one pass: its input is the last
// token and then mask tokens, and each mask's position gives the distribution of its own token,
// whatever the guesses before it. To equal a target the target's next token must not depend on the
// newest ones: lags {l, l + 1} of at least the block's length and reads_current = false. Then a
// mask's attention finds the same two tokens as the target's, one position further back.
//
// Tested by tiny_gguf_heads_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "testing/tiny_gguf_lag.h"

namespace outrider::testing {

struct TinyDflashOptions {
  TinyHead head = TinyHead::kEqual;
  int block_size = 5;  // the last token and 4 guesses; kEqual: at most lags[0] + 2
  std::vector<int> taps = {0,
                           1};  // kEqual: codes are read from the last, the constant from the first
  float noise = 0.0F;           // of an equal head
  std::uint64_t noise_seed = 1;
  WeightType weight_type = WeightType::kF32;
  std::uint64_t seed = 1;  // of a noise head
};

// Writes a head, whole or not at all. kInvalidArgument, naming the option, for what cannot be.
Status write_tiny_dflash(const std::string& path, const TinyLagOptions& target,
                         const TinyDflashOptions& options = TinyDflashOptions());

}  // namespace outrider::testing
