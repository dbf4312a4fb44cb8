// StepGuide: tells one drafter, for one request in one step, whether further guesses pay. It also
// measures what the drafter's passes take.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "engine/step.h"

namespace outrider {

// The passes that one drafter makes for several requests at once.
struct SharedPasses {
  std::int32_t requests = 0;  // with a guide that take part in the next, or the running, pass
  std::int32_t others = 0;    // requests of a fixed width that take part in all of them
  std::int64_t unread = 0;    // tokens that are read in the first pass, all guides' together
  double reading_ms = 0.0;    // what reading them took, beyond what the pass takes anyway
  double held_up_ms = 0.0;    // of all passes and the reading, what does not count (plan/held_up.h)
};

class StepGuide : public DraftGuide {
 public:
  // All arguments must outlive this.
  StepGuide(Step& step, Sequence& sequence, std::size_t drafter);

  // Whether asking the drafter pays. `sharing`: requests that the pass would be for.
  bool first_pass_pays(std::int32_t sharing);
  // Whether it has to read much for it, and what.
  bool must_read() const { return !few_unread(); }
  UnreadText unread_text() const;
  // Where it is not asked so: whether it may be asked all the same
  // (DrafterAccount::begin_exploration).
  bool begin_exploration();

  // Drafting begins. `passes` must outlive this. Of the guides that share them one, the
  // `timekeeper`, notes how long they take. `takes_part`: as far as is known, the drafter can guess
  // for this one; else neither its text nor its request counts until it asks for another pass.
  void begin(SharedPasses* passes, bool takes_part, bool timekeeper);

  float chance(std::int32_t depth, float confidence) const override;
  bool another_pass(float tip_chance, std::int32_t tip_depth) override;
  void ended() override;

  // The drafter is done; it took `ms` for all `sharing` requests. `could`: it could guess for this
  // one (its context is not full, nothing failed).
  void finish(double ms, std::int32_t sharing, bool could);

 private:
  bool few_unread() const;
  bool may_read() const;
  bool holds_up_first_token() const;
  bool pays(float tip_chance, std::int32_t tip_depth, std::int32_t sharing);
  void note_pass();
  void leave();
  void update_chances();

  Step& step_;
  Sequence& sequence_;
  std::size_t drafter_;
  SharedPasses* shared_ = nullptr;  // null: the drafter has not been asked
  bool timekeeper_ = false;
  std::int64_t unread_;         // tokens of the text that the drafter has to read
  std::vector<float> covered_;  // [depth] chance that another drafter's guess is right there
  std::int32_t passes_ = 0;
  bool passing_ = true;                   // a pass is under way
  bool counted_ = true;                   // in shared_->requests
  std::optional<double> exploration_ms_;  // that it may take; nullopt: it is asked since it pays
  double exploration_times_ = 1.0;        // as how many times what it takes that counts
  Stopwatch draft_;                       // since the drafter was asked
  Stopwatch pass_;                        // since the pass began
};

}  // namespace outrider
