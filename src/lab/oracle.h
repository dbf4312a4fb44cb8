// What a text would have taken with perfect foresight: how much is left to gain.
//
// Idea. Under the coupled rule (and at temperature 0) a guess is accepted exactly when it is the
// token that the target says. So a text that was said tells, at each of its places, how many of a
// drafter's guesses there would have held. The oracle knows that before they are made: it sends
// these and no others, asks only the drafter that is worth it there, or nobody, and pays for making
// the guesses and for the step as everybody does. From the text's end backwards, the best of these
// choices at each place is the best for the whole text. What it never pays for, who decodes must:
// finding out what a drafter is worth, guesses that turn out wrong, and a draft model's reading of
// what it missed while it was suspended.
//
// Example. A step of 1, 2, 3 tokens takes 70, 72, 80 ms, a guess 5 ms. Behind the first token two
// guesses would hold, and the text has three tokens more: 2 * 5 + 80 ms, and nothing is quicker.
//
// Tested by oracle_test.cc, which also holds the planner against it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "draft/base/drafter.h"

namespace outrider::lab {

struct OracleDrafter {
  Drafter* drafter = nullptr;  // its sequence 0 is used, and has nothing to say afterwards
  double first_ms = 0.0;       // for its first guess of a step
  double further_ms = 0.0;     // for each one after it
};

struct OracleOptions {
  std::uint64_t seed = 1;
  DraftShape shape;
  std::size_t begun = 1;    // tokens of the text that came with the reading of the prompt, >= 1
  std::int32_t width = 16;  // most tokens of a step, >= 1
  std::function<double(std::int32_t width)>
      step_ms;                                   // of the target, by a step's tokens; not empty
  const std::atomic<bool>* interrupt = nullptr;  // while true: kCancelled; null: never
};

// The least time in milliseconds for `said` behind `prompt`, without its first `begun` tokens.
// `sampler`: as a new request has it. Drafters that want the target's rows have none here. Takes as
// long as making all guesses that hold, and one more at each place.
// Errors: kCancelled; a drafter's own. REQUIRES: `prompt` is not empty
Result<double> oracle_ms(std::span<const Token> prompt, std::span<const Token> said,
                         Sampler& sampler, std::span<const OracleDrafter> drafters,
                         const OracleOptions& options);

}  // namespace outrider::lab
