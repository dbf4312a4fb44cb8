#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "engine/guide.h"
#include "engine/step.h"

namespace outrider {
namespace {

// How many nodes the drafters may propose for a part: what could be checked, accepted and used.
std::int32_t useful_nodes(const Step& step, const Sequence& s) {
  const Capabilities& caps = step.target.capabilities();
  const std::int32_t width =
      s.planned ? std::min({kMostPlanned + 1, step.costs->most() + 1, step.planned_width})
                : s.width;
  std::int64_t nodes = std::min(width, caps.max_width) - 1;
  // A step says at most nodes + 1 tokens; more than the text has room for is wasted.
  nodes = std::min(nodes, s.remaining() - 1);
  nodes = std::min<std::int64_t>(nodes, caps.n_ctx - static_cast<std::int64_t>(s.text.size()) - 1);
  return static_cast<std::int32_t>(std::max<std::int64_t>(nodes, 0));
}

void note_results(std::span<DraftRequest> requests, std::span<Sequence* const> sequences,
                  const Drafter& drafter, std::size_t index, double ms) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Sequence& s = *sequences[i];
    DrafterStats& stats = s.stats.drafters[index];
    ++stats.calls;
    stats.drafts += s.proposed->has_proposed(requests[i].mask) ? 1 : 0;
    stats.draft_ms += ms;
    (s.answered ? s.stats.draft_ms : s.stats.draft_prompt_ms) += ms;
    const std::string limit = drafter.limit_reason(s.seq);
    if (!limit.empty()) s.stats.reason = limit;
  }
}

// The sequences whose chains ask this drafter at this stage, having found nothing before.
std::vector<Sequence*> askers(const Step& step, std::size_t drafter, std::size_t stage) {
  std::vector<Sequence*> result;
  for (const Part& part : step.parts) {
    Sequence& s = *part.sequence;
    if (!part.ready || !s.wants_drafts() || !s.asks(drafter)) continue;
    for (const std::vector<std::size_t>& chain : s.chains) {
      if (asks_at(chain, stage, drafter, *s.proposed)) result.push_back(&s);
    }
  }
  return result;
}

// One drafter's work in one step.
struct Asking {
  std::vector<Sequence*> sequences;
  std::vector<DraftRequest> requests;              // [sequences]
  std::vector<std::unique_ptr<StepGuide>> guides;  // [sequences]; null: not planned
  std::unique_ptr<SharedPasses> passes = std::make_unique<SharedPasses>();
};

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

Asking choose_requests(Step& step, std::size_t index, std::span<Sequence* const> askers) {
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
    const bool coupled = s->request.rule == AcceptanceRule::kCoupled;
    asking.requests.push_back({.seq = s->seq,
                               .text = s->text,
                               .seed = s->noise_seed,
                               .sampler = s->request.sampler.get(),
                               .max_nodes = c.nodes,
                               .shape = shape,
                               .guide = c.guide.get(),
                               .draws = coupled ? nullptr : &s->draws,
                               .mask = DrafterMask{1} << index,
                               .tree = &*s->proposed,
                               .name_space = s->request.name_space});
    if (c.guide) {
      c.guide->begin(asking.passes.get(), !std::exchange(has_timekeeper, true));
    } else {
      ++asking.passes->others;
    }
    asking.guides.push_back(std::move(c.guide));
  }
  return asking;
}

void ask(Step& step, std::size_t index, std::span<Sequence* const> askers) {
  Drafter& drafter = *step.drafters[index];
  Asking asking = choose_requests(step, index, askers);
  const std::vector<Sequence*>& sequences = asking.sequences;
  if (sequences.empty()) return;
  const Stopwatch watch(step.clock);
  const Status status = drafter.draft(asking.requests);
  const double ms = watch.elapsed_ms();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const std::int32_t sharing = static_cast<std::int32_t>(sequences.size());
    if (asking.guides[i]) asking.guides[i]->finish(ms, sharing);
    // A drafter that could not guess is not counted as wrong.
    const bool could = status.ok() && drafter.limit_reason(sequences[i]->seq).empty();
    if (could) sequences[i]->asked |= DrafterMask{1} << index;
  }
  const double drafting_ms = ms - asking.passes->reading_ms;
  step.draft_ms += drafting_ms;
  step.drafter_ms.resize(step.drafters.size(), 0.0);
  // The accounts are charged for the planner's requests only.
  const double n_asked = static_cast<double>(sequences.size());
  step.drafter_ms[index] += drafting_ms * (1.0 - asking.passes->others / n_asked);
  note_results(asking.requests, sequences, drafter, index, ms);
  if (status.ok() || status.code() == StatusCode::kCancelled) return;
  // It drafts no more for these requests: their text goes on without it.
  for (Sequence* s : sequences) {
    s->drop_drafter(index, std::string(drafter.name()) + " failed: " + status.message());
  }
}

// In the order of their indices; where the planner chooses, the cheapest first: what they guess
// decides whether the others are asked.
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

}  // namespace

// Stage by stage: first all that a chain asks first, then what is asked where these found nothing.
void propose(Step& step) {
  std::size_t stages = 0;
  for (Part& part : step.parts) {
    if (!part.ready) continue;
    Sequence& s = *part.sequence;
    s.proposed.emplace(s.text.back());
    s.chances.clear();
    s.draws.clear();
    for (const std::vector<std::size_t>& chain : s.chains) stages = std::max(stages, chain.size());
  }
  const std::vector<std::size_t> order = asking_order(step);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    for (const std::size_t index : order) ask(step, index, askers(step, index, stage));
  }
}

}  // namespace outrider
