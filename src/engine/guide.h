// StepGuide: what the planner says to one drafter about one request, in one step.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "engine/step.h"

namespace outrider {

// The passes that one drafter makes for several requests at once.
struct SharedPasses {
  std::int32_t requests = 0;  // that the pass to come, or the one that is running, is for
  std::int32_t others = 0;    // requests of a fixed width, for which it is as well
  std::int64_t missed = 0;    // tokens of theirs that are read in the first pass
  double reading_ms = 0.0;    // what that took beside the pass
};

class StepGuide : public DraftGuide {
 public:
  // All arguments must outlive this.
  StepGuide(Step& step, Sequence& sequence, std::size_t drafter);

  // Whether the drafter is asked at all. After a "no" it is asked all the same, as a trial, if that
  // is granted.
  // `sharing`: requests that the pass would be for.
  bool first_pass_pays(std::int32_t sharing);
  bool take_trial();

  // Drafting begins. `passes` must outlive this; of the guides that share them one, the
  // `timekeeper`, notes how long they take.
  void begin(SharedPasses* passes, bool timekeeper);

  float chance(std::int32_t depth, float confidence) const override;
  bool another_pass(float tip_chance, std::int32_t tip_depth) override;

  // The drafter is done; it took `ms` for all `sharing` requests.
  void finish(double ms, bool trial, std::int32_t sharing);

 private:
  bool pays(float tip_chance, std::int32_t tip_depth, std::int32_t sharing);
  void note_pass();
  void look_at_tree();

  Step& step_;
  Sequence& sequence_;
  std::size_t drafter_;
  SharedPasses* shared_ = nullptr;  // null: the drafter has not been asked
  bool timekeeper_ = false;
  std::int64_t missed_;         // tokens of the text that the drafter has to read
  std::vector<float> covered_;  // [depth] chance that what others propose is right there
  std::int32_t passes_ = 0;
  bool passing_ = true;  // a pass is under way
  Stopwatch draft_;      // since the drafter was asked
  Stopwatch pass_;       // since the pass began
};

}  // namespace outrider
