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
// (measuring)
//
// tiny_pair_test.cc asserts that agreement falls over these steps.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "testing/tiny_gguf.h"

namespace outrider::testing {

struct TinyPairOptions {
  TinyModelOptions target;        // its `noise` must be 0
  float noise = 0.1F;             // of the draft, 0 to 100
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
