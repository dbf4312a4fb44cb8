#include "engine/asking.h"

#include <algorithm>
#include <cmath>
#include <limits>
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
  bool has_room = true;   // of the drafter, as far as that is known
  bool reads_on = false;  // its text was begun to be read in pieces, and is not read up
  bool waits = false;     // it gets no guesses in this step, since its text is read first
};

// Its text is to be read, more of it than a pass takes along.
bool must_read(const Candidate& c) {
  return c.guide != nullptr && c.pays && c.has_room && c.guide->must_read();
}

std::vector<Candidate> candidates_of(Step& step, std::size_t index,
                                     std::span<Sequence* const> askers) {
  const Drafter& drafter = *step.drafters[index];
  const DrafterMask bit = DrafterMask{1} << index;
  std::vector<Candidate> candidates;
  for (Sequence* s : askers) {
    const std::int32_t nodes = useful_nodes(step, *s);
    if (nodes == 0 || !drafter.can_guess(s->seq, s->text)) continue;
    // It was refused and would be again, which was said.
    if (!drafter.limit_reason(s->seq).empty() && !drafter.has_room(s->seq, s->text)) continue;
    Candidate& c = candidates.emplace_back(Candidate{.sequence = s, .nodes = nodes});
    if (!s->planned) continue;
    c.guide = std::make_unique<StepGuide>(step, *s, index);
    if (!c.guide->must_read()) s->reading &= ~bit;
    c.reads_on = (s->reading & bit) != 0;
  }
  // They would share the passes, so whether asking pays depends on how many take part. First all
  // are assumed to, then those for which it paid.
  for (int round = 0; round < 2; ++round) {
    const std::int32_t sharing = static_cast<std::int32_t>(
        std::count_if(candidates.begin(), candidates.end(),
                      [](const Candidate& c) { return c.pays && c.has_room && !c.reads_on; }));
    for (Candidate& c : candidates) {
      if (!c.guide || !c.pays || !c.has_room) continue;
      c.pays = c.guide->first_pass_pays(std::max(sharing, 1));
      // A long text that does not fit is neither read nor guessed for, whatever is expected of it.
      if (round > 0 || c.reads_on || !must_read(c)) continue;
      c.has_room = drafter.has_room(c.sequence->seq, c.sequence->text);
    }
  }
  return candidates;
}

// Whether what the drafter would have to read may be risked: for all or for none, since requests
// that go on plainly beside others that guess hold up the end of all. What is left of those that
// were begun is risked as well.
void risk_reading(Step& step, std::size_t index, std::span<Candidate* const> readers) {
  std::optional<UnreadText> all;
  std::int64_t new_tokens = 0;
  std::int64_t begun_tokens = 0;
  for (const Candidate* c : readers) {
    if (!c->pays) continue;
    const UnreadText one = c->guide->unread_text();
    (c->reads_on ? begun_tokens : new_tokens) += one.tokens;
    if (!c->reads_on && (!all || one.to_come > all->to_come)) all = one;
  }
  if (!all) return;
  all->tokens = new_tokens + begun_tokens;
  DrafterAccount& account = step.planner.account(index);
  const CostCurve& target = step.planner.target_cost();
  if (account.begin_reading(*all, target)) {
    account.give_back_reading(begun_tokens, target);
    return;
  }
  for (Candidate* c : readers) c->pays = c->pays && c->reads_on;
}

// In how many steps drafters will have read for `ms` more, and for what comes meanwhile of the
// texts, which is `step_reading_ms` a step. Infinity: never.
double steps_of_reading(const Step& step, double ms, double step_reading_ms) {
  const double step_ms = step.planner.target_cost().ms(step.n_ready);
  const double steps = step.prompts->reading_takes_ms(ms) / step_ms;
  const double more =
      step.prompts->reading_takes_ms(ms + steps * step_reading_ms) / step_ms - steps;
  // The sum of what is to be read of what came meanwhile, and so on.
  return more < steps ? steps * steps / (steps - more) : std::numeric_limits<double>::infinity();
}

// Read in pieces, texts get their guesses later: reading has to pay for what is still to come then.
// They go on by a token a step meanwhile, which is to be read as well.
void look_further(Step& step, std::size_t index, std::span<Candidate* const> readers,
                  double allowed_ms) {
  const DrafterAccount& account = step.planner.account(index);
  const CostCurve& target = step.planner.target_cost();
  double ms = 0.0;  // of those that are read before it, and of its own
  std::int64_t n = 0;
  for (Candidate* c : readers) {
    UnreadText text = c->guide->unread_text();
    const double own_ms = account.reading_ms(text.tokens, target);
    if (!c->reads_on && ms + own_ms > allowed_ms) {
      const double steps = steps_of_reading(step, ms + own_ms, account.reading_ms(n + 1, target));
      const double to_come = static_cast<double>(text.to_come);
      text.to_come = static_cast<std::int64_t>(to_come - std::min(to_come, steps));
      c->pays = account.may_read(text, target);
    }
    if (!c->pays) continue;
    ms += own_ms;
    ++n;
  }
}

// Fewer are not worth a pass of their own.
constexpr std::int64_t kLeastPiece = 32;

// Of `unread` tokens those that may be read now; 0: none.
std::int64_t piece_of(std::int64_t unread, double allowed_ms, const DrafterAccount& account,
                      const CostCurve& target) {
  if (std::isinf(allowed_ms)) return unread;
  if (allowed_ms <= 0.0) return 0;
  const std::int64_t least = std::min(unread, kLeastPiece);
  if (!account.has_read()) return least;  // what it takes is not known yet
  const double one_ms = account.reading_ms(1, target);
  if (allowed_ms >= one_ms * static_cast<double>(unread)) return unread;
  // One that is dearer than all that is saved up is read when that is full.
  if (allowed_ms < one_ms * static_cast<double>(least)) {
    return allowed_ms >= PromptShare::kReadMs ? least : 0;
  }
  return static_cast<std::int64_t>(allowed_ms / one_ms);
}

// The order in which they are read. The oldest first: two that are read in turn would both get
// their guesses late. But one that has less than half as much left goes before it (as in
// engine/prompt_division.h): else it would have none while a long text is read.
void order_readers(std::vector<Candidate*>& readers) {
  if (readers.empty()) return;
  const std::int64_t oldest = readers.front()->guide->unread_text().tokens;
  std::stable_partition(readers.begin(), readers.end(), [oldest](const Candidate* c) {
    return 2 * c->guide->unread_text().tokens < oldest;
  });
}

// Those whose texts may not be read up now wait.
void divide_reading(Step& step, std::size_t index, std::span<Candidate* const> readers,
                    double allowed_ms, std::vector<Asking::Piece>& pieces) {
  DrafterAccount& account = step.planner.account(index);
  const CostCurve& target = step.planner.target_cost();
  const DrafterMask bit = DrafterMask{1} << index;
  for (Candidate* c : readers) {
    if (!c->pays) continue;
    Sequence& s = *c->sequence;
    const UnreadText text = c->guide->unread_text();
    const std::int64_t n = piece_of(text.tokens, allowed_ms, account, target);
    allowed_ms -= account.reading_ms(n, target);
    c->waits = n < text.tokens;
    if (c->reads_on) {
      account.go_on_reading(n, target);
    } else if (c->waits) {
      account.give_back_reading(text.tokens - n, target);
    }
    s.reading = c->waits ? s.reading | bit : s.reading & ~bit;
    if (c->waits && n > 0) pieces.push_back({.sequence = &s, .tokens = n});
  }
}

// What the drafter reads for them: which of them get no guesses since that does not pay, or not
// before later steps.
void plan_reading(Step& step, std::size_t index, std::span<Candidate> candidates, Asking& asking) {
  std::vector<Candidate*> readers;
  for (Candidate& c : candidates) {
    if (must_read(c)) readers.push_back(&c);
  }
  const std::int64_t texts =
      std::count_if(step.parts.begin(), step.parts.end(), [&](const Part& part) {
        const auto is_its = [&part](const Candidate* c) { return c->sequence == part.sequence; };
        return part.ready && !part.as_prompt &&
               std::none_of(readers.begin(), readers.end(), is_its);
      });
  asking.holds_up_others = texts > (readers.empty() ? 1 : 0);  // itself, where one explores
  if (readers.empty()) return;
  order_readers(readers);
  double allowed_ms = std::numeric_limits<double>::infinity();
  if (step.prompts != nullptr && step.drafters[index]->reads_in_pieces()) {
    // Less what was read for another drafter.
    allowed_ms = step.prompts->reading_ms(texts, std::ssize(readers)) - step.reading_ms;
    look_further(step, index, readers, allowed_ms);
  }
  risk_reading(step, index, readers);
  divide_reading(step, index, readers, allowed_ms, asking.pieces);
}

}  // namespace

Asking plan_asking(Step& step, std::size_t index, std::span<Sequence* const> askers) {
  Asking asking;
  bool has_timekeeper = false;
  std::vector<Candidate> candidates = candidates_of(step, index, askers);
  plan_reading(step, index, candidates, asking);
  for (Candidate& c : candidates) {
    if (c.waits || (!c.pays && !c.guide->begin_exploration())) continue;
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
      // One that will be refused would count all passes of the others as its own, and its text as
      // read in them.
      c.guide->begin(asking.passes.get(), c.has_room, c.has_room && !has_timekeeper);
      has_timekeeper = has_timekeeper || c.has_room;
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
