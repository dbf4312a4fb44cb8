// DRY: a penalty on tokens that would go on with a repetition of the text's end.
//
// Idea. Where the last n tokens also stand k tokens earlier, the token that followed them there
// would make the repetition one longer. From allowed_length on such a token loses
// multiplier * base ^ (n - allowed_length). A repetition ends at a sequence breaker
// (llama/vocabulary/dry_breakers.h), and a token that is a breaker alone loses nothing.
//
// The numbers are those of llama.cpp's sampler, to the bit. That one is not used since its breakers
// are copied with it, though only the text changes.
//
// Example, allowed_length 2: behind "a b c c b c y a b c" the last three also stand seven tokens
// earlier, so c, which followed them, loses multiplier * base; y followed "b c" and loses
// multiplier; b followed "c" alone and loses nothing.
//
// Cost. Linear in the window, by the Z algorithm (Gusfield, "Algorithms on Strings, Trees and
// Sequences", 1997, section 1.4) from the end on.
//
// Source: p-e-w, "DRY: A modern repetition penalty", oobabooga/text-generation-webui#5677, and
// llama.cpp's src/llama-sampler.cpp. Tested by row_edits_test.cc and sampler_state_test.cc, against
// llama.cpp's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/types.h"
#include "llama.h"
#include "llama/vocabulary/dry_breakers.h"
#include "model/sampler.h"

namespace outrider::llama {

// Immutable; any thread.
class DryPenalty {
 public:
  // Memory of apply(), for one thread.
  struct Scratch {
    std::vector<std::size_t> repeats;
    std::vector<std::int32_t> longest;
  };

  // REQUIRES: valid options, with DRY on.
  DryPenalty(const SamplingOptions& options, std::shared_ptr<const DryBreakers> breakers);

  // Takes the penalties off the logits of `candidates`, which are in the order of their ids, for
  // what would follow `text`. Of that the last dry_penalty_last_n tokens are looked at.
  void apply(std::span<const Token> text, std::span<llama_token_data> candidates,
             Scratch& scratch) const;

 private:
  float penalty(std::int32_t length) const;

  float multiplier_;
  float base_;
  std::int32_t allowed_length_;
  std::int32_t most_;  // exponent; 0: any
  std::size_t window_;
  std::shared_ptr<const DryBreakers> breakers_;
};

}  // namespace outrider::llama
