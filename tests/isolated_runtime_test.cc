// The runtime on a target in a process of its own: when that process dies, its requests end with
// the reason, this process lives, and the target can be loaded again.
#include <gtest/gtest.h>

#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend/llama_loader.h"
#include "remote/remote_model.h"
#include "serve/runtime.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_pair.h"
#include "tests/worker_process.h"

namespace outrider {
namespace {

class IsolatedRuntime : public ::testing::Test {
 protected:
  IsolatedRuntime()
      : loader_(
            LlamaLoaderOptions{.probe_budget_ms = 100, .cache_folder = std::filesystem::path()}) {}

  void SetUp() override {
    ASSERT_TRUE(testing::write_tiny_pair(target(), draft(), {}).ok());
    make_runtime({.slots = 2});
  }

  std::string target() const { return dir_.file("target.gguf"); }
  std::string draft() const { return dir_.file("draft.gguf"); }

  ModelOptions model(const std::string& path) const {
    ModelOptions o;
    o.path = path;
    o.n_ctx = 2048;
    o.n_batch = 64;
    o.n_threads = 1;
    o.widest = 4;
    return o;
  }

  void make_runtime(const RuntimeOptions& options) {
    runtime_.reset();  // which writes what is kept
    Result<std::unique_ptr<Runtime>> made = Runtime::create(options, loader_);
    ASSERT_TRUE(made.ok()) << made.status().message();
    runtime_ = std::move(*made);
  }

  void load(ModelRole role, const ModelOptions& options) {
    ASSERT_TRUE(runtime_->load(role, options).ok());
    ASSERT_TRUE(runtime_->wait_loaded(-1));
    const RuntimeStatus status = runtime_->status();
    const ModelStatus& loaded = role == ModelRole::kTarget ? status.target : status.draft;
    ASSERT_EQ(loaded.state, ModelState::kReady) << loaded.error.message();
  }

  static CompletionRequest request(std::int32_t max_tokens, std::uint64_t seed) {
    CompletionRequest r;
    r.prompt.emplace_back("Once upon");
    r.seed = seed;
    r.max_tokens = max_tokens;
    r.width = 4;
    r.sampling.ignore_eos = true;
    return r;
  }

  // Goes on until its target is lost: a full context is shifted.
  static CompletionRequest endless(std::uint64_t seed) {
    CompletionRequest r = request(-1, seed);
    r.shift_keep = 0;
    return r;
  }

  // Waits until `id` has said something.
  void wait_for_text(CompletionId id) {
    std::size_t n = 0;
    while (n == 0) {
      const Result<PolledCompletion> polled = runtime_->poll(id, 1000);
      ASSERT_TRUE(polled.ok());
      ASSERT_FALSE(polled->finished);
      n += polled->tokens.size();
    }
  }

  Completion end_of(CompletionId id) {
    while (true) {
      const Result<PolledCompletion> polled = runtime_->poll(id, 1000);
      if (!polled.ok()) return {};
      if (polled->finished) return polled->result->completion;
    }
  }

  void expect_deaths(const std::vector<CompletionId>& ids, const std::string& part) {
    for (const CompletionId id : ids) {
      const Completion failed = end_of(id);
      EXPECT_EQ(failed.finish, FinishReason::kError);
      EXPECT_EQ(failed.error.code(), StatusCode::kInternal);
      EXPECT_NE(failed.error.message().find(part), std::string::npos) << failed.error.message();
    }
  }

  testing::TempDir dir_;
  testing::HostProgram host_;
  LlamaLoader loader_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(IsolatedRuntime, ATargetWhoseProcessDiesCanBeLoadedAgain) {
  ModelOptions isolated = model(target());
  isolated.isolate = true;
  load(ModelRole::kTarget, isolated);
  load(ModelRole::kDraft, model(draft()));
  const std::vector<Token> whole = (*runtime_->run(request(20, 1)))->completion.tokens;
  EXPECT_EQ(whole.size(), 20U);
  const CompletionId a = runtime_->start(endless(2))->id;
  const CompletionId b = runtime_->start(endless(3))->id;
  wait_for_text(a);
  wait_for_text(b);
  {
    const std::shared_ptr<const Target> at_work = runtime_->target();
    Target& loaded = const_cast<Target&>(*at_work);  // only its number is asked for
    kill(dynamic_cast<RemoteModel&>(loaded.model()).process_id(), SIGKILL);
  }
  expect_deaths({a, b}, "killed by signal 9");
  while (runtime_->status().target.serving) std::this_thread::yield();
  EXPECT_EQ(runtime_->status().target.state, ModelState::kFailed);
  EXPECT_NE(runtime_->start(request(5, 4)).status().message().find("killed by signal 9"),
            std::string::npos);
  EXPECT_EQ(runtime_->check_integrity(), "");
  load(ModelRole::kTarget, isolated);
  EXPECT_TRUE(runtime_->status().draft.serving) << "the draft came along";
  EXPECT_EQ((*runtime_->run(request(20, 1)))->completion.tokens, whole);
}

TEST_F(IsolatedRuntime, WhatItHasReadIsNotKeptOverRestartsAndANoteSaysSo) {
  const std::string folder = dir_.file("prompts");
  const auto kept = [&folder] {
    return std::filesystem::exists(folder) && !std::filesystem::is_empty(folder);
  };
  const auto noted = [this] {
    std::string all;
    for (const std::string& note : runtime_->status().target.notes) all += note + "\n";
    return all.find("prompt_cache has no effect on this target") != std::string::npos;
  };
  std::vector<Token> tokens;
  for (const bool isolate : {true, true, false}) {
    make_runtime({.slots = 2, .prompt_cache = folder});
    ModelOptions options = model(target());
    options.isolate = isolate;
    load(ModelRole::kTarget, options);
    EXPECT_EQ(noted(), isolate);
    const Result<std::shared_ptr<const CompletionResult>> got = runtime_->run(request(20, 1));
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ((*got)->completion.cached_tokens, 0);
    if (tokens.empty()) tokens = (*got)->completion.tokens;
    EXPECT_EQ((*got)->completion.tokens, tokens);
    runtime_.reset();
    EXPECT_FALSE(isolate && kept()) << "what is kept of others: SharedPrompts";
  }
}

TEST_F(IsolatedRuntime, AWorkerThatDiesInARequestEndsItAndAnotherOneTakesItsPlace) {
  const testing::WorkerProcess one;
  testing::WorkerProcess two;
  ModelOptions spread = model(target());
  spread.workers = {one.address(), two.address()};
  load(ModelRole::kTarget, spread);
  const std::vector<Token> whole = (*runtime_->run(request(20, 1)))->completion.tokens;
  const CompletionId id = runtime_->start(endless(2))->id;
  wait_for_text(id);
  two.kill();
  const std::string gone = "the worker " + two.address() + " cannot be reached";
  expect_deaths({id}, gone);
  while (runtime_->status().target.serving) std::this_thread::yield();
  EXPECT_NE(runtime_->status().target.error.message().find(gone), std::string::npos)
      << runtime_->status().target.error.message();
  const testing::WorkerProcess three;
  spread.workers = {one.address(), three.address()};
  load(ModelRole::kTarget, spread);
  EXPECT_EQ((*runtime_->run(request(20, 1)))->completion.tokens, whole);
}

}  // namespace
}  // namespace outrider
