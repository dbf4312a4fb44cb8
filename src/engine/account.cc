#include <algorithm>
#include <vector>

#include "engine/step.h"

namespace outrider {
namespace {

// What the drafters did in a step that the planner chose.
struct Outcome {
  std::vector<std::int32_t> sent;     // [drafters] nodes; of several who guessed one, who was first
  std::vector<std::int32_t> right;    // [drafters] of these
  std::vector<double> expected;       // [drafters] how many of them were expected to be
  std::vector<std::int64_t> emitted;  // [drafters] tokens, in the texts that it was asked about
  std::int32_t n_sent = 0;
};

Outcome outcome_of(const Step& step) {
  const std::size_t n = step.drafters.size();
  Outcome outcome{.sent = std::vector<std::int32_t>(n, 0),
                  .right = std::vector<std::int32_t>(n, 0),
                  .expected = std::vector<double>(n, 0.0),
                  .emitted = std::vector<std::int64_t>(n, 0)};
  for (const Part& part : step.parts) {
    if (!part.walk || !part.sequence->planned) continue;
    const TokenTree& tree = *part.sequence->sent;
    const auto count = [&tree](NodeId id, std::vector<std::int32_t>& into) {
      if (tree.is_filler(id)) return 0;
      ++into[static_cast<std::size_t>(tree.node(id).first_by)];
      return 1;
    };
    for (NodeId id = 1; id < tree.size(); ++id) {
      if (count(id, outcome.sent) == 0) continue;
      ++outcome.n_sent;
      outcome.expected[static_cast<std::size_t>(tree.node(id).first_by)] +=
          static_cast<double>(tree.node(id).chance);
    }
    for (const NodeId id : part.walk->path) {
      if (id != kRoot) count(id, outcome.right);
    }
    for (std::size_t d = 0; d < n; ++d) {
      if (((part.sequence->asked >> d) & 1) == 0) continue;
      outcome.emitted[d] += static_cast<std::int64_t>(part.walk->emitted.size());
    }
  }
  return outcome;
}

// A pass that took more than so many times what was expected, or less than its part, was held up by
// something else, or is too good to be true: no more than that counts.
constexpr double kMostOff = 2.0;

}  // namespace

// For those who were asked: the tokens that came for their guesses, and that were expected to, at
// the price of plain decoding, less what their guesses made the step take and what making them
// took.
void account(Step& step) {
  if (step.drafter_ms.empty()) return;
  const Outcome outcome = outcome_of(step);
  const double worth_ms = step.planner.target_cost().ms(step.n_ready) / step.n_ready;
  const double planned_ms = step.costs->ms(outcome.n_sent);
  const double took_ms = step.timed ? std::clamp(step.evaluate_ms - step.costs->others_ms(),
                                                 planned_ms / kMostOff, planned_ms * kMostOff)
                                    : planned_ms;
  const double actual_ms = took_ms - step.costs->ms(0);
  for (std::size_t d = 0; d < step.drafters.size(); ++d) {
    if (outcome.emitted[d] == 0) continue;
    const double wider_ms = planned_ms - step.costs->ms(outcome.n_sent - outcome.sent[d]);
    const double share =
        outcome.n_sent > 0 ? static_cast<double>(outcome.sent[d]) / outcome.n_sent : 0.0;
    const double made_ms = step.drafter_ms[d];
    step.planner.account(d).note_gain(outcome.expected[d] * worth_ms - wider_ms - made_ms,
                                      outcome.right[d] * worth_ms - share * actual_ms - made_ms,
                                      outcome.emitted[d], step.planner.token_ms());
  }
}

}  // namespace outrider
