#include <algorithm>
#include <vector>

#include "engine/step.h"

namespace outrider {
namespace {

// What the drafters did in a step that the planner chose.
struct Outcome {
  // By drafter. A node that several proposed is that of the first.
  std::vector<std::int32_t> sent;     // nodes
  std::vector<std::int32_t> right;    // of these
  std::vector<double> expected;       // how many of them were expected to be right
  std::vector<std::int64_t> emitted;  // tokens of the texts that it was asked about
  DrafterMask drawn = 0;              // of these some are drawn
  std::int32_t n_sent = 0;            // nodes of all drafters
  // What the target reads again in the next step, since some were wrong (Rollback::kSaved).
  double expected_again_ms = 0.0;
  double again_ms = 0.0;
};

// Of such a target all trees are chains.
void note_again(const StepCosts& costs, const TokenTree& chain, const Walk& walk,
                Outcome& outcome) {
  if (!costs.reads_again()) return;
  for (NodeId id = 1; id < chain.size(); ++id) {
    const TokenTree::Node& node = chain.node(id);
    const float before = node.parent == kRoot ? 1.0f : chain.node(node.parent).chance;
    outcome.expected_again_ms +=
        static_cast<double>(before - node.chance) * costs.again_ms(node.depth);
  }
  const std::int32_t kept = static_cast<std::int32_t>(walk.path.size());
  if (kept < chain.size()) outcome.again_ms += costs.again_ms(kept);
}

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
    note_again(*step.costs, tree, *part.walk, outcome);
    for (std::size_t d = 0; d < n; ++d) {
      if (((part.sequence->asked >> d) & 1) == 0) continue;
      outcome.emitted[d] += static_cast<std::int64_t>(part.walk->emitted.size());
      if (part.sequence->is_drawn()) outcome.drawn |= DrafterMask{1} << d;
    }
  }
  return outcome;
}

// A pass that takes more than so many times what was expected was held up by something else. It
// counts as so many times, and a pass that is as much quicker counts likewise.
constexpr double kMostOff = 2.0;

}  // namespace

// What the pass took; which guesses were right; then the gain of each drafter that was asked
// (plan/drafter_account.h), expected and measured: the time of plain decoding for the tokens that
// its guesses gave, less the time that they added to the target's pass and, where they were wrong,
// to the next one, less the time that drafting took.
void learn(Step& step) {
  step.planner.note_target(step.timed_width, step.evaluate_ms);
  for (const Part& part : step.parts) {
    Sequence& s = *part.sequence;
    if (part.walk && s.planned) {
      step.planner.learn(*s.proposed, part.walk->emitted, s.asked, s.plan);
    }
  }
  if (step.drafter_ms.empty()) return;
  const Outcome outcome = outcome_of(step);
  const double worth_ms = step.planner.target_cost().ms(step.n_ready) / step.n_ready;
  const double planned_ms = step.costs->ms(outcome.n_sent);
  const double took_ms = step.timed_width > 0
                             ? std::clamp(step.costs->took_ms(step.evaluate_ms, step.timed_width),
                                          planned_ms / kMostOff, planned_ms * kMostOff)
                             : planned_ms;
  const double added_ms = took_ms - step.costs->ms(0);
  for (std::size_t d = 0; d < step.drafters.size(); ++d) {
    if (outcome.emitted[d] == 0) continue;
    const double expected_added_ms = planned_ms - step.costs->ms(outcome.n_sent - outcome.sent[d]);
    const double share =
        outcome.n_sent > 0 ? static_cast<double>(outcome.sent[d]) / outcome.n_sent : 0.0;
    const double drafting_ms = step.drafter_ms[d];
    step.planner.account(d).note_gain(
        {.expected_ms = outcome.expected[d] * worth_ms - expected_added_ms -
                        share * outcome.expected_again_ms - drafting_ms,
         .measured_ms =
             outcome.right[d] * worth_ms - share * (added_ms + outcome.again_ms) - drafting_ms,
         .tokens = outcome.emitted[d],
         .n_ready = step.n_ready,
         .drawn = ((outcome.drawn >> d) & 1) != 0,
         .worth_ms = worth_ms,
         .token_ms = step.planner.token_ms(),
         .ever_right = step.planner.acceptance().ever_right(d)});
  }
}

}  // namespace outrider
