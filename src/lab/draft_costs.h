// What a drafter's passes take: its first one of a draft, and each further one.
//
// Idea. The drafter drafts behind a text, again and again, two tokens further each time, as if one
// of its guesses had been right. Its guide says yes to every pass and looks at the clock, as the
// engine's does (engine/guide.h). Tested by draft_costs_test.cc on a made-up clock.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "draft/base/drafter.h"
#include "model/sampler.h"

namespace outrider::lab {

struct DraftSamples {
  std::vector<double> first_ms;    // [rounds] reading two tokens and guessing one
  std::vector<double> further_ms;  // [rounds * (passes - 1)] at most: reading one, guessing one
};

struct DraftMeasureOptions {
  std::int32_t n_vocab = 0;         // tokens of the text are below it
  std::int32_t depth = 64;          // tokens of the text, >= 1
  std::int32_t rounds = 8;          // that count, >= 1; one more warms up
  std::int32_t passes = 4;          // of a draft at most, >= 1
  NowMs now_ms;                     // empty: the machine's clock
  std::function<bool()> cancelled;  // asked before each round; may be empty
};

// Uses sequence 0 of `drafter`, which must not be in use. `sampler` as a request's. What the
// drafter ends early counts as far as it went. Errors: kCancelled; the drafter's own; its
// limit_reason() as kResourceExhausted.
Result<DraftSamples> measure_draft_costs(Drafter& drafter, Sampler& sampler,
                                         const DraftMeasureOptions& options);

}  // namespace outrider::lab
