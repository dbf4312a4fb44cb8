// A tiny model whose next token depends on three tokens of its context only, by construction, so
// that a head of one layer can equal it.
//
// Idea. A test of a trained head wants heads that are right always, never and now and then, without
// training. A head of one layer cannot equal a random target. It can equal this one: every token
// has a code of 40 signs, half of them +1; the embedding holds the code in a first part of the
// residual stream and zeros elsewhere. The first layer's attention finds the tokens `lags[0]` and
// `lags[1]` positions back, exactly, and writes their codes into a second and a third part. Nothing
// else writes to the stream. The logits are a random linear function of the parts: of the current
// token's and both others', or, without `reads_current`, of both others' alone.
//
// How attention finds a distance. Keys are the same vector at every position, queries the same
// vector turned back by `lag` positions, so that rotary position makes a score that depends on the
// distance alone and is largest at `lag`; its size makes the next best weigh e^-50. Where a text is
// too short for the distance, its first token is found. All codes have the same norm, so RMSNorm
// divides by a constant, which the norms' weights multiply back: the parts hold +1 and -1 to within
// rounding, and the head that shifts them, too.
//
// Example, lags {1, 2}: at position t the stream is [code(x_t), code(x_t-1), code(x_t-2), 1]. An
// MTP block gets that of t-1 and the token x_t, and needs to shift by one part.
//
// Architectures. kLlama has taps for EAGLE-3 and DFlash heads (tiny_gguf_eagle3.h,
// tiny_gguf_dflash.h); further layers are there to be tapped, their attention and feed-forward
// parts are computed and write zeros. kHyV3 and kQwen35 bring MTP blocks of their own; the second
// part of kQwen35 is filled by a recurrent layer (its convolution, through the state), the third by
// attention.
//
// Tested by tiny_gguf_lag_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "testing/tiny_gguf.h"
#include "testing/tiny_vocabulary.h"

namespace outrider::testing {

enum class TinyLagArchitecture {
  kLlama,
  kHyV3,    // "hy_v3", dense: MTP blocks, any number of them
  kQwen35,  // "qwen35": every other layer is recurrent, with snapshots; at most one MTP block
};

// What a head makes of its input.
enum class TinyHead {
  kEqual,  // the target's own logits, to within rounding
  kNoise,  // random weights: right as often as chance
};

struct TinyLagOptions {
  TinyLagArchitecture architecture = TinyLagArchitecture::kLlama;
  int n_layer = 4;                   // without MTP blocks; at least 1, for kQwen35 2
  std::array<int, 2> lags = {1, 2};  // 1 to 64, different; MTP and EAGLE-3 heads: {1, 2}
  bool reads_current = true;         // DFlash heads: false
  int n_ctx_train = 4096;

  // One an MTP block (kHyV3, kQwen35). An equal block agrees with the target from a text's third
  // token on; what llama.cpp gives a block before the first token is a row of zeros.
  std::vector<TinyHead> mtp;
  float mtp_noise = 0.0F;  // added to an equal block's matrices, relative to their size
  std::uint64_t noise_seed = 1;

  WeightType weight_type = WeightType::kF32;
  std::uint64_t seed = 1;
  std::string name = "tiny lag";
  float logit_spread = 2.5F;
  float eos_bias = -16.0F;
  float odd_byte_bias = -4.0F;
  TinyVocabularyOptions vocabulary;
};

// Writes the model at `path`, whole or not at all. kInvalidArgument, naming the option, for what
// cannot be.
Status write_tiny_lag(const std::string& path, const TinyLagOptions& options);

// "llama", "hy_v3", "qwen35".
const char* tiny_lag_architecture_name(TinyLagArchitecture architecture);

}  // namespace outrider::testing
