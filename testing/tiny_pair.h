// Pairs of tiny models: a draft that is the target plus noise.
//
// Idea. Tests of speculation need acceptance from next to everything down to chance, without
// training anything. The draft's matrices are the target's plus Gaussian noise of a given size
// relative to each matrix's root mean square; noise 0 gives the target's own weights.
//
// Measured: share of positions at which target and draft have the same most likely token, on the
// target's own greedy text of 200 tokens after "Once upon a time", mean over seeds 1 to 8 (least
// and most of the seeds in brackets), Q8_0 KV:
//
//   noise | Q8_0 weights       | F32 weights        | Q4_0 weights
//   0     | 1.00               | 1.00               | 1.00
//   0.01  | 0.89 (0.85 - 0.91) | 0.92 (0.89 - 0.94) | 0.67 (0.59 - 0.70)
//   0.02  | 0.83 (0.79 - 0.87) | 0.85 (0.83 - 0.89) | 0.58 (0.49 - 0.61)
//   0.05  | 0.65 (0.57 - 0.69) | 0.66 (0.61 - 0.71) | 0.43 (0.40 - 0.48)
//   0.1   | 0.46 (0.40 - 0.53) | 0.45 (0.39 - 0.55) | 0.34 (0.30 - 0.40)
//   0.2   | 0.23 (0.15 - 0.27) | 0.24 (0.19 - 0.33) | 0.20 (0.17 - 0.24)
//   0.5   | 0.05 (0.03 - 0.07) | 0.05 (0.02 - 0.10) | 0.04 (0.02 - 0.07)
//   1     | 0.01 (0.00 - 0.03) | 0.01 (0.00 - 0.01) | 0.01 (0.00 - 0.03)
//
// (AMD EPYC, one thread. Q4_0 falls faster at first: small noise moves weights to the next of only
// 16 levels.) Chance is 1/300.
//
// tiny_pair_test.cc asserts that agreement falls over these steps.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "testing/tiny_gguf.h"

namespace outrider::testing {

struct TinyPairOptions {
  TinyModelOptions target;  // its `noise` must be 0
  float noise = 0.1F;       // of the draft, 0 to 100
  std::uint64_t noise_seed = 1;
  // The draft's vocabulary where it is not the target's. Weights belong to ids: token i has the
  // same embedding in both as long as i is below both sizes.
  bool other_vocabulary = false;
  TinyVocabularyOptions draft_vocabulary;
};

// Writes both models, each whole or not at all. On failure the target may be there already.
Status write_tiny_pair(const std::string& target_path, const std::string& draft_path,
                       const TinyPairOptions& options);

}  // namespace outrider::testing
