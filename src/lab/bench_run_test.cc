// The order in which a bench runs, on hand-written models, and what it says when it is cut off.
#include "lab/bench_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <tuple>

#include "base/on_exit.h"
#include "testing/drafter_fixture.h"
#include "testing/slow_model.h"

namespace outrider::lab {
namespace {

// Its size is known.
class SizedTarget : public testing::FakeTarget {
 public:
  SizedTarget(const testing::FakeFile& file, const ModelOptions& options,
              std::atomic<std::int64_t>& n_begun)
      : FakeTarget(file, options, n_begun), info_(FakeTarget::info()) {
    info_.size_bytes = 100;
  }
  const ModelInfo& info() const override { return info_; }

 private:
  ModelInfo info_;
};

// A draft nearly as large as the target whose passes take a hundredth of the target's, but for the
// first, which reads a prompt.
class SizedLoader : public testing::FakeLoader {
 public:
  explicit SizedLoader(testing::PassClock& clock) {
    target_.on_evaluated = [&clock] { clock.spend(100); };
    add("draft", {.seed = 1, .on_evaluated = [this, &clock] {
                    clock.spend(first_.exchange(false) ? 20000 : 1);
                  }});
  }
  Result<std::unique_ptr<Target>> load_target(const ModelOptions& options,
                                              const LoadHooks& /*hooks*/) override {
    return std::unique_ptr<Target>(std::make_unique<SizedTarget>(target_, options, n_begun_));
  }
  Result<std::unique_ptr<Draft>> load_draft(const ModelOptions& options,
                                            std::shared_ptr<const Target> target,
                                            const LoadHooks& hooks) override {
    Result<std::unique_ptr<Draft>> draft =
        FakeLoader::load_draft(options, std::move(target), hooks);
    if (draft.ok()) (*draft)->info.size_bytes = 90;
    return draft;
  }

 private:
  testing::FakeFile target_;
  std::atomic<std::int64_t> n_begun_{0};
  std::atomic<bool> first_{true};
};

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
  // No such file, so the floor of its steps is not known: that is said, and all else is there.
  EXPECT_TRUE(run.result.floor.empty());
  EXPECT_NE(run.result.floor_reason.find("target"), std::string::npos) << run.result.floor_reason;
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

// Foresight is no slower than the run. By the sizes of the files no guess would have paid.
TEST_F(BenchRunTest, AtAFixedWidthAnOraclesGuessesTakeWhatTheyTookInTheRun) {
  testing::PassClock clock;
  SizedLoader loader(clock);
  const OnExit end([this] {  // before what they use
    target_.reset();
    runtime_.reset();
  });
  Result<std::unique_ptr<Runtime>> made =
      Runtime::create({.slots = 1, .reuse_prefix = false, .now_ms = clock.now()}, loader);
  ASSERT_TRUE(made.ok());
  runtime_ = *std::move(made);
  ASSERT_TRUE(runtime_->load(ModelRole::kTarget, testing::model("target")).ok());
  ASSERT_TRUE(runtime_->load(ModelRole::kDraft, testing::model("draft")).ok());
  ASSERT_TRUE(runtime_->wait_loaded(-1));
  target_ = runtime_->target();
  plan_.prompts.resize(1);
  plan_.request = asking("draft-model", {}, /*seed=*/7, /*n=*/40);
  plan_.repeat = 1;
  plan_.warm_up = 0;
  plan_.oracle = true;
  const BenchRun run = run_bench(harness(), plan_);
  ASSERT_TRUE(run.failure.ok()) << run.failure.message();
  EXPECT_GT(run.result.overall.oracle.taken_ms, 0.0);
  EXPECT_LE(run.result.overall.oracle.oracle_ms, run.result.overall.oracle.taken_ms);
}

}  // namespace
}  // namespace outrider::lab
