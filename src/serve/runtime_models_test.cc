// Models that come, go, fail and die while requests run.
#include "serve/runtime.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <tuple>

#include "testing/runtime_fixture.h"
#include "testing/step_gate.h"

namespace outrider {
namespace {

using testing::ask;
using testing::model;
using testing::RuntimeTest;

class RuntimeModels : public RuntimeTest {};

TEST_F(RuntimeModels, WithoutATargetItSaysWhatIsMissing) {
  const std::unique_ptr<Runtime> runtime = make({}, "");
  EXPECT_EQ(runtime->start(ask({1}, 1, 5)).status().message(),
            "no model is loaded; load a target first");
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("slow")).ok());
  EXPECT_NE(runtime->start(ask({1}, 1, 5)).status().message().find("still loading"),
            std::string::npos);
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("broken")).ok());  // takes its place
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_NE(runtime->start(ask({1}, 1, 5)).status().message().find("'broken' is broken"),
            std::string::npos);
  EXPECT_EQ(runtime->status().target.state, ModelState::kFailed);
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("throwing")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(runtime->status().target.error.message(), "cannot load 'throwing': on purpose");
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_TRUE(runtime->run(ask({1}, 1, 5)).ok());
}

TEST_F(RuntimeModels, AFailedLoadLeavesTheRunningTargetServing) {
  const std::unique_ptr<Runtime> runtime = make();
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("broken")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  const RuntimeStatus status = runtime->status();
  EXPECT_EQ(status.target.state, ModelState::kFailed);
  EXPECT_EQ(status.target.path, "broken");
  EXPECT_TRUE(status.target.serving);
  EXPECT_EQ(status.target.serving_path, "target");
  EXPECT_EQ((*runtime->run(ask({1}, 1, 5)))->completion.tokens, alone({1}, 1, 5));
}

TEST_F(RuntimeModels, TheLatestTargetIsTheOneThatIsLoadedElseTheLastThatServed) {
  const std::unique_ptr<Runtime> runtime = make({}, "");
  EXPECT_EQ(runtime->latest_target(), nullptr);
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("slow", 32)).ok());
  EXPECT_EQ(runtime->latest_target()->path, "slow");
  EXPECT_EQ(runtime->latest_target()->n_ctx, 32);
  ASSERT_TRUE(runtime->cancel_load(ModelRole::kTarget).ok());
  EXPECT_EQ(runtime->latest_target(), nullptr);
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("broken")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(runtime->latest_target()->path, "target");
  ASSERT_TRUE(runtime->unload(ModelRole::kTarget, true).ok());
  EXPECT_EQ(runtime->latest_target()->path, "target");
}

TEST_F(RuntimeModels, ADraftComesAndGoesWhileRequestsRun) {
  const std::unique_ptr<Runtime> runtime = make();
  testing::StepGate gate(*runtime);
  loader_.hold(true);
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("draft")).ok());
  CompletionRequest early = ask({1, 2}, 3, 40);
  early.drafters.chains = {{"draft-model"}};
  const CompletionId before = runtime->start(std::move(early))->id;
  gate.wait_until_held();
  loader_.hold(false);
  ASSERT_TRUE(runtime->wait_loaded(-1));
  const CompletionId with = runtime->start(ask({2, 1}, 4, 40))->id;
  gate.let(3);  // the prompt of one, of the other, and a step with guesses
  while (runtime->poll(with, 1000)->tokens.empty()) {
  }
  gate.wait_until_held();
  ASSERT_TRUE(runtime->unload(ModelRole::kDraft, false).ok());
  gate.open();
  std::shared_ptr<const CompletionResult> a, b;
  while (!a) a = runtime->poll(before, 1000)->result;
  while (!b) b = runtime->poll(with, 1000)->result;
  EXPECT_EQ(a->completion.tokens, alone({1, 2}, 3, 40));
  EXPECT_EQ(b->completion.tokens, alone({2, 1}, 4, 40));
  EXPECT_FALSE(a->completion.speculation.enabled);
  EXPECT_EQ(a->completion.speculation.reason,
            "the draft model was still loading when the request began");
  EXPECT_GT(b->completion.speculation.drafted, 0);
  EXPECT_EQ(b->completion.speculation.reason, "the draft model was unloaded");
  EXPECT_EQ(runtime->status().draft.state, ModelState::kAbsent);
}

// What may be the beginning of a stop string is shown later, when its drafter is gone.
TEST_F(RuntimeModels, ATokenThatWasHeldBackKnowsItsDraftWhenThatIsGone) {
  const std::vector<Token> text = alone({1, 2}, 3, 40);
  std::int64_t by_draft = 0;
  for (const int steps : {0, 1, 2, 3, 5, 7, 9}) {  // of at least 10, of 4 tokens each at most
    const std::unique_ptr<Runtime> runtime = make();
    testing::StepGate gate(*runtime);
    const Vocabulary& vocabulary = runtime->target()->vocabulary();
    ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("draft")).ok());
    ASSERT_TRUE(runtime->wait_loaded(-1));
    CompletionRequest r = ask({1, 2}, 3, 40);
    r.drafters.chains = {{"draft-model"}};
    std::string stop;  // nearly all of the text
    for (std::size_t i = 0; i < 36; ++i) stop += vocabulary.piece(text[i]);
    r.stop = {stop + "!"};
    const CompletionId id = runtime->start(std::move(r))->id;
    gate.let(steps);
    gate.wait_until_held();
    ASSERT_TRUE(runtime->unload(ModelRole::kDraft, false).ok());
    gate.open();
    std::shared_ptr<const CompletionResult> result;
    std::vector<Token> said;
    while (!result) {
      const Result<PolledCompletion> polled = runtime->poll(id, 1000);
      for (const SaidToken& token : polled->tokens) {
        said.push_back(token.id);
        by_draft += token.by == "draft-model" ? 1 : 0;
        EXPECT_TRUE(token.by == "draft-model" || token.by == "target") << token.by;
      }
      result = polled->result;
    }
    EXPECT_EQ(said, text);
  }
  EXPECT_GT(by_draft, 0);
}

TEST_F(RuntimeModels, AnotherTargetTakesOverWhileTheOldOnesRequestsEndOnIt) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1});
  testing::StepGate gate(*runtime);
  const CompletionId running = runtime->start(ask({1, 2}, 3, 40))->id;
  const CompletionId waiting = runtime->start(ask({2, 3}, 5, 10))->id;
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("other")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  const Result<std::shared_ptr<const CompletionResult>> other = runtime->run(ask({1, 2}, 3, 20));
  EXPECT_EQ((*other)->completion.tokens, alone({1, 2}, 3, 20, /*rows_seed=*/2));
  EXPECT_EQ((*other)->model, "other");
  gate.open();
  std::shared_ptr<const CompletionResult> a, b;
  while (!a) a = runtime->poll(running, 1000)->result;
  while (!b) b = runtime->poll(waiting, 1000)->result;
  EXPECT_EQ(a->completion.tokens, alone({1, 2}, 3, 40));
  EXPECT_EQ(b->completion.tokens, alone({2, 3}, 5, 10));
  EXPECT_EQ(b->model, "target");
}

TEST_F(RuntimeModels, UnloadingWaitsForRequestsOrEndsThem) {
  const std::unique_ptr<Runtime> runtime = make();
  testing::StepGate gate(*runtime);
  const CompletionId a = runtime->start(ask({1, 2}, 3, 30))->id;
  ASSERT_TRUE(runtime->unload(ModelRole::kTarget, false).ok());
  EXPECT_FALSE(runtime->status().target.serving);
  EXPECT_EQ(runtime->start(ask({1}, 1, 5)).status().code(), StatusCode::kNotFound);
  gate.open();
  std::shared_ptr<const CompletionResult> result;
  while (!result) result = runtime->poll(a, 1000)->result;
  EXPECT_EQ(result->completion.tokens, alone({1, 2}, 3, 30));
  EXPECT_EQ(runtime->unload(ModelRole::kTarget, false).code(), StatusCode::kNotFound);

  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  testing::StepGate next(*runtime);
  const CompletionId b = runtime->start(ask({1, 2}, 3, 60))->id;
  next.let(1);
  while (runtime->poll(b, 1000)->tokens.empty()) {
  }
  ASSERT_TRUE(runtime->unload(ModelRole::kTarget, true).ok());
  next.open();
  result.reset();
  while (!result) result = runtime->poll(b, 1000)->result;
  EXPECT_EQ(result->completion.finish, FinishReason::kCancelled);
  EXPECT_EQ(result->ended_by, EndedBy::kUnload);
}

TEST_F(RuntimeModels, LoadingIsCancelledAndSuperseded) {
  const std::unique_ptr<Runtime> runtime = make();
  EXPECT_EQ(runtime->cancel_load(ModelRole::kTarget).code(), StatusCode::kNotFound);
  for (const ModelRole role : {ModelRole::kTarget, ModelRole::kDraft}) {
    const std::string slow = role == ModelRole::kTarget ? "slow" : "slow draft";
    ASSERT_TRUE(runtime->load(role, model(slow)).ok());
    while (!loader_.loading()) std::this_thread::yield();
    ASSERT_TRUE(runtime->cancel_load(role).ok());
    ASSERT_TRUE(runtime->wait_loaded(-1));
    const RuntimeStatus s = runtime->status();
    const ModelStatus& status = role == ModelRole::kTarget ? s.target : s.draft;
    EXPECT_EQ(status.state, ModelState::kFailed);
    EXPECT_EQ(status.error.code(), StatusCode::kCancelled);
    EXPECT_EQ(s.target.serving_path, "target");
  }
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("slow")).ok());
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("other")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(runtime->status().target.serving_path, "other");
}

TEST_F(RuntimeModels, ADraftThatComesFirstWaitsForItsTarget) {
  const std::unique_ptr<Runtime> runtime = make({}, "");
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("draft")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));  // nothing is being worked on
  EXPECT_EQ(runtime->status().draft.state, ModelState::kLoading);
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(runtime->status().draft.state, ModelState::kReady);
  EXPECT_GT((*runtime->run(ask({1}, 1, 20)))->completion.speculation.drafted, 0);
  // A draft with another vocabulary is refused, and the one at work stays.
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("small")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(runtime->status().draft.state, ModelState::kFailed);
  EXPECT_EQ(runtime->status().draft.serving_path, "draft");
  EXPECT_GT((*runtime->run(ask({1}, 1, 20)))->completion.speculation.drafted, 0);
}

// A head reads what its target is opened for.
TEST_F(RuntimeModels, ATargetIsOpenedForTheDraftThatIsAtWorkOrWaits) {
  const std::unique_ptr<Runtime> runtime = make({}, "");
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("draft")).ok());
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(loader_.head_of("target"), "draft");
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("twin")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(loader_.head_of("twin"), "draft");
  // One that failed to take its place changes nothing.
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("small")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  ASSERT_EQ(runtime->status().draft.state, ModelState::kFailed);
  ASSERT_EQ(runtime->status().draft.serving_path, "draft");
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(loader_.head_of("target"), "draft");
  EXPECT_EQ(runtime->status().draft.state, ModelState::kReady);
  EXPECT_EQ(runtime->status().draft.serving_path, "draft");
  ModelOptions named = model("target");
  named.head = "another";
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, named).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(loader_.head_of("target"), "another");
  ASSERT_TRUE(runtime->unload(ModelRole::kDraft, false).ok());
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(loader_.head_of("target"), "");
}

TEST_F(RuntimeModels, ADraftFollowsToTheNextTarget) {
  const std::unique_ptr<Runtime> runtime = make();
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("draft")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("twin")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_TRUE(runtime->status().draft.serving);
  EXPECT_GT((*runtime->run(ask({1}, 1, 20)))->completion.speculation.drafted, 0);
  // A draft that is being loaded while its target is replaced is loaded for the new one.
  loader_.hold(true);
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("draft")).ok());
  while (!loader_.loading()) std::this_thread::yield();
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  loader_.hold(false);
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ(runtime->status().target.serving_path, "target");
  EXPECT_EQ(runtime->status().draft.state, ModelState::kReady);
  EXPECT_GT((*runtime->run(ask({1}, 1, 20)))->completion.speculation.drafted, 0);
}

TEST_F(RuntimeModels, ADraftThatIsOpenedWhenItsTargetGoesWaitsForTheNextOne) {
  for (const bool is_lost : {true, false}) {
    for (const std::string name : {"draft", "broken", "throwing"}) {
      const bool is_broken = name != "draft";
      const std::unique_ptr<Runtime> runtime = make();
      loader_.hold(true);
      ASSERT_TRUE(runtime->load(ModelRole::kDraft, model(name)).ok());
      while (!loader_.loading()) std::this_thread::yield();
      if (is_lost) {
        const std::shared_ptr<const Target> target = runtime->target();
        testing::StepGate::fake_target(*target).die_in_next_step(internal_error("it died"));
        (void)runtime->run(ask({1}, 1, 5));
        while (runtime->status().target.serving) std::this_thread::yield();
      } else {
        ASSERT_TRUE(runtime->unload(ModelRole::kTarget, true).ok());
      }
      loader_.hold(false);
      ASSERT_TRUE(runtime->wait_loaded(-1));
      EXPECT_EQ(runtime->status().draft.state, ModelState::kLoading) << "it waits";
      EXPECT_EQ(runtime->check_integrity(), "");
      ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
      ASSERT_TRUE(runtime->wait_loaded(-1));
      EXPECT_EQ(runtime->status().draft.state,
                is_broken ? ModelState::kFailed : ModelState::kReady);
      CompletionRequest request = ask({1}, 1, 20);
      request.drafters.chains = {{"draft-model"}};
      const std::int64_t drafted =
          (*runtime->run(std::move(request)))->completion.speculation.drafted;
      EXPECT_EQ(drafted > 0, !is_broken);
    }
  }
}

TEST_F(RuntimeModels, ATargetWhoseStepDoesNotReturnHoldsNobodyUp) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1});
  const std::shared_ptr<const Target> stuck = runtime->target();
  testing::StepGate gate(*runtime);
  const CompletionId held = runtime->start(ask({1, 2}, 3, 20))->id;
  const CompletionId behind = runtime->start(ask({2}, 4, 10))->id;
  gate.wait_until_held();
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("other")).ok());
  ASSERT_TRUE(runtime->load(ModelRole::kDraft, model("draft")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    EXPECT_EQ((*runtime->run(ask({1}, seed, 5)))->completion.tokens, alone({1}, seed, 5, 2));
  }
  EXPECT_EQ(runtime->status().running, 1);
  EXPECT_EQ(runtime->status().queued, 1);
  bool lent = false;
  const Status idle =
      runtime->with_idle_target([&lent](LanguageModel&, const Engine&) { lent = true; });
  EXPECT_TRUE(idle.ok() && lent) << idle.message();
  EXPECT_FALSE(runtime->poll(held, 0)->finished);
  gate.open();
  for (const auto& [id, prompt, seed, n] :
       {std::tuple(held, std::vector<Token>{1, 2}, 3U, 20U), {behind, {2}, 4U, 10U}}) {
    std::shared_ptr<const CompletionResult> result;
    while (!result) result = runtime->poll(id, 1000)->result;
    EXPECT_EQ(result->completion.tokens, alone(prompt, seed, n));
  }
  EXPECT_EQ(runtime->check_integrity(), "");
}

TEST_F(RuntimeModels, ATargetWhoseProcessIsGoneIsFailedAndCanBeLoadedAgain) {
  const std::unique_ptr<Runtime> runtime = make();
  testing::StepGate gate(*runtime);
  std::atomic<int> failed_events{0};
  runtime->subscribe([&](const RuntimeEvent& event) {
    if (event.model && event.model->status.state == ModelState::kFailed) ++failed_events;
  });
  const CompletionId id = runtime->start(ask({1, 2}, 3, 60))->id;
  gate.let(1);
  while (runtime->poll(id, 1000)->tokens.empty()) {
  }
  const std::shared_ptr<const Target> target = runtime->target();
  testing::StepGate::fake_target(*target).die_in_next_step(internal_error("its process died"));
  gate.open();
  std::shared_ptr<const CompletionResult> result;
  while (!result) result = runtime->poll(id, 1000)->result;
  EXPECT_EQ(result->completion.finish, FinishReason::kError);
  while (runtime->status().target.serving) std::this_thread::yield();
  EXPECT_EQ(runtime->status().target.state, ModelState::kFailed);
  EXPECT_EQ(runtime->status().target.error.message(), "its process died");
  EXPECT_EQ(runtime->start(ask({1}, 1, 5)).status().code(), StatusCode::kNotFound);
  while (failed_events == 0) std::this_thread::yield();
  ASSERT_TRUE(runtime->load(ModelRole::kTarget, model("target")).ok());
  ASSERT_TRUE(runtime->wait_loaded(-1));
  EXPECT_EQ((*runtime->run(ask({1}, 1, 5)))->completion.tokens, alone({1}, 1, 5));
  EXPECT_EQ(runtime->check_integrity(), "");
}

}  // namespace
}  // namespace outrider
