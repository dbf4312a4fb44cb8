#include "engine/guide.h"

#include <algorithm>

namespace outrider {
namespace {

// A first pass that reads more than that as well, for each request, says nothing of the next ones.
constexpr std::int64_t kFewMissed = 16;

}  // namespace

StepGuide::StepGuide(Step& step, Sequence& sequence, std::size_t drafter)
    : step_(step),
      sequence_(sequence),
      drafter_(drafter),
      missed_(static_cast<std::int64_t>(sequence.text.size()) -
              std::max(sequence.plan.asked_at(drafter),
                       step.drafters[drafter]->known(sequence.seq, sequence.text))),
      draft_(step.clock),
      pass_(step.clock) {}

void StepGuide::look_at_tree() {
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
  look_at_tree();
  // Reading is not for this step alone.
  const double reading_ms = shared_ != nullptr ? shared_->reading_ms : 0.0;
  const bool comes_back = missed_ > kFewMissed && sequence_.plan.asked_at(drafter_) > 0;
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
       .spent_ms = step_.draft_ms + draft_.elapsed_ms() - reading_ms});
}

bool StepGuide::first_pass_pays(std::int32_t sharing) {
  const DrafterAccount& account = step_.planner.account(drafter_);
  if (account.suspended()) return false;
  const Planner& planner = step_.planner;
  const std::int64_t to_come = planner.expected_tokens(sequence_.remaining());
  const bool few = missed_ <= kFewMissed;
  if (!few && !account.may_read(missed_, to_come, planner.token_ms())) return false;
  return pays(1.0f, 0, sharing);
}

bool StepGuide::take_trial() {
  return step_.planner.account(drafter_).take_trial(missed_, step_.planner.token_ms());
}

void StepGuide::begin(SharedPasses* passes, bool timekeeper) {
  shared_ = passes;
  ++shared_->requests;
  shared_->missed += missed_;
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
  if (!first || shared_->missed <= kFewMissed * sharing) {
    account.note_pass(first, sharing, ms);
    return;
  }
  shared_->reading_ms = std::max(0.0, ms - account.pass_ms(true, sharing) * sharing);
  account.note_reading(shared_->missed, shared_->reading_ms);
}

bool StepGuide::another_pass(float tip_chance, std::int32_t tip_depth) {
  note_pass();
  passing_ = pays(tip_chance, tip_depth, shared_->requests);
  if (!passing_) --shared_->requests;
  pass_.restart();
  return passing_;
}

void StepGuide::finish(double ms, bool trial, std::int32_t sharing) {
  note_pass();
  look_at_tree();
  if (trial) step_.planner.account(drafter_).note_trial(missed_, ms / sharing);
  sequence_.plan.set_asked_at(drafter_, static_cast<std::int64_t>(sequence_.text.size()));
}

}  // namespace outrider
