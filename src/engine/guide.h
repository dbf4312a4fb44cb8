// StepGuide: what the planner says to one drafter about one request, in one step.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "engine/step.h"

namespace outrider {

// The chances of all that is proposed in a step for requests whose width the planner chooses,
// falling.
std::vector<float> planned_chances(const Step& step);

class StepGuide : public DraftGuide {
 public:
  // `sharing`: requests that are drafted for in the same passes. Of these guides one, the
  // `timekeeper`, notes how long passes take. All arguments must outlive this.
  StepGuide(Step& step, Sequence& sequence, std::size_t drafter, std::int32_t sharing,
            bool timekeeper);

  // Whether the drafter is asked at all. After a "no" it may be asked all the same, as a trial.
  bool first_pass_pays() const;
  bool may_try() const;

  float chance(std::int32_t depth, float confidence) const override;
  bool another_pass(float tip_chance, std::int32_t tip_depth) override;

  // The drafter is done; it took `ms` for all who share.
  void finish(double ms, bool trial);

 private:
  bool pays(float tip_chance, std::int32_t tip_depth) const;
  void note_pass();

  Step& step_;
  Sequence& sequence_;
  std::size_t drafter_;
  std::int32_t sharing_;
  bool timekeeper_;
  std::int64_t missed_;  // tokens that the drafter was not asked about before
  std::int32_t passes_ = 0;
  bool passing_ = true;  // a pass is under way
  Stopwatch draft_;      // since the drafter was asked
  Stopwatch pass_;       // since the pass began
};

}  // namespace outrider
