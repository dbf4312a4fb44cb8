// PromptShare: how many tokens of prompts a step may read while other texts go on.
//
// Idea. A token bucket over time (RFC 2697's, with milliseconds): texts that go on lose at most a
// share of their time to prompts, and kBurstMs. Every step fills the bucket with its share of what
// the step took, up to kBurstMs; what the prompts' part of a step took is taken out. So a short
// prompt is read at once, unless others came just before it, and a long one in small pieces. What
// is read in advance is a loan: half of the share pays it back while prompts are read, so that a
// long prompt too costs its share of the time that it takes, and no more. One prompt gets `share`.
// Several get as much as that many texts less one would: the time of everybody who waits counts.
//
// What a draft model reads of a text before it guesses (engine/asking.h) holds the others up
// likewise. That has a bucket of its own, of kReadMs, which is filled by the same share: so a short
// prompt is read at once by the draft, too, and a long one in pieces. It is taken out of the
// prompts' bucket as well; while prompts wait, it adds to the loan, so that they keep half of their
// share. While nobody's text goes on but theirs who wait for it, it is not limited.
//
// A pass that something else held up (a stopped process, a laptop that slept) is no measurement of
// its tokens: it counts as no more than is credible (plan/held_up.h). A pause of a minute, counted
// in full, kept the next prompts waiting for four.
//
// Example. A step of one text takes 54 ms and each token more 13: of 2,000 tokens about 75 are read
// at once, then eight in some twenty steps until ten seconds have passed, and then eight in ten, in
// which the text keeps 0.8 of its speed. Read in pieces of 128, a step took 1,700 ms.
//
// One thread. Tested by prompt_share_test.cc and, on a clock of numbers, engine_prompts_test.cc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/held_up.h"

namespace outrider {

class PromptShare {
 public:
  static constexpr double kBurstMs = 1000.0;
  // No smaller pieces but the last: kernels work on tiles.
  static constexpr std::int64_t kPiece = 8;
  // What drafters may read at once where nothing was read lately.
  static constexpr double kReadMs = 250.0;

  // At most `chunk` tokens a step (>= 1). `share`: of the time, 0 < share <= 1; 1 is no limit.
  PromptShare(std::int32_t chunk, double share) : chunk_(chunk), share_(share) {}

  std::int64_t chunk() const { return chunk_; }
  // Pieces end at multiples of it where they can.
  std::int64_t grid() const { return share_ < 1.0 ? std::min(kPiece, chunk_) : chunk_; }

  // Tokens of `prompts` prompts that the next step may read beside `texts` texts; 0: wait.
  // REQUIRES: both > 0
  std::int64_t tokens(std::int64_t texts, std::int64_t prompts);

  // Milliseconds for which drafters may read in the next step, for `readers` texts of which they
  // must read much, beside `texts` others; at most kReadMs, or infinity. REQUIRES: readers > 0
  double reading_ms(std::int64_t texts, std::int64_t readers);
  // How long it takes until they may have read for `ms` under the same conditions.
  double reading_takes_ms(double ms) const;

  // A step beside texts took `ms`, `prompt_ms` of which for `n_prompt` tokens of prompts, and
  // `reading_ms` for what drafters read. 0 <= prompt_ms + reading_ms <= ms
  void note(double ms, double prompt_ms, std::int64_t n_prompt, double reading_ms = 0.0);

 private:
  double share_of(std::int64_t texts, std::int64_t prompts) const;
  double most_ms(std::int64_t n_prompt) const;

  std::int64_t chunk_;
  double share_;
  double now_ = 0.0;             // the share of this step's tokens(); 0: no prompt waits
  double credit_ms_ = kBurstMs;  // below 0: more was taken than there was
  double loan_ms_ = 0.0;         // that prompts began with, or drafters read, and is not paid back
  bool reading_ = false;         // a prompt waited for the last step
  double ms_per_token_ = 0.0;    // 0: not known
  double reads_ms_ = kReadMs;    // the drafters' bucket
  double reads_share_ = 0.0;     // that fills it in this step; 0: nobody waits for it
  HeldUp held_up_;               // the prompts' part of a pass
};

}  // namespace outrider
