// A hand-written model behind the channel, served by a thread of this process: it must be the same
// as without, call for call, and every end of the other side must be an error. With real processes:
// tests/isolated_target_test.cc.
#include "remote/remote_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <new>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "remote/thread_host_test.h"
#include "testing/fake_model.h"
#include "testing/model_twins.h"

namespace outrider {
namespace {

using testing::FakeModel;
using testing::random_rows;

TEST(RemoteModel, IsTheSameModelCallForCall) {
  ThreadHost host;
  Result<std::unique_ptr<RemoteModel>> remote = host.open();
  ASSERT_TRUE(remote.ok()) << remote.status().message();
  FakeModel near(host_capabilities(), random_rows(kHostVocab, 7, 3.0f));
  testing::ModelTwins twins(**remote, near);
  twins.act(3000);
  EXPECT_GT(twins.n_rows(), 1000);
}

TEST(RemoteModel, WhatIsAskedForAndWhatIsReportedTravelWhole) {
  OpenRequest seen;
  ThreadHost host([&](const OpenRequest& request, const LoadHooks& hooks,
                      const std::function<void(double)>& probing) -> Result<HostedModel> {
    seen = request;
    hooks.progress(0.5);
    hooks.log(LogLevel::kWarning, "a line");
    probing(0.25);
    return host.make();
  });
  std::vector<double> progress;
  std::vector<std::string> lines;
  double probed = 0.0;
  const LoadHooks hooks{.progress = [&](double fraction) { progress.push_back(fraction); },
                        .cancel = nullptr,
                        .log = [&](LogLevel, std::string_view line) { lines.emplace_back(line); }};
  const Result<std::unique_ptr<RemoteModel>> model = RemoteModel::open(
      host.starter(), host_request(), hooks, [&](double fraction) { probed = fraction; });
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(progress, std::vector<double>{0.5});
  EXPECT_EQ(lines, std::vector<std::string>{"a line"});
  EXPECT_EQ(probed, 0.25);
  EXPECT_EQ(seen.model.path, "a.gguf");
  EXPECT_EQ(seen.model.cache_type_k, "bf16");
  EXPECT_EQ(seen.model.exact, ExactMode::kOn);
  EXPECT_EQ(seen.model.workers, (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_FALSE(seen.speculation);
  EXPECT_EQ(seen.probe_budget_ms, 12.5);
  EXPECT_EQ(seen.cache_folder, "");
  const OpenReport& got = (*model)->report();
  EXPECT_EQ(got.exactness.verdict(), "exact up to width 3");
  EXPECT_EQ(got.exactness.reason, "because");
  EXPECT_EQ(got.notes, host_report().notes);
  EXPECT_EQ(got.info.description, "fake 1K");
  EXPECT_EQ(got.info.n_params, 1000U);
  EXPECT_TRUE(got.info.has_chat_template);
  EXPECT_EQ(got.capabilities.rollback_reason, "a reason");
  EXPECT_EQ((*model)->room(2), 64);
}

TEST(RemoteModel, AFailedOpeningIsTheOpenersOwnError) {
  ThreadHost host([](const OpenRequest&, const LoadHooks&,
                     const std::function<void(double)>&) -> Result<HostedModel> {
    return unsupported("'a.gguf' is a cake");
  });
  const Status status = host.open().status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message(), "'a.gguf' is a cake");
}

// The log is a function of whoever embeds us, and a line takes memory.
TEST(RemoteModel, TheAnswerToACallThatAnExceptionEndedIsNotTakenForTheNext) {
  LogSink say;
  ThreadHost host([&](const OpenRequest&, const LoadHooks& hooks,
                      const std::function<void(double)>&) -> Result<HostedModel> {
    say = hooks.log;
    return host.make();
  });
  bool throws = false;
  LoadHooks hooks;
  hooks.log = [&throws](LogLevel, std::string_view) {
    if (std::exchange(throws, false)) throw std::bad_alloc();
  };
  Result<std::unique_ptr<RemoteModel>> model = host.open(hooks);
  ASSERT_TRUE(model.ok()) << model.status().message();
  host.fake().on_evaluate([&say] { say(LogLevel::kWarning, "a line in each evaluation"); });
  FakeModel near(host_capabilities(), random_rows(kHostVocab, 7, 3.0f));
  const TokenTree root(1);
  const EvalItem ended{.seq = 0, .prefix = {}, .tree = &root};
  for (int i = 0; i < 3; ++i) {
    throws = true;
    EXPECT_THROW((void)(*model)->evaluate({&ended, 1}), std::bad_alloc);
    for (SeqId seq = 0; seq < 3; ++seq) EXPECT_TRUE((*model)->truncate(seq, 0).ok());
  }
  const std::vector<Token> text = {3, 1, 4};
  TokenTree tree(5);
  tree.add(kRoot, 6, 1.0f, 1);
  const EvalItem next{.seq = 0, .prefix = text, .tree = &tree};
  ASSERT_TRUE((*model)->evaluate({&next, 1}).ok());
  ASSERT_TRUE(near.evaluate({&next, 1}).ok());
  for (const NodeId node : {0, 1}) {
    const std::span<const float> far_row = (*model)->logits(0, node);
    EXPECT_TRUE(std::ranges::equal(far_row, near.logits(0, node))) << node;
  }
  EXPECT_EQ((*model)->length(0), near.length(0));
  EXPECT_TRUE((*model)->health().ok());
}

TEST(RemoteModel, AHostThatSaysNothingIsGivenUpAfterItsTime) {
  ThreadHost host;
  Result<std::unique_ptr<RemoteModel>> model = host.open();
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::atomic<bool> silent{true};
  host.fake().on_evaluate([&silent] { silent.wait(true); });
  (*model)->set_silence_patience(std::chrono::milliseconds(20));
  TokenTree tree(3);
  const std::vector<EvalItem> items = {{.seq = 0, .prefix = {}, .tree = &tree}};
  const Status status = (*model)->evaluate(items);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("said nothing for 20 ms"), std::string::npos) << status.message();
  EXPECT_EQ((*model)->health().message(), status.message());
  EXPECT_EQ((*model)->commit(0, {}).message(), status.message()) << "every further call, at once";
  silent.store(false);
  silent.notify_all();
}

TEST(RemoteModel, ARaisedFlagEndsARunningEvaluationAndTheNextOneWorks) {
  ThreadHost host;
  Result<std::unique_ptr<RemoteModel>> model = host.open();
  ASSERT_TRUE(model.ok());
  std::atomic<bool> flag{false};
  (*model)->set_interrupt(&flag);
  FlaggedModel& fake = host.fake();
  fake.on_evaluate([&] {
    flag.store(true);  // while the parent waits
    fake.wait_for_flag();
  });
  const TokenTree root(1);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
  EXPECT_EQ((*model)->evaluate({&item, 1}).code(), StatusCode::kCancelled);
  flag.store(false);
  fake.on_evaluate({});
  EXPECT_TRUE((*model)->evaluate({&item, 1}).ok());
  flag.store(true);
  EXPECT_EQ((*model)->truncate(0, 0).code(), StatusCode::kOk) << "only evaluations are ended";
  EXPECT_EQ((*model)->evaluate({&item, 1}).code(), StatusCode::kCancelled) << "raised before";
  (*model)->set_interrupt(nullptr);
  EXPECT_TRUE((*model)->evaluate({&item, 1}).ok());
}

TEST(RemoteModel, TheStopPatienceOnWorkersIsThreeTimesTheLongestCallWithinItsLimits) {
  using std::chrono::milliseconds;
  const milliseconds least(3'000);
  const milliseconds most(300'000);
  EXPECT_EQ(stop_patience_on_workers(least, milliseconds(0), most), least);
  EXPECT_EQ(stop_patience_on_workers(least, milliseconds(1'000), most), least);
  EXPECT_EQ(stop_patience_on_workers(least, milliseconds(7'000), most), milliseconds(21'000));
  EXPECT_EQ(stop_patience_on_workers(least, milliseconds(200'000), most), most);
  EXPECT_EQ(stop_patience_on_workers(least, milliseconds(200'000), milliseconds(0)),
            milliseconds(600'000))
      << "0: no limit";
  EXPECT_EQ(stop_patience_on_workers(least, milliseconds(7'000), milliseconds(1'000)), least);
}

// A worker does not see the flag, so one that is only slow must be waited for.
TEST(RemoteModel, AHostOnWorkersThatIsAsSlowAsBeforeMayAnswerAfterItsStopPatience) {
  std::atomic<bool> flag{false};
  ThreadHost host;  // with the workers of host_request()
  Result<std::unique_ptr<RemoteModel>> model = host.open();
  ASSERT_TRUE(model.ok()) << model.status().message();
  (*model)->set_interrupt(&flag);
  const TokenTree root(1);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
  host.fake().on_evaluate([] { std::this_thread::sleep_for(std::chrono::seconds(1)); });
  ASSERT_TRUE((*model)->evaluate({&item, 1}).ok()) << "from here on three seconds are allowed";
  ASSERT_TRUE((*model)->commit(0, {}).ok());
  (*model)->set_stop_patience(std::chrono::milliseconds(5));
  FlaggedModel& fake = host.fake();
  fake.on_evaluate([&] {
    flag.store(true);
    fake.wait_for_flag();  // the parent's patience begins
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  const Status stopped = (*model)->evaluate({&item, 1});
  EXPECT_EQ(stopped.code(), StatusCode::kCancelled) << stopped.message();
  EXPECT_TRUE((*model)->health().ok());
  flag.store(false);
  fake.on_evaluate({});
  EXPECT_TRUE((*model)->evaluate({&item, 1}).ok()) << "the target serves on";
}

TEST(RemoteModel, AHostWithoutWorkersThatDoesNotStopIsGivenUpHoweverLongItsCallsWere) {
  std::atomic<bool> flag{false};
  std::atomic<bool> deaf{true};
  ThreadHost host;
  OpenRequest here = host_request();
  here.model.workers.clear();
  Result<std::unique_ptr<RemoteModel>> model = RemoteModel::open(host.starter(), here, {}, {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  (*model)->set_interrupt(&flag);
  const TokenTree root(1);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
  host.fake().on_evaluate([] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
  ASSERT_TRUE((*model)->evaluate({&item, 1}).ok());
  ASSERT_TRUE((*model)->commit(0, {}).ok());
  (*model)->set_stop_patience(std::chrono::milliseconds(5));
  host.fake().on_evaluate([&] {
    flag.store(true);
    deaf.wait(true);
  });
  const Status status = (*model)->evaluate({&item, 1});
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("did not stop when it was told to"), std::string::npos)
      << status.message();
  deaf.store(false);
  deaf.notify_all();
}

TEST(RemoteModel, ARaisedFlagEndsTheLoading) {
  std::atomic<bool> cancel{false};
  ThreadHost host([&](const OpenRequest&, const LoadHooks& hooks,
                      const std::function<void(double)>&) -> Result<HostedModel> {
    cancel.store(true);
    while (!hooks.cancel->load()) std::this_thread::yield();
    return cancelled("the opener saw it");
  });
  EXPECT_EQ(host.open({.progress = {}, .cancel = &cancel, .log = {}}).status().code(),
            StatusCode::kCancelled);
}

TEST(RemoteModel, OnceTheOtherSideIsGoneEveryCallFailsAndNothingIsHeld) {
  ThreadHost host;
  Result<std::unique_ptr<RemoteModel>> model = host.open();
  ASSERT_TRUE(model.ok());
  const TokenTree root(1);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
  const std::vector<NodeId> path{0};
  ASSERT_TRUE((*model)->evaluate({&item, 1}).ok());
  ASSERT_TRUE((*model)->commit(0, path).ok());
  EXPECT_EQ((*model)->length(0), 1);
  host.fake().on_evaluate([&] { host.vanish(); });
  const Status first = (*model)->evaluate({&item, 1});
  EXPECT_EQ(first.code(), StatusCode::kInternal);
  EXPECT_EQ(first.message(), "'a.gguf' ran in a process of its own, which is gone");
  EXPECT_EQ((*model)->length(0), 0);
  EXPECT_EQ((*model)->room(0), 0);
  for (const Status& status :
       {(*model)->evaluate({&item, 1}), (*model)->commit(0, path), (*model)->truncate(0, 0)}) {
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_EQ(status.message(), first.message());
  }
  host.join();
  EXPECT_FALSE(host.result().ok());
}

TEST(RemoteModel, TheOtherSideMayVanishWhileItLoads) {
  ThreadHost host([&](const OpenRequest&, const LoadHooks& hooks,
                      const std::function<void(double)>&) -> Result<HostedModel> {
    hooks.log(LogLevel::kError, "tensor 'x' is out of bounds");
    host.vanish();
    return not_found("never told");
  });
  const Status status = host.open().status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "'a.gguf' ran in a process of its own, which is gone: tensor 'x' is out of bounds");
}

TEST(RemoteModel, WhatTheOtherSideDiedOfIsFoundOutOnceAndInEveryError) {
  int asked = 0;
  ThreadHost host;
  Result<std::unique_ptr<RemoteModel>> model =
      RemoteModel::open(host.starter(), host_request(), {}, {}, [&asked] {
        ++asked;
        return "the worker b:2 cannot be reached";
      });
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(asked, 0);
  host.fake().on_evaluate([&] { host.vanish(); });
  const TokenTree root(1);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ((*model)->evaluate({&item, 1}).message(),
              "'a.gguf' ran in a process of its own, which is gone; the worker b:2 cannot be "
              "reached");
  }
  EXPECT_EQ(asked, 1);
}

TEST(RemoteModel, TheHostEndsWithTheModel) {
  ThreadHost host;
  Result<std::unique_ptr<RemoteModel>> model = host.open();
  ASSERT_TRUE(model.ok());
  model = not_found("freed");
  host.join();
  EXPECT_TRUE(host.result().ok()) << host.result().message();
}

}  // namespace
}  // namespace outrider
