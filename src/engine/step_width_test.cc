#include "engine/step_width.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/step.h"
#include "testing/fake_engine.h"
#include "testing/fake_model.h"

namespace outrider {
namespace {

// The beginning of steps of the hand-written model: up to the end of prepare().
class StepWidth : public ::testing::Test {
 protected:
  struct Prepared {
    std::int32_t n_prefix = 0;
    std::int32_t most = 0;  // nodes of those whose width the planner chooses
  };

  // A text whose root is within reach, behind `n_prefix` tokens that the target has not seen.
  const Sequence& add(std::int32_t width, AcceptanceRule rule = AcceptanceRule::kCoupled,
                      std::size_t n_prefix = 0) {
    Request r = testing::request(std::vector<Token>(n_prefix + 1, 1), 1.0f, 5, 100, width);
    r.rule = rule;
    const SeqId seq = static_cast<SeqId>(sequences_.size());
    Sequence& s =
        *sequences_.emplace_back(std::make_unique<Sequence>(0, seq, std::move(r), target.n_ctx));
    s.stats.enabled = true;
    parts_.push_back({.sequence = &s, .prefix = s.unseen(0).first(n_prefix), .ready = true});
    return s;
  }
  Prepared prepared() {
    testing::FakeModel model(target, testing::random_rows(testing::kVocab, 1, 1.0f));
    Step step{.target = model,
              .vocabulary = vocabulary_,
              .drafters = {},
              .planner = planner,
              .clock = nullptr,
              .planned_width = planned};
    step.parts = parts_;
    prepare(step);
    return {.n_prefix = step.n_prefix, .most = step.costs->most()};
  }
  // Of a text alone.
  std::int32_t width_of(std::int32_t width, AcceptanceRule rule = AcceptanceRule::kCoupled) {
    parts_.clear();
    const Sequence& s = add(width, rule);
    prepared();
    return s.width;
  }
  void know_costs() {
    const std::vector<CostPoint> points = {
        {.width = 1, .ms = 10.0}, {.width = 4, .ms = 12.0}, {.width = 64, .ms = 90.0}};
    planner.set_target_cost(CostCurve(points));
  }

  Capabilities target = testing::capabilities();
  Planner planner;
  std::int32_t planned = CostCurve::kMaxWidth;

 private:
  testing::FakeVocabulary vocabulary_{testing::kVocab};
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Part> parts_;
};

TEST(PlannedWidth, KeepsToWhatIsKnownToBeExact) {
  using Kind = Exactness::Kind;
  EXPECT_EQ(planned_width({.kind = Kind::kExact, .width = 16}), CostCurve::kMaxWidth);
  EXPECT_EQ(planned_width({.kind = Kind::kUpToWidth, .width = 4}), 4);
  EXPECT_EQ(planned_width({.kind = Kind::kDistributional, .width = 1}), CostCurve::kMaxWidth);
  EXPECT_EQ(planned_width({.kind = Kind::kDistributional, .width = 4}), 4)
      << "alone it is exact up to there";
}

TEST(WidthOf, IsTheRequestsUnlessItLeavesThatToThePlannerAsFarAsTheTargetTakesIt) {
  Capabilities target = testing::capabilities();
  target.max_width = 16;
  Request r;
  EXPECT_EQ(width_of(r, 7, target), 4);
  r.width = 1;
  EXPECT_EQ(width_of(r, 7, target), 1);
  r.width = 17;
  EXPECT_EQ(width_of(r, 7, target), 16);
  r.width = kAutoWidth;
  EXPECT_EQ(width_of(r, 7, target), 7);
  EXPECT_EQ(width_of(r, 64, target), 16);
}

TEST_F(StepWidth, OfARequestIsItsOwnAsFarAsTheTargetTakesIt) {
  target.max_width = 16;
  EXPECT_EQ(width_of(1), 1);
  EXPECT_EQ(width_of(4), 4);
  EXPECT_EQ(width_of(17), 16);
  planned = 2;
  EXPECT_EQ(width_of(4), 4) << "what is exact bounds the planner's choice alone";
}

TEST_F(StepWidth, WhereCostsAreNotKnownIsThatOfMeasuring) {
  EXPECT_EQ(width_of(kAutoWidth), 1);
  while (planner.measuring_width(1) == 1) planner.note_target(1, 10.0);
  EXPECT_EQ(width_of(kAutoWidth), Planner::kMeasuringWidth);
  target.max_width = 3;
  EXPECT_EQ(width_of(kAutoWidth), 3);
  planned = 2;
  EXPECT_EQ(width_of(kAutoWidth), 2);
}

TEST_F(StepWidth, WhereThePlannerChoosesIsWhatTheTargetTakesAndIsExact) {
  know_costs();
  target.max_width = 16;
  EXPECT_EQ(width_of(kAutoWidth), 16);
  EXPECT_EQ(prepared().most, 15);
  planned = 6;
  EXPECT_EQ(width_of(kAutoWidth), 6);
  EXPECT_EQ(prepared().most, 5);
  target.max_width = 64;
  planned = CostCurve::kMaxWidth;
  target.n_batch = 512;
  EXPECT_EQ(width_of(kAutoWidth), 64);
  EXPECT_EQ(prepared().most, kMostPlanned);
}

TEST_F(StepWidth, OfARuleThatDrawsIsNeverThePlanners) {
  know_costs();
  EXPECT_EQ(width_of(kAutoWidth, AcceptanceRule::kRejection), Planner::kMeasuringWidth);
  EXPECT_EQ(width_of(6, AcceptanceRule::kRejection), 6);
}

TEST_F(StepWidth, ThePlannerHasWhatTheOthersLeaveOfTheBatch) {
  know_costs();
  target.n_batch = 24;
  add(kAutoWidth, AcceptanceRule::kCoupled, /*n_prefix=*/10);
  add(kAutoWidth);
  add(4);
  EXPECT_EQ(prepared().n_prefix, 10);
  EXPECT_EQ(prepared().most, 24 - 10 - 2 - 4);
  target.n_batch = 16;  // full without a node of theirs
  EXPECT_EQ(prepared().most, 0);
  target.n_batch = 512;
  EXPECT_EQ(prepared().most, 2 * 15) << "then the target's own width bounds them";
}

TEST_F(StepWidth, OfOneThatAsksForMoreThanTheTargetTakesLeavesTheRestToThePlanner) {
  know_costs();
  target.max_width = 8;
  target.n_batch = 24;
  add(kAutoWidth);
  add(64);
  EXPECT_EQ(prepared().most, 7) << "24 hold the other's 8, and 8 of this one";
  target.n_batch = 12;
  EXPECT_EQ(prepared().most, 12 - 1 - 8);
}

}  // namespace
}  // namespace outrider
