#include "engine/asking.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/step_width.h"

namespace outrider {
namespace {

// How many nodes the drafters may propose for a part: what could be checked, accepted and used.
std::int32_t useful_nodes(const Step& step, const Sequence& s) {
  std::int32_t nodes = s.width - 1;
  if (s.planned) nodes = std::min({nodes, kMostPlanned, step.costs->most()});
  // A step says at most nodes + 1 tokens; more than the text has room for is wasted.
  const std::int64_t left =
      std::min(s.remaining(), s.context_left(step.target.capabilities().n_ctx));
  return static_cast<std::int32_t>(
      std::max<std::int64_t>(std::min<std::int64_t>(nodes, left - 1), 0));
}

// A sequence that the drafter could be asked about.
struct Candidate {
  Sequence* sequence = nullptr;
  std::int32_t nodes = 0;            // to propose at most
  std::unique_ptr<StepGuide> guide;  // null: not planned
  bool pays = true;
};

std::vector<Candidate> candidates_of(Step& step, std::size_t index,
                                     std::span<Sequence* const> askers) {
  std::vector<Candidate> candidates;
  for (Sequence* s : askers) {
    const std::int32_t nodes = useful_nodes(step, *s);
    if (nodes == 0 || !step.drafters[index]->can_guess(s->seq, s->text)) continue;
    candidates.push_back({.sequence = s, .nodes = nodes, .guide = nullptr});
    if (s->planned) candidates.back().guide = std::make_unique<StepGuide>(step, *s, index);
  }
  // They would share the passes, so whether asking pays depends on how many take part. First all
  // are assumed to, then those for which it paid.
  for (int round = 0; round < 2; ++round) {
    const std::int32_t sharing = static_cast<std::int32_t>(std::count_if(
        candidates.begin(), candidates.end(), [](const Candidate& c) { return c.pays; }));
    for (Candidate& c : candidates) {
      if (c.guide && c.pays) c.pays = c.guide->first_pass_pays(sharing);
    }
  }
  return candidates;
}

// Whether what the drafter would have to read may be risked: for all or for none, since requests
// that go on plainly beside others that guess hold up the end of all.
bool may_risk_reading(Step& step, std::size_t index, std::span<const Candidate> candidates) {
  std::optional<UnreadText> all;
  for (const Candidate& c : candidates) {
    if (c.guide == nullptr || !c.pays || !c.guide->must_read()) continue;
    const UnreadText one = c.guide->unread_text();
    const std::int64_t before = all ? all->tokens : 0;
    if (!all || one.to_come > all->to_come) all = one;
    all->tokens = before + one.tokens;
  }
  return !all || step.planner.account(index).begin_reading(*all, step.planner.target_cost());
}

}  // namespace

Asking plan_asking(Step& step, std::size_t index, std::span<Sequence* const> askers) {
  Asking asking;
  bool has_timekeeper = false;
  std::vector<Candidate> candidates = candidates_of(step, index, askers);
  const bool may_read = may_risk_reading(step, index, candidates);
  for (Candidate& c : candidates) {
    const bool pays = c.pays && (c.guide == nullptr || may_read || !c.guide->must_read());
    if (!pays && !c.guide->begin_exploration()) continue;
    Sequence* const s = c.sequence;
    asking.sequences.push_back(s);
    DraftShape shape = s->request.draft;
    shape.branches = std::min(shape.branches, step.target.capabilities().max_leaves);
    asking.requests.push_back({.seq = s->seq,
                               .text = s->text,
                               .seed = s->noise_seed,
                               .sampler = s->request.sampler.get(),
                               .max_nodes = c.nodes,
                               .shape = shape,
                               .guide = c.guide.get(),
                               .draws = draws(s->request.rule) ? &s->draws : nullptr,
                               .mask = DrafterMask{1} << index,
                               .tree = &*s->proposed,
                               .name_space = s->request.name_space});
    if (c.guide) {
      // One that was refused lately, and will be again, would count all passes of the others as its
      // own, and its text as read in them.
      const bool takes_part = step.drafters[index]->limit_reason(s->seq).empty();
      c.guide->begin(asking.passes.get(), takes_part, takes_part && !has_timekeeper);
      has_timekeeper = has_timekeeper || takes_part;
    } else {
      ++asking.passes->others;
    }
    asking.guides.push_back(std::move(c.guide));
  }
  return asking;
}

std::vector<std::size_t> asking_order(const Step& step) {
  std::vector<std::size_t> order;
  for (std::size_t index = 0; index < step.drafters.size(); ++index) {
    if (step.drafters[index] != nullptr) order.push_back(index);
  }
  const bool planned = std::any_of(step.parts.begin(), step.parts.end(),
                                   [](const Part& part) { return part.sequence->planned; });
  if (!planned) return order;
  std::stable_sort(order.begin(), order.end(), [&step](std::size_t a, std::size_t b) {
    return step.planner.pass_ms(a, true, 1) < step.planner.pass_ms(b, true, 1);
  });
  return order;
}

}  // namespace outrider
