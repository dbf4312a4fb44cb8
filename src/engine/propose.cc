#include <algorithm>
#include <string>

#include "base/clock.h"
#include "engine/asking.h"
#include "engine/step.h"

namespace outrider {
namespace {

// Of a drafter that finds too little room, one after the other: 255 steps in all.
constexpr std::int32_t kMostShortages = 8;

void note_results(std::span<DraftRequest> requests, std::span<Sequence* const> sequences,
                  const Drafter& drafter, std::size_t index, double ms) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Sequence& s = *sequences[i];
    DrafterStats& stats = s.stats.drafters[index];
    ++stats.calls;
    stats.drafts += s.proposed->has_proposed(requests[i].mask) ? 1 : 0;
    stats.draft_ms += ms;
    (s.answered ? s.stats.draft_ms : s.stats.draft_prompt_ms) += ms;
    const std::string note = drafter.note(s.seq);
    if (!note.empty()) s.stats.reason = note;
  }
}

// The sequences whose chains ask this drafter at this stage, having found nothing before.
std::vector<Sequence*> askers(const Step& step, std::size_t drafter, std::size_t stage) {
  std::vector<Sequence*> result;
  for (const Part& part : step.parts) {
    Sequence& s = *part.sequence;
    if (!part.ready || !s.wants_drafts() || !s.asks(drafter)) continue;
    if (s.stats.steps < s.shortages[drafter].not_before) continue;
    for (const std::vector<std::size_t>& chain : s.chains) {
      if (asks_at(chain, stage, drafter, *s.proposed)) result.push_back(&s);
    }
  }
  return result;
}

// What kept a drafter from guessing for this text, if anything. After a failure it drafts no more
// for it: the text goes on without. Too little room may come from other texts, which end: it is
// asked again, each time after twice as many steps, kMostShortages times.
void note_failure(Sequence& s, Drafter& drafter, std::size_t index, const Status& failure) {
  if (failure.code() == StatusCode::kCancelled) return;
  Sequence::Shortage& shortage = s.shortages[index];
  if (failure.ok()) {
    shortage = {};
    return;
  }
  if (failure.code() == StatusCode::kResourceExhausted && shortage.count < kMostShortages) {
    shortage.not_before = s.stats.steps + (std::int64_t{1} << shortage.count);
    ++shortage.count;
    s.stats.reason =
        std::string(drafter.name()) + " was left out of some steps: " + failure.message();
    return;
  }
  drafter.end(s.seq);
  s.drop_failed(index, drafter.name(), failure);
}

void ask_for_guesses(Step& step, std::size_t index, Asking& asking) {
  Drafter& drafter = *step.drafters[index];
  const std::vector<Sequence*>& sequences = asking.sequences;
  const Stopwatch watch(step.clock);
  const Status status = drafter.draft(asking.requests);
  const double ms = watch.elapsed_ms();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const std::int32_t sharing = static_cast<std::int32_t>(sequences.size());
    // A drafter that could not guess is not counted as wrong, and took no pass.
    if (asking.requests[i].failure.ok()) asking.requests[i].failure = status;
    const bool could =
        asking.requests[i].failure.ok() && drafter.limit_reason(sequences[i]->seq).empty();
    if (asking.guides[i]) asking.guides[i]->finish(ms, sharing, could);
    if (could) sequences[i]->asked |= DrafterMask{1} << index;
  }
  if (asking.holds_up_others) step.reading_ms += asking.passes->reading_ms;
  const double drafting_ms = ms - asking.passes->reading_ms - asking.passes->held_up_ms;
  step.draft_ms += drafting_ms;
  step.drafter_ms.resize(step.drafters.size(), 0.0);
  // The accounts are charged for the planner's requests only.
  const double n_asked = static_cast<double>(sequences.size());
  step.drafter_ms[index] += drafting_ms * (1.0 - asking.passes->others / n_asked);
  note_results(asking.requests, sequences, drafter, index, ms);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    note_failure(*sequences[i], drafter, index, asking.requests[i].failure);
  }
}

// That is no asking: such a text had no guesses that could have been right or wrong.
void read_piece(Step& step, std::size_t index, const Asking::Piece& piece) {
  Drafter& drafter = *step.drafters[index];
  Sequence& s = *piece.sequence;
  const std::int64_t known = drafter.known(s.seq, s.text);
  const Stopwatch watch(step.clock);
  const Status status = drafter.read(s.seq, s.text, piece.tokens);
  const double ms = watch.elapsed_ms();
  const std::int64_t n_read = status.ok() ? drafter.known(s.seq, s.text) - known : 0;
  DrafterAccount& account = step.planner.account(index);
  step.reading_ms += account.note_reading(n_read, ms, step.planner.target_cost());
  account.give_back_reading(piece.tokens - std::max<std::int64_t>(n_read, 0),
                            step.planner.target_cost());
  s.stats.drafters[index].draft_ms += ms;
  (s.answered ? s.stats.draft_ms : s.stats.draft_prompt_ms) += ms;
  const std::string note = drafter.note(s.seq);
  if (!note.empty()) s.stats.reason = note;
  note_failure(s, drafter, index, status);
}

void ask(Step& step, std::size_t index, std::span<Sequence* const> askers) {
  Asking asking = plan_asking(step, index, askers);
  if (!asking.sequences.empty()) ask_for_guesses(step, index, asking);
  for (const Asking::Piece& piece : asking.pieces) read_piece(step, index, piece);
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
