// Drafters without a model: which ones guess for a request, and files that come, go and fail while
// requests run.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "serve/runtime.h"
#include "testing/drafter_fixture.h"
#include "testing/step_gate.h"

namespace outrider {
namespace {

using testing::ask;
using testing::model;
using testing::plan;
using RuntimeDrafters = testing::DrafterTest;

TEST_F(RuntimeDrafters, EveryExpressionGivesThePlainText) {
  const std::unique_ptr<Runtime> runtime = make();
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("draft")).ok());
  ASSERT_TRUE(runtime->attach({"suffix", right_store("right", {1, 2}, 3, 40)}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  for (const char* expression :
       {"suffix", "recycle", "ngram-cache", "draft-model", "suffix,recycle", "suffix/recycle",
        "recycle/suffix", "ngram-cache/recycle", "draft-model,suffix,recycle", "suffix/draft-model",
        "draft-model,suffix/recycle", "draft-model,suffix,ngram-cache,recycle"}) {
    std::int64_t drafted = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const Completion c = (*runtime->run(asking(expression, {1, 2}, seed, 40)))->completion;
      EXPECT_EQ(c.tokens, alone({1, 2}, seed, 40)) << expression << ", seed " << seed;
      EXPECT_TRUE(c.speculation.enabled) << expression;
      EXPECT_EQ(c.speculation.reason, "") << expression;
      drafted += c.speculation.drafted;
      for (const DrafterStatus& drafter : runtime->status().drafters) {
        EXPECT_EQ(stats_of(c, drafter.name) != nullptr, plan(expression).mentions(drafter.name))
            << expression << ": " << drafter.name;
      }
    }
    EXPECT_GT(drafted, 0) << expression;
  }
  EXPECT_EQ(runtime->check_integrity(), "");
}

TEST_F(RuntimeDrafters, ARequestThatNamesNoneUsesAllThatAreThere) {
  const std::unique_ptr<Runtime> runtime = make();
  const auto names = [&](AcceptanceRule rule = AcceptanceRule::kCoupled) {
    CompletionRequest request = ask({1, 2}, 3, 20);
    request.rule = rule;
    const Completion c = (*runtime->run(std::move(request)))->completion;
    EXPECT_TRUE(c.speculation.enabled);
    EXPECT_EQ(c.speculation.reason, "");
    std::vector<std::string> used;
    for (const DrafterStats& drafter : c.speculation.drafters) used.push_back(drafter.name);
    return used;
  };
  EXPECT_EQ(names(), (std::vector<std::string>{"suffix"}));
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("draft")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(names(), (std::vector<std::string>{"draft-model", "suffix"}));
  EXPECT_EQ(names(AcceptanceRule::kRejection), (std::vector<std::string>{"draft-model"}))
      << "steps of a fixed width";
}

// By every interface: the command checks it before it loads anything, the others meet it here.
TEST_F(RuntimeDrafters, ATargetOpenedToKeepTheTextAnswersByTheCoupledRuleOnly) {
  const std::unique_ptr<Runtime> runtime = make();
  ModelOptions exact = model("target");
  exact.exact = ExactMode::kOn;
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, exact).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  CompletionRequest request = ask({1, 2}, 3, 20);
  EXPECT_TRUE(runtime->run(request).ok());
  request.rule = AcceptanceRule::kRejection;
  const Status refused = runtime->run(request).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.field(), "rule");
}

// A draft may still come, and its file fail to; prediction layers are there or not.
TEST_F(RuntimeDrafters, WhoNamesPredictionLayersThatTheTargetDoesNotHaveIsTold) {
  const std::unique_ptr<Runtime> runtime = make();
  for (const char* expression : {"mtp", "mtp,suffix", "suffix/mtp"}) {
    const Status refused = runtime->run(asking(expression, {1, 2}, 3, 20)).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << expression;
    EXPECT_EQ(refused.field(), "drafter");
    EXPECT_EQ(refused.message(), "drafter is '" + std::string(expression) +
                                     "', but the target has no prediction layers (MTP); name "
                                     "others, or auto, which takes what is there");
  }
  CompletionRequest plain = asking("mtp", {1, 2}, 3, 20);
  plain.speculative = false;
  EXPECT_TRUE(runtime->run(plain).ok()) << "who is not asked is not missed";
  plain.speculative = true;
  plain.width = 1;
  EXPECT_TRUE(runtime->run(plain).ok());
  EXPECT_EQ(runtime->check_integrity(), "");
}

// A server's setting is for all its models.
TEST_F(RuntimeDrafters, PredictionLayersThatADefaultNamesAreNoErrorOfARequestThatNamedNothing) {
  const std::unique_ptr<Runtime> runtime = make();
  for (const char* expression : {"mtp", "mtp,suffix", "suffix/mtp"}) {
    CompletionRequest request = asking(expression, {1, 2}, 3, 20);
    request.drafters_by_default = true;
    const auto result = runtime->run(request);
    ASSERT_TRUE(result.ok()) << expression << ": " << result.status().message();
    const SpeculationStats& stats = (*result)->completion.speculation;
    EXPECT_EQ(stats.reason, "the target has no prediction layers (MTP)") << expression;
    EXPECT_EQ(stats.enabled, std::string(expression) != "mtp");
    // The request's own word counts again.
    ASSERT_TRUE(set_drafters(request, expression).ok());
    EXPECT_EQ(runtime->run(request).status().field(), "drafter") << expression;
  }
}

TEST_F(RuntimeDrafters, ADraftModelThatCouldNotBeLoadedIsMissed) {
  const std::unique_ptr<Runtime> runtime = make();
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("no such draft")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  const Completion c = (*runtime->run(ask({1, 2}, 3, 20)))->completion;
  EXPECT_TRUE(c.speculation.enabled) << "suffix is there";
  EXPECT_NE(c.speculation.reason.find("the draft model could not be loaded"), std::string::npos)
      << c.speculation.reason;
}

TEST_F(RuntimeDrafters, WhatIsNotAttachedIsNamedAndTheOthersGoOn) {
  const std::unique_ptr<Runtime> runtime = make();
  Completion c = (*runtime->run(asking("draft-model", {1, 2}, 3, 20)))->completion;
  EXPECT_FALSE(c.speculation.enabled);
  EXPECT_EQ(c.speculation.reason, "no draft model is loaded");
  EXPECT_EQ(c.tokens, alone({1, 2}, 3, 20));
  c = (*runtime->run(asking("draft-model,recycle", {1, 2}, 3, 20)))->completion;
  EXPECT_TRUE(c.speculation.enabled);
  EXPECT_EQ(c.speculation.reason, "no draft model is loaded");
  EXPECT_EQ(c.tokens, alone({1, 2}, 3, 20));
  CompletionRequest off = asking("suffix", {1, 2}, 3, 20);
  off.speculative = false;
  EXPECT_EQ((*runtime->run(off))->completion.speculation.reason,
            "the request asked for plain decoding");
}

TEST_F(RuntimeDrafters, AStoreComesAndGoesWhileARequestRuns) {
  const std::unique_ptr<Runtime> runtime = make({}, "target", 1000);
  testing::StepGate gate(*runtime);
  const std::string path = right_store("right", {1, 2}, 3, 900);
  const CompletionId id = runtime->start(asking("suffix", {1, 2}, 3, 900))->id;
  std::vector<SaidToken> said;
  const auto poll = [&] {
    gate.let(1);
    Result<PolledCompletion> polled = runtime->poll(id, 1000);
    EXPECT_TRUE(polled.ok());
    said.insert(said.end(), polled->tokens.begin(), polled->tokens.end());
    return polled->result;
  };
  while (said.empty()) ASSERT_EQ(poll(), nullptr);
  ASSERT_TRUE(runtime->attach({"suffix", path}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_TRUE(file_of(*runtime).serving);
  EXPECT_EQ(file_of(*runtime).state, ModelState::kReady);
  EXPECT_GT(file_of(*runtime).file_bytes, 1200U);
  const std::size_t when = said.size();
  // Wide steps only come from the store: the own text has too little to go by.
  std::size_t by_suffix = 0;
  while (by_suffix < 12) {
    ASSERT_EQ(poll(), nullptr) << "ended with " << by_suffix << " guessed";
    by_suffix = 0;
    for (std::size_t i = when; i < said.size(); ++i) by_suffix += said[i].by == "suffix" ? 1 : 0;
  }
  ASSERT_TRUE(runtime->detach({"suffix", path}).ok());
  EXPECT_TRUE(status_of(*runtime, "suffix").files.empty());
  EXPECT_TRUE(status_of(*runtime, "suffix").attached);
  gate.open();
  std::shared_ptr<const CompletionResult> result;
  while (!result) result = poll();
  EXPECT_EQ(result->completion.tokens, alone({1, 2}, 3, 900));
  EXPECT_EQ(result->completion.speculation.reason,
            "the file '" + path + "' of the drafter 'suffix' was taken away");
  EXPECT_TRUE(result->completion.speculation.enabled) << "its own text is still looked up";
  EXPECT_EQ((*runtime->run(asking("suffix", {1, 2}, 3, 5)))->completion.speculation.reason, "")
      << "the next one never had it";
}

TEST_F(RuntimeDrafters, AnotherTokenizersStoreIsRefusedAndTheOthersGoOn) {
  const std::unique_ptr<Runtime> runtime = make();
  ASSERT_TRUE(runtime->attach({"suffix", right_store("right", {1, 2}, 3, 40)}).ok());
  ASSERT_TRUE(runtime->attach({"suffix", store("small", 5, {{1, 2, 3, 4}})}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  const std::vector<DrafterFileStatus> files = status_of(*runtime, "suffix").files;
  ASSERT_EQ(files.size(), 2U);
  EXPECT_TRUE(files[0].serving);
  EXPECT_FALSE(files[1].serving);
  EXPECT_EQ(files[1].state, ModelState::kFailed);
  EXPECT_EQ(files[1].error.code(), StatusCode::kInvalidArgument);
  for (const std::string& part :
       {dir_.file("small"), std::string("5 tokens, hash"), std::string("12 tokens, hash")}) {
    EXPECT_NE(files[1].error.message().find(part), std::string::npos) << files[1].error.message();
  }
  const Completion c = (*runtime->run(asking("suffix", {1, 2}, 3, 40)))->completion;
  EXPECT_EQ(c.tokens, alone({1, 2}, 3, 40));
  EXPECT_GT(c.speculation.accepted, 20);
}

TEST_F(RuntimeDrafters, WhoNamesADrafterIsToldWhichOfItsFilesCouldNotBeUsed) {
  const std::unique_ptr<Runtime> runtime = make();
  const std::string of_another = store("small", 5, {{1, 2, 3, 4}});
  ASSERT_TRUE(runtime->attach({"suffix", of_another}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  const auto reason = [&](CompletionRequest request) {
    const Completion c = (*runtime->run(std::move(request)))->completion;
    EXPECT_TRUE(c.speculation.enabled) << "its own text is looked up";
    return c.speculation.reason;
  };
  const std::string why = "the file '" + of_another + "' of 'suffix' could not be used: ";
  for (const std::string& said :
       {reason(asking("suffix", {1, 2}, 3, 20)), reason(asking("recycle/suffix", {1, 2}, 3, 20)),
        reason(ask({1, 2}, 3, 20))}) {
    EXPECT_EQ(said.find(why), 0U) << said;
  }
  EXPECT_EQ(reason(asking("recycle", {1, 2}, 3, 20)), "") << "it has no files";
}

TEST_F(RuntimeDrafters, FilesThatCannotBeUsedSayWhy) {
  const std::unique_ptr<Runtime> runtime = make();
  const std::string whole = testing::read_bytes(right_store("right", {1, 2}, 3, 40));
  testing::write_bytes(dir_.file("cut"), whole.substr(0, whole.size() / 2));
  testing::write_bytes(dir_.file("empty"), "");
  testing::write_bytes(dir_.file("text"), std::string(5000, 'x'));
  for (const std::string& path : {dir_.file("missing"), dir_.file("cut"), dir_.file("empty"),
                                  dir_.file("text"), dir_.path()}) {
    ASSERT_TRUE(runtime->attach({"suffix", path}).ok());
    ASSERT_TRUE(runtime->wait_loaded(-1));
    const DrafterFileStatus file = file_of(*runtime);
    EXPECT_EQ(file.state, ModelState::kFailed);
    EXPECT_FALSE(file.serving);
    EXPECT_NE(file.error.message().find(path), std::string::npos) << file.error.message();
    ASSERT_TRUE(runtime->detach({"suffix", path}).ok());
  }
  EXPECT_EQ((*runtime->run(asking("suffix", {1, 2}, 3, 20)))->completion.tokens,
            alone({1, 2}, 3, 20));
  EXPECT_EQ(runtime->attach({"recycle", "x"}).message(),
            "drafter is 'recycle', but must be suffix or ngram-cache: no other drafter takes "
            "files");
  EXPECT_EQ(runtime->attach({"suffix", ""}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(runtime->detach({"suffix", "x"}).code(), StatusCode::kNotFound);
  EXPECT_EQ(runtime->detach({"suffix", ""}).code(), StatusCode::kNotFound);
}

TEST_F(RuntimeDrafters, DamageThatIsFoundWhileItIsUsedIsInTheStatusAndTheResult) {
  const std::unique_ptr<Runtime> runtime = make({}, "target", 400);
  const std::string path = right_store("right", {1, 2}, 3, 300);
  std::string bytes = testing::read_bytes(path);
  for (std::size_t i = 100; i + 1500 < bytes.size(); i += 40) bytes[i] ^= 1;
  testing::write_bytes(path, bytes);
  ASSERT_TRUE(runtime->attach({"suffix", path}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  if (file_of(*runtime).state == ModelState::kReady) {  // else it was found at once
    const Completion c = (*runtime->run(asking("suffix", {1, 2}, 3, 100)))->completion;
    EXPECT_EQ(c.tokens, alone({1, 2}, 3, 100));
    EXPECT_NE(c.speculation.reason.find(path), std::string::npos) << c.speculation.reason;
  }
  EXPECT_EQ(file_of(*runtime).state, ModelState::kFailed);
  EXPECT_FALSE(file_of(*runtime).serving);
  EXPECT_EQ(file_of(*runtime).error.code(), StatusCode::kDataLoss)
      << file_of(*runtime).error.message();
}

TEST_F(RuntimeDrafters, AFailedReplacementLeavesTheOneAtWork) {
  const std::unique_ptr<Runtime> runtime = make();
  const std::string path = right_store("right", {1, 2}, 3, 40);
  ASSERT_TRUE(runtime->attach({"suffix", path}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  ASSERT_EQ(rename(path.c_str(), dir_.file("elsewhere").c_str()), 0);  // the mapping stays
  ASSERT_TRUE(runtime->attach({"suffix", path}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(file_of(*runtime).state, ModelState::kFailed);
  EXPECT_TRUE(file_of(*runtime).serving);
  EXPECT_GT((*runtime->run(asking("suffix", {1, 2}, 3, 40)))->completion.speculation.accepted, 20);
  ASSERT_EQ(rename(dir_.file("elsewhere").c_str(), path.c_str()), 0);
  ASSERT_TRUE(runtime->attach({"suffix", path}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(file_of(*runtime).state, ModelState::kReady);
}

TEST_F(RuntimeDrafters, FilesWaitForATargetFollowTheNextOneAndLeaveWithTheLast) {
  const std::unique_ptr<Runtime> runtime = make({}, "");
  const std::string path = right_store("right", {1, 2}, 3, 40);
  ASSERT_TRUE(runtime->attach({"suffix", path}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1)) << "nothing is being worked on";
  EXPECT_EQ(file_of(*runtime).state, ModelState::kLoading);
  EXPECT_FALSE(status_of(*runtime, "suffix").attached);
  for (const char* target : {"target", "other"}) {
    ASSERT_TRUE(runtime->load(ModelRole::kTarget, model(target)).ok());
    ASSERT_TRUE(runtime->wait_loaded(-1));
    EXPECT_EQ(file_of(*runtime).state, ModelState::kReady) << target;
    EXPECT_TRUE(status_of(*runtime, "suffix").attached);
  }
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("small")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(file_of(*runtime).state, ModelState::kFailed) << "another tokenizer";
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(file_of(*runtime).state, ModelState::kReady) << "and back";
  EXPECT_GT((*runtime->run(asking("suffix", {1, 2}, 3, 40)))->completion.speculation.accepted, 20);
  ASSERT_TRUE(runtime->unload(ModelRole::kTarget, false).ok());
  EXPECT_TRUE(status_of(*runtime, "suffix").files.empty());
  EXPECT_FALSE(status_of(*runtime, "suffix").attached);
  EXPECT_EQ(runtime->check_integrity(), "");
}

TEST_F(RuntimeDrafters, FilesOfATargetThatIsLostWaitForTheNextOne) {
  const std::unique_ptr<Runtime> runtime = make();
  ASSERT_TRUE(runtime->attach({"suffix", right_store("right", {1, 2}, 3, 40)}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  const std::shared_ptr<const Target> target = runtime->target();
  const_cast<testing::FakeTarget&>(dynamic_cast<const testing::FakeTarget&>(*target))
      .die_in_next_step(internal_error("its process died"));
  EXPECT_EQ((*runtime->run(asking("suffix", {1, 2}, 3, 40)))->completion.finish,
            FinishReason::kError);
  while (runtime->status().target.serving) std::this_thread::yield();
  EXPECT_EQ(file_of(*runtime).state, ModelState::kLoading);
  EXPECT_FALSE(file_of(*runtime).serving);
  EXPECT_FALSE(status_of(*runtime, "suffix").attached);
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(file_of(*runtime).state, ModelState::kReady);
  EXPECT_GT((*runtime->run(asking("suffix", {1, 2}, 3, 40)))->completion.speculation.accepted, 20);
}

TEST_F(RuntimeDrafters, EventsTellOfFilesInOrder) {
  const std::unique_ptr<Runtime> runtime = make();
  const std::string path = right_store("right", {1, 2}, 3, 40);
  std::mutex mutex;
  std::vector<std::pair<ModelState, bool>> told;
  runtime->subscribe([&](const RuntimeEvent& event) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (event.drafter) told.emplace_back(event.drafter->file.state, event.drafter->attached);
  });
  ASSERT_TRUE(runtime->attach({"suffix", path}).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  ASSERT_TRUE(runtime->detach({"suffix", ""}).ok());
  const auto n_told = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    return told.size();
  };
  while (n_told() < 3) std::this_thread::yield();
  runtime->subscribe({});
  EXPECT_EQ(told, (std::vector<std::pair<ModelState, bool>>{{ModelState::kLoading, true},
                                                            {ModelState::kReady, true},
                                                            {ModelState::kAbsent, false}}));
}

TEST_F(RuntimeDrafters, TotalsAddUpWhatTheResultsSay) {
  const std::unique_ptr<Runtime> runtime = make();
  std::int64_t drafted = 0, accepted = 0, foregone = 0, calls = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    // Merged guesses do not all fit a step of 3: some are foregone.
    CompletionRequest r = asking("suffix,recycle", {1, 2, 1, 2}, seed, 40);
    r.width = 3;
    r.draft.branches = 2;
    const Completion c = (*runtime->run(r))->completion;
    const DrafterStats* stats = stats_of(c, "recycle");
    ASSERT_NE(stats, nullptr);
    drafted += stats->drafted;
    accepted += stats->accepted;
    foregone += stats->foregone;
    calls += stats->calls;
  }
  const DrafterStatus recycle = status_of(*runtime, "recycle");
  EXPECT_EQ(recycle.totals.drafted, drafted);
  EXPECT_EQ(recycle.totals.accepted, accepted);
  EXPECT_EQ(recycle.totals.foregone, foregone);
  EXPECT_EQ(recycle.totals.calls, calls);
  EXPECT_GT(accepted, 0);
  EXPECT_GT(foregone, 0);
  EXPECT_GT(recycle.memory_bytes, 0U);
  EXPECT_GT(status_of(*runtime, "suffix").memory_bytes, 0U);
}

}  // namespace
}  // namespace outrider
