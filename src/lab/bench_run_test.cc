// The order in which a bench runs, on hand-written models, and what it says when it is cut off.
#include "lab/bench_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <tuple>

#include "testing/drafter_fixture.h"

namespace outrider::lab {
namespace {

class BenchRunTest : public testing::DrafterTest {
 protected:
  BenchRunTest()
      : runtime_(make({.slots = 1, .reuse_prefix = false})), target_(runtime_->target()) {
    plan_.prompts = {{"first", "a", {1, 2}}, {"second", "b", {3, 4, 5}}};
    plan_.categories = {"a", "b"};
    plan_.request = asking("suffix", {}, /*seed=*/7, /*n=*/20);
    plan_.model = testing::model("target");
  }
  Harness harness(Watcher watcher = {}) {
    return {.runtime = *runtime_, .target = *target_, .watcher = std::move(watcher)};
  }

  std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<const Target> target_;
  BenchPlan plan_;
};

TEST_F(BenchRunTest, TheOrderChangesFromPromptToPromptAndFromRepetitionToRepetition) {
  using Text = std::tuple<std::int64_t, bool, std::uint64_t, std::size_t>;
  std::mutex mutex;
  std::condition_variable told;
  std::vector<Text> texts;  // tokens of the prompt, speculation, seed, tokens
  runtime_->subscribe([&](const RuntimeEvent& event) {
    if (!event.completion || !event.completion->result) return;
    const Completion& c = event.completion->result->completion;
    const std::lock_guard<std::mutex> lock(mutex);
    texts.emplace_back(c.prompt_tokens, c.speculation.enabled, c.seed, c.tokens.size());
    told.notify_all();
  });
  plan_.repeat = 2;
  plan_.warm_up = 1;
  const BenchRun run = run_bench(harness(), plan_);
  ASSERT_TRUE(run.failure.ok()) << run.failure.message();
  std::unique_lock<std::mutex> lock(mutex);
  told.wait(lock, [&] { return texts.size() == 10; });
  EXPECT_EQ(texts, (std::vector<Text>{{2, false, 7, 16},
                                      {2, true, 7, 16},
                                      {2, false, 7, 20},
                                      {2, true, 7, 20},
                                      {3, true, 7, 20},
                                      {3, false, 7, 20},
                                      {2, true, 8, 20},
                                      {2, false, 8, 20},
                                      {3, false, 8, 20},
                                      {3, true, 8, 20}}));
  EXPECT_EQ(run.pairs, 4);
  EXPECT_EQ(run.wanted, 4);
  EXPECT_EQ(run.result.repetitions, 2);
  ASSERT_EQ(run.result.categories.size(), 2U);
  EXPECT_EQ(run.result.categories[1].name, "b");
  EXPECT_EQ(run.result.overall.identical, 4);
  EXPECT_EQ(run.result.setting.drafter, "suffix");
  EXPECT_EQ(run.result.setting.target, "target");
}

TEST_F(BenchRunTest, IsRepeatedUntilItIsSureOrTenTimes) {
  plan_.until = 1e9;
  EXPECT_EQ(run_bench(harness(), plan_).result.repetitions, 4);
  plan_.until = 0.0;
  EXPECT_EQ(run_bench(harness(), plan_).result.repetitions, 10);
}

TEST_F(BenchRunTest, WhatWasMeasuredUntilAnInterruptionIsToldAndCounts) {
  plan_.repeat = 3;
  std::atomic<bool> interrupt{false};
  const BenchRun run = run_bench(
      harness({.progress = [&](const std::string& title,
                               double) { interrupt = title == "repetition 2 of 3, prompt 2 of 2"; },
               .interrupt = &interrupt}),
      plan_);
  EXPECT_TRUE(run.failure.ok()) << run.failure.message();
  EXPECT_EQ(run.pairs, 3);
  EXPECT_EQ(run.wanted, 6);
  EXPECT_TRUE(run.result.interrupted);
  EXPECT_EQ(run.result.repetitions, 1) << "the second was cut off";
  EXPECT_EQ(run.result.overall.pairs, 2);
}

TEST_F(BenchRunTest, WithoutSpeculationItFailsAndNamesThePrompt) {
  plan_.request.drafters = testing::plan("draft-model");
  const BenchRun run = run_bench(harness(), plan_);
  EXPECT_EQ(run.failure.code(), StatusCode::kUnsupported);
  EXPECT_EQ(run.failure.message().rfind("prompt first: there is nothing to measure", 0), 0U)
      << run.failure.message();
  EXPECT_EQ(run.pairs, 0);
}

TEST_F(BenchRunTest, AnOracleIsAskedForTheFirstRepetition) {
  plan_.repeat = 2;
  plan_.oracle = true;
  plan_.request.max_tokens = 40;
  const BenchRun run = run_bench(harness(), plan_);
  ASSERT_TRUE(run.failure.ok()) << run.failure.message();
  EXPECT_GT(run.result.overall.oracle.taken_ms, 0.0);
  EXPECT_LE(run.result.overall.oracle.oracle_ms, run.result.overall.oracle.taken_ms);
}

}  // namespace
}  // namespace outrider::lab
