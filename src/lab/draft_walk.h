// How far a drafter's guesses hold along a text that the target said, and what they take.
//
// Idea. Under the coupled rule (and at temperature 0) a guess is accepted exactly when it is the
// token that the target says, so a text that was said once tells what would have become of each
// guess, without the target. At each place the drafter guesses until it is wrong, as often as
// `most`; the walk goes on behind the token that the target says there. Chances are conditional:
// of the guesses at a depth, those before which all were right.
//
//      said      the  sea  reads  it  first
//      guesses   sea  reads  them          right at depth 1 and 2, wrong at depth 3
//
// Times are what the drafter's own passes took, reading of what is new included, by the clock and
// in processor time. Tested by draft_walk_test.cc on made-up models.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "draft/base/drafter.h"
#include "lab/draft_costs.h"
#include "model/sampler.h"
#include "tree/token_tree.h"

namespace outrider::lab {

// How many tokens of `text`, which follows the root, the tree's guesses go along.
std::size_t right_guesses(const TokenTree& tree, std::span<const Token> text);

// What the target said behind a prompt, under this seed.
struct SaidText {
  std::vector<Token> prompt;  // not empty
  std::vector<Token> said;
  std::uint64_t seed = 1;
};

struct DraftWalk {
  std::vector<std::int64_t> asked;  // [depth - 1] guesses behind right ones only
  std::vector<std::int64_t> right;  // [depth - 1]
  DraftSamples times;
  double processor_ms = 0.0;  // of all passes, all threads together
  std::int64_t passes = 0;

  // The chance of each depth, given that all before are right; 0 to 1, by a rule of succession.
  std::vector<double> chances() const;
  double first_chance() const;  // of all first guesses, the share that held; 0 without any
};

struct WalkOptions {
  std::int32_t most = 8;  // guesses at a place, >= 1
  DraftShape shape;
  const std::atomic<bool>* interrupt = nullptr;  // while true: kCancelled; null: never
  NowMs now_ms = {};                             // empty: the machine's clock
};

// Adds to `walk`. Uses sequence 0 of `drafter`, which has nothing to say afterwards. `sampler`: as
// a new request has it. Errors: kCancelled; the drafter's own, its limit_reason() among them.
Status walk_text(const SaidText& text, Drafter& drafter, Sampler& sampler,
                 const WalkOptions& options, DraftWalk& walk);

}  // namespace outrider::lab
