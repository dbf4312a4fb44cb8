// Comparing plain with speculative decoding, prompt by prompt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/request.h"
#include "json/json.h"
#include "model/exactness.h"
#include "model/kernel_use.h"

namespace outrider::lab {

// Where two runs of one prompt part.
struct Divergence {
  std::int32_t width = 0;    // at which it was seen
  std::size_t prompt = 0;    // index in the prompt file, from 0
  std::string id;            // of the prompt
  std::size_t position = 0;  // index of the first differing token, from 0, prompt not counted
  Token plain = kNoToken;
  Token speculative = kNoToken;
  std::string plain_text;  // what the two tokens say
  std::string speculative_text;
  double logit_gap = 0.0;  // lab/logit_gap.h
  bool repeatable = true;  // false: plain decoding itself did not say the same twice

  bool suspicious() const;
};

// What one drafter did at one width.
struct DrafterComparison {
  std::string name;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
};

// The speculative runs of one width.
struct WidthComparison {
  std::int32_t width = 1;
  std::int64_t identical = 0;  // prompts whose tokens are all the same
  std::int64_t steps = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::int64_t emitted = 0;
  std::vector<DrafterComparison> drafters;  // that took part, in the order in which they are asked
};

// Adds what one run's drafters did.
void add_drafters(WidthComparison& width, const SpeculationStats& stats);

struct Comparison {
  std::int64_t prompts = 0;
  std::int64_t tokens = 0;     // of the plain runs
  std::int64_t identical = 0;  // prompts whose tokens are all the same at every width
  std::vector<Divergence> divergences;
  std::string drafter;
  std::vector<WidthComparison> widths;  // rising; not empty
  double logprob_difference = 0.0;  // the largest of a token's log-probability, where texts agree

  float temperature = 0.0f;
  std::uint64_t seed = 0;
  Exactness exactness;  // the target's, as probed
  KernelUse kernels;    // the target's
};

// The probe's verdict, or less where it claimed more than was seen, a text that differs at a width
// that was said to be exact: then exact up to the widest width below that, or "distributional".
std::string observed_verdict(const Comparison& comparison);

// Why the verdict is what it is; empty when there is nothing to add.
std::string verdict_reason(const Comparison& comparison);

// The contract's object, its verdict null when nothing was compared, and in addition: each
// divergence's `width`, `id`, both tokens and `suspicious`; `suspicious` (how many),
// `verdict_reason`, `exactness_coverage`, `logprob_difference`, `drafter`, `width` (the widest),
// `temperature`, `seed`, `tokens_per_step`, `acceptance_rate`, and for each of the `widths`:
// `width`, `identical`, `verdict` ("identical" or "different"), `tokens_per_step`,
// `acceptance_rate`, and `drafters`: {NAME: {"drafted","accepted","acceptance_rate"}}.
json::Json comparison_json(const Comparison& comparison);

// The same as a table for people.
std::string comparison_table(const Comparison& comparison);

}  // namespace outrider::lab
