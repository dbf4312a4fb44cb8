#include "engine/guide.h"

#include <algorithm>

namespace outrider {
namespace {

// Where a first pass reads more tokens than that for each request, its time is not that of a pass.
constexpr std::int64_t kFewUnread = 16;

// A text's first token waits for what drafters read before it. Their guesses spare that step at
// most, so what takes longer than this, in times of a single token, is read for the next one: with
// SmolLM2 and its draft a prompt of 300 tokens made the first token 49 ms later (228 in place of
// 179). Text drafters read in far less.
constexpr double kFirstTokenHeldUp = 0.1;

// Where not even guesses that are sure to be right would pay (sixteen requests on most processors,
// a draft as costly as its target), exploration counts as so many times what it takes: it is left
// a tenth of the allowance, which finds out passes that have become cheaper.
constexpr double kInVain = 10.0;

}  // namespace

StepGuide::StepGuide(Step& step, Sequence& sequence, std::size_t drafter)
    : step_(step),
      sequence_(sequence),
      drafter_(drafter),
      unread_(static_cast<std::int64_t>(sequence.text.size()) -
              std::max(sequence.plan.asked_at(drafter),
                       step.drafters[drafter]->known(sequence.seq, sequence.text))),
      draft_(step.clock),
      pass_(step.clock) {}

bool StepGuide::few_unread() const { return unread_ <= kFewUnread; }

bool StepGuide::may_read() const {
  if (few_unread()) return true;
  return step_.planner.account(drafter_).may_read(unread_text(), step_.planner.target_cost());
}

UnreadText StepGuide::unread_text() const {
  // Those whose prompts are being read will share the steps to come.
  const std::int32_t load = static_cast<std::int32_t>(step_.parts.size());
  return step_.planner.unread_text(drafter_, unread_, sequence_.remaining(), load,
                                   sequence_.is_drawn());
}

bool StepGuide::holds_up_first_token() const {
  if (few_unread() || sequence_.answered) return false;
  const double token_ms = step_.planner.token_ms();
  const double reading_ms =
      step_.planner.account(drafter_).reading_ms(unread_, step_.planner.target_cost());
  return reading_ms > kFirstTokenHeldUp * token_ms;
}

void StepGuide::update_chances() {
  const TokenTree& tree = *sequence_.proposed;
  TreeChances& chances = sequence_.chances;
  chances.update(tree, step_.planner.acceptance(), sequence_.plan.bias, &step_.chances);
  covered_.clear();
  const DrafterMask ours = DrafterMask{1} << drafter_;
  for (NodeId id = 1; id < tree.size(); ++id) {
    const TokenTree::Node& node = tree.node(id);
    if ((node.proposed_by & ours) != 0) continue;
    const std::size_t depth = static_cast<std::size_t>(node.depth);
    if (covered_.size() <= depth) covered_.resize(depth + 1, 0.0f);
    covered_[depth] += chances.values()[static_cast<std::size_t>(id)];
  }
}

bool StepGuide::pays(float tip_chance, std::int32_t tip_depth, std::int32_t sharing) {
  update_chances();
  // Reading pays in later steps too, so it is not counted in this one.
  const double apart_ms = shared_ != nullptr ? shared_->reading_ms + shared_->held_up_ms : 0.0;
  const bool comes_back = !few_unread() && sequence_.plan.asked_at(drafter_) > 0;
  return step_.planner.another_pass_pays(
      {.drafter = drafter_,
       .tip_chance = tip_chance,
       .tip_depth = tip_depth,
       .sharing = sharing,
       .covered = covered_,
       .optimistic = !comes_back},
      sequence_.plan,
      {.chances = step_.chances.values(),
       .n_ready = step_.n_ready,
       .costs = &*step_.costs,
       .spent_ms = step_.draft_ms + draft_.elapsed_ms() - apart_ms});
}

bool StepGuide::first_pass_pays(std::int32_t sharing) {
  const DrafterAccount& account = step_.planner.account(drafter_);
  if (account.suspended()) return false;
  if (holds_up_first_token() || !may_read()) return false;
  return pays(1.0f, 0, sharing);
}

bool StepGuide::begin_exploration() {
  if (holds_up_first_token()) return false;
  const bool may_pay = step_.planner.sure_guesses_pay(drafter_, step_.n_ready, *step_.costs);
  exploration_times_ = may_pay ? 1.0 : kInVain;
  DrafterAccount& account = step_.planner.account(drafter_);
  exploration_ms_ =
      account.begin_exploration(unread_, step_.planner.target_cost(), exploration_times_);
  return exploration_ms_.has_value();
}

void StepGuide::begin(SharedPasses* passes, bool takes_part, bool timekeeper) {
  shared_ = passes;
  passing_ = counted_ = takes_part;
  if (takes_part) {
    ++shared_->requests;
    shared_->unread += unread_;
  }
  timekeeper_ = timekeeper;
  draft_.restart();
  pass_.restart();
}

float StepGuide::chance(std::int32_t depth, float confidence) const {
  const GuessClaim claim{.drafter = drafter_, .depth = depth, .confidence = confidence};
  return static_cast<float>(
      sequence_.plan.bias.shifted(drafter_, step_.planner.acceptance().chance(claim)));
}

void StepGuide::note_pass() {
  if (!passing_) return;
  passing_ = false;
  const bool first = passes_++ == 0;
  if (!timekeeper_) return;
  DrafterAccount& account = step_.planner.account(drafter_);
  const double ms = pass_.elapsed_ms();
  const std::int32_t sharing = shared_->requests + shared_->others;
  const CostCurve& target = step_.planner.target_cost();
  if (!first || shared_->unread <= kFewUnread * sharing) {
    shared_->held_up_ms += ms - account.note_pass(first, sharing, ms, target);
    return;
  }
  const double reading_ms =
      std::max(0.0, ms - step_.planner.pass_ms(drafter_, true, sharing) * sharing);
  shared_->reading_ms = account.note_reading(shared_->unread, reading_ms, target);
  shared_->held_up_ms += reading_ms - shared_->reading_ms;
}

bool StepGuide::another_pass(float tip_chance, std::int32_t tip_depth) {
  note_pass();
  if (!counted_) ++shared_->requests;
  counted_ = true;
  passing_ = pays(tip_chance, tip_depth, shared_->requests);
  if (!passing_) leave();
  pass_.restart();
  return passing_;
}

void StepGuide::ended() {
  note_pass();
  leave();
}

void StepGuide::leave() {
  passing_ = false;
  if (counted_) --shared_->requests;
  counted_ = false;
}

void StepGuide::finish(double ms, std::int32_t sharing, bool could) {
  if (could) note_pass();
  update_chances();
  DrafterAccount& account = step_.planner.account(drafter_);
  if (exploration_ms_) {
    account.end_exploration(*exploration_ms_,
                            exploration_times_ * (ms - shared_->held_up_ms) / sharing);
  } else if (!could && counted_ && must_read()) {
    account.give_back_reading(unread_, step_.planner.target_cost());
  }
  if (could) {
    sequence_.plan.set_asked_at(drafter_, static_cast<std::int64_t>(sequence_.text.size()));
  }
}

}  // namespace outrider
