// DrafterCosts: what one drafter's passes and its reading take.
//
// Idea. A draft takes a first pass, and a further one for each level behind it. What they take is
// learned as two curves (plan/cost_curve.h), by how many requests share the pass. Before any pass
// was seen, the models' sizes say what it takes of the target's. Wider passes than were seen rise
// as the target's do.
//
// A draft model has to read what it does not know of a text: a prompt, or what was said while it
// was suspended. What that takes is learned for each token. Before anything was read, it follows
// from a pass and from what a token beside others takes of the target.
//
// What is measured may be an accident. A pass, or the reading of a text, that was held up alone
// counts as no more than was credible (plan/held_up.h): a few times what was expected.
//
// Example. The target takes 70 ms for a token, 140 ms for 8. A draft's first pass took 20 ms for
// one request. For 8 it is expected to take 40 ms, which is 5 ms for each of them. A pass of 20 s
// counts as 60 ms, and if the next one takes as long, that counts in full.
//
// Times are milliseconds. One thread. Cost: O(1). Tested by drafter_costs_test.cc.
#pragma once

#include <cstdint>

#include "plan/cost_curve.h"
#include "plan/experience.h"
#include "plan/held_up.h"

namespace outrider {

class DrafterCosts {
 public:
  // A pass takes about `share` of one of the target's as wide: by the models' sizes, say, before
  // any pass was seen. > 0
  void expect_passes(double share) { expected_share_ = share; }
  // Whether all guesses of a draft come out of its first pass; further ones take no time then.
  void set_at_once(bool at_once) { at_once_ = at_once; }
  bool at_once() const { return at_once_; }

  // A pass for `sharing` requests took `ms`: the first of a draft, or a further one. Returns what
  // it counts as: less where it was held up.
  double note_pass(bool first, std::int32_t sharing, double ms, const CostCurve& target);
  // Reading `tokens` tokens took `ms` beside the pass that they were read in. Returns likewise.
  double note_reading(std::int64_t tokens, double ms, const CostCurve& target);

  // What one more pass takes for each of `sharing` requests. Wider passes than were seen rise as
  // the target's do. Before any was seen: what was expected, else 0, so that the first one is made
  // at once.
  double pass_ms(bool first, std::int32_t sharing, const CostCurve& target) const;
  // What reading `tokens` tokens is expected to take: as seen, else from its passes and what tokens
  // beside others take of the target's, else a guess.
  double reading_ms(std::int64_t tokens, const CostCurve& target) const;
  // Whether reading was seen, in this run or in one that was recalled.
  bool has_read() const { return read_tokens_ > 0.0; }
  // Likewise of anything that it does.
  bool was_seen() const { return has_read() || !first_.empty() || !further_.empty(); }

  // Writes down what is known of passes and reading, for later runs.
  void tell(DrafterExperience* experience) const;
  // In place of what is known, but for what passes are expected to take and whether all guesses
  // come at once.
  void recall(const DrafterExperience& experience);

 private:
  // The longest pass that is credible.
  double most_pass_ms(bool first, std::int32_t sharing, const CostCurve& target) const;

  double expected_share_ = 0.0;  // 0: unknown
  bool at_once_ = false;
  CostCurve first_;  // by requests that share the pass
  CostCurve further_;
  HeldUp held_up_pass_;
  HeldUp held_up_reading_;
  double read_tokens_ = 0.0;  // the older ones fading
  double read_ms_ = 0.0;      // likewise
};

}  // namespace outrider
