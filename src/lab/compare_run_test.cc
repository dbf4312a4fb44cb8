// Comparing on hand-written models: the plain text's own tokens proposed, and what is told when it
// is cut off.
#include "lab/compare_run.h"

#include <gtest/gtest.h>

#include <atomic>

#include "testing/drafter_fixture.h"

namespace outrider::lab {
namespace {

using testing::ask;

class CompareRunTest : public testing::DrafterTest {
 protected:
  CompareRunTest()
      : runtime_(
            make({.slots = 1, .reuse_prefix = false, .drafters = {replay_drafter(plan_.replay)}})),
        target_(runtime_->target()) {
    plan_.prompts = {{"first", "", {1, 2}}, {"second", "", {3, 4, 5}}, {"third", "", {6}}};
    plan_.request = ask({}, /*seed=*/7, /*n=*/30);
    plan_.request.drafters.chains = {{std::string(ReplayDrafter::kName)}};
    plan_.widths = {2, 6};
  }
  Harness harness(Watcher watcher = {}) {
    return {.runtime = *runtime_, .target = *target_, .watcher = std::move(watcher)};
  }

  ComparePlan plan_;
  std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<const Target> target_;
};

TEST_F(CompareRunTest, EveryWidthProposesThePlainTextAndSaysIt) {
  const CompareRun run = run_comparison(harness(), plan_);
  ASSERT_TRUE(run.failure.ok()) << run.failure.message();
  const Comparison& c = run.comparison;
  EXPECT_EQ(c.prompts, 3);
  EXPECT_EQ(c.identical, 3);
  EXPECT_EQ(c.tokens, 90);
  EXPECT_EQ(c.logprob_difference, 0.0);
  EXPECT_EQ(c.drafter, "replay");
  EXPECT_EQ(c.seed, 7U);
  ASSERT_EQ(c.widths.size(), 2U);
  for (const WidthComparison& width : c.widths) {
    EXPECT_EQ(width.identical, 3);
    EXPECT_GT(width.accepted, 0) << width.width;
    EXPECT_LT(width.accepted, width.drafted) << "every fifth one is wrong";
  }
  EXPECT_LT(c.widths[1].steps, c.widths[0].steps);
}

TEST_F(CompareRunTest, OfAnInterruptedOneThePromptsThatWereDoneCount) {
  std::atomic<bool> interrupt{false};
  int prompts = 0;
  const CompareRun run = run_comparison(
      harness({.progress = [&](const std::string&, double) { interrupt = ++prompts == 3; },
               .interrupt = &interrupt}),
      plan_);
  EXPECT_TRUE(run.failure.ok()) << run.failure.message();
  EXPECT_EQ(run.comparison.prompts, 2);
  EXPECT_EQ(run.comparison.widths[1].identical, 2);
  EXPECT_EQ(run.comparison.tokens, 60);
}

TEST_F(CompareRunTest, AFailureNamesItsPromptAndLeavesTheOthersResults) {
  plan_.prompts[1].tokens = {99};  // no token of this target
  const CompareRun run = run_comparison(harness(), plan_);
  EXPECT_EQ(run.failure.message().rfind("prompt second: ", 0), 0U) << run.failure.message();
  EXPECT_EQ(run.comparison.prompts, 1);
}

}  // namespace
}  // namespace outrider::lab
