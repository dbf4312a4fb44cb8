#include "engine/guide.h"

#include <algorithm>
#include <functional>

namespace outrider {
namespace {

// A first pass that reads more than that as well says nothing of the next ones.
constexpr std::int64_t kFewMissed = 16;

}  // namespace

std::vector<float> planned_chances(const Step& step) {
  std::vector<float> chances;
  for (const Part& part : step.parts) {
    const Sequence& s = *part.sequence;
    if (!part.ready || !s.planned || !s.proposed || s.proposed->size() == 1) continue;
    TokenTree tree = *s.proposed;
    calibrate(tree, step.planner.acceptance(), s.plan.bias);
    for (NodeId id = 1; id < tree.size(); ++id) chances.push_back(tree.node(id).chance);
  }
  std::sort(chances.begin(), chances.end(), std::greater<float>());
  return chances;
}

StepGuide::StepGuide(Step& step, Sequence& sequence, std::size_t drafter, std::int32_t sharing,
                     bool timekeeper)
    : step_(step),
      sequence_(sequence),
      drafter_(drafter),
      sharing_(sharing),
      timekeeper_(timekeeper),
      missed_(static_cast<std::int64_t>(sequence.text.size()) - sequence.plan.asked_at(drafter)),
      draft_(step.clock),
      pass_(step.clock) {}

bool StepGuide::pays(float tip_chance, std::int32_t tip_depth) const {
  return step_.planner.another_pass_pays(drafter_, sequence_.plan, tip_chance, tip_depth, sharing_,
                                         planned_chances(step_), step_.n_planned, *step_.costs,
                                         step_.draft_ms + draft_.elapsed_ms());
}

bool StepGuide::first_pass_pays() const { return pays(1.0f, 0); }

bool StepGuide::may_try() const { return step_.planner.may_try(drafter_, missed_); }

float StepGuide::chance(std::int32_t depth, float confidence) const {
  const GuessClaim claim{.drafter = drafter_, .depth = depth, .confidence = confidence};
  return static_cast<float>(
      sequence_.plan.bias.shifted(drafter_, step_.planner.acceptance().chance(claim)));
}

void StepGuide::note_pass() {
  if (!passing_) return;
  passing_ = false;
  const bool first = passes_++ == 0;
  if (timekeeper_ && (!first || missed_ <= kFewMissed)) {
    step_.planner.note_pass(drafter_, first, sharing_, pass_.elapsed_ms());
  }
}

bool StepGuide::another_pass(float tip_chance, std::int32_t tip_depth) {
  note_pass();
  passing_ = pays(tip_chance, tip_depth);
  pass_.restart();
  return passing_;
}

void StepGuide::finish(double ms, bool trial) {
  note_pass();
  if (trial) step_.planner.note_trial(drafter_, ms / static_cast<double>(sharing_));
  sequence_.plan.set_asked_at(drafter_, static_cast<std::int64_t>(sequence_.text.size()));
}

}  // namespace outrider
