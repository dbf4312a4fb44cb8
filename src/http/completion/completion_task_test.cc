// Answering: clients that go, queues that are full, requests that fail on the way.
#include "http/completion/completion_task.h"

#include <algorithm>
#include <map>
#include <string>

#include "http/fixture_test.h"
#include "testing/eventually.h"
#include "testing/step_gate.h"

namespace outrider::http {
namespace {

using json::Json;

// The texts have no end, so what has ended has been ended.
class CompletionTaskTest : public ServerTest {
 protected:
  // Whether no completion runs or waits, soon.
  bool all_end() const {
    return testing::eventually([this] {
      const RuntimeStatus status = runtime_->status();
      return status.running + status.queued == 0;
    });
  }
};

TEST_F(CompletionTaskTest, AStreamThatIsNotReadEndsItsCompletion) {
  start();
  { const HttpReply unsent = post("/v1/completions", endless()); }
  EXPECT_EQ(runtime_->status().started, 1);
  EXPECT_TRUE(all_end());
}

TEST_F(CompletionTaskTest, AClientThatTakesNoMoreEndsItsCompletion) {
  start();
  {
    const HttpReply reply = post("/v1/completions", endless());
    int taken = 0;
    reply.stream([&taken](std::string_view) { return ++taken < 3; });
    EXPECT_EQ(taken, 3) << "nothing is written behind a refusal";
  }
  EXPECT_TRUE(all_end());
}

TEST_F(CompletionTaskTest, AClientThatReadsSlowlyGetsTheEndOfItsStream) {
  start({}, {.chat = true}, {.slots = 2, .max_queue = 4, .retention_ms = 1});
  testing::StepGate gate(*runtime_);
  gate.let(3);
  const HttpReply reply =
      post("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 20}, {"stream", true}});
  std::string all;
  reply.stream([&](std::string_view bytes) {
    if (all.empty()) {  // it ends meanwhile, and what nobody holds is forgotten
      EXPECT_EQ(runtime_->status().finished, 0);
      gate.open();
      EXPECT_TRUE(testing::eventually([this] { return runtime_->status().finished == 1; }));
      const CompletionId other =
          runtime_->start({.prompt = {std::string("a")}, .max_tokens = 1})->id;
      EXPECT_TRUE(testing::eventually([&] { return !runtime_->cancel(other).ok(); }));
    }
    all += bytes;
    return true;
  });
  EXPECT_NE(all.find(R"("finish_reason":"length")"), std::string::npos) << all;
  EXPECT_TRUE(all.ends_with("data: [DONE]\n\n"));
}

// It takes each piece, and while it does twice as much is said.
TEST_F(CompletionTaskTest, AClientThatFallsTooFarBehindItsTextIsGivenUp) {
  std::map<Token, std::string> pieces;
  for (Token t = 0; t < 12; ++t) pieces[t] = std::string(4096, static_cast<char>('a' + t));
  testing::StepGate gate;
  start({}, {.pieces = pieces, .chat = true, .on_evaluated = gate.hold()});
  gate.let(8);
  std::size_t taken = 0;
  int n = 0;
  {
    const HttpReply reply = post("/v1/completions", endless());
    EXPECT_FALSE(reply.stream([&](std::string_view bytes) {
      taken += bytes.size();
      gate.let(8);
      gate.wait_until_held();
      return ++n < 3000;  // else it would go on for ever
    }));
    gate.open();  // what stands still does not end
  }
  EXPECT_LT(n, 3000) << "the server gave it up, and not the other way round";
  EXPECT_LT(taken, 2 * kMostUnsent);
  EXPECT_TRUE(all_end());
}

TEST_F(CompletionTaskTest, WhatATextHadWhenItEndedIsWrittenHoweverMuchItIs) {
  std::map<Token, std::string> pieces;
  for (Token t = 0; t < 12; ++t) pieces[t] = std::string(1 << 20, static_cast<char>('a' + t));
  start({}, {.pieces = pieces, .chat = true});
  testing::StepGate gate(*runtime_);
  gate.let(3);
  const HttpReply reply =
      post("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 24}, {"stream", true}});
  std::string all;
  EXPECT_TRUE(reply.stream([&](std::string_view bytes) {
    if (all.empty()) {
      gate.open();
      EXPECT_TRUE(testing::eventually([this] { return runtime_->status().finished == 1; }));
    }
    all += bytes;
    return true;
  }));
  EXPECT_GT(all.size(), kMostUnsent);
  EXPECT_TRUE(all.ends_with("data: [DONE]\n\n"));
}

TEST_F(CompletionTaskTest, AClientThatHasGoneIsNoticedWhileItWaits) {
  start();
  int looks = 0;
  const HttpReply reply = server_->answer({.method = "POST",
                                           .path = "/v1/completions",
                                           .body = json::encode(endless(/*stream=*/false)),
                                           .gone = [&looks] { return ++looks > 1; }});
  EXPECT_EQ(reply.status, 499);
  EXPECT_TRUE(all_end());
}

TEST_F(CompletionTaskTest, AStreamThatIsCutShortIsNotAWholeOne) {
  start();
  {
    int looks = 0;
    const HttpReply cut = server_->answer({.method = "POST",
                                           .path = "/v1/completions",
                                           .body = json::encode(endless()),
                                           .gone = [&looks] { return ++looks > 1; }});
    EXPECT_FALSE(cut.stream([](std::string_view) { return true; }));
  }
  EXPECT_TRUE(all_end());
  const HttpReply whole =
      post("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 3}, {"stream", true}});
  EXPECT_TRUE(whole.stream([](std::string_view) { return true; }));
}

TEST_F(CompletionTaskTest, WhoHasEndedItsSideIsAskedOnceWhileThereIsNothingToSay) {
  start();
  testing::StepGate gate(*runtime_);
  const Json asked = {{"prompt", "abc"}, {"max_tokens", 20}, {"stream", true}};
  const HttpReply reply = server_->answer(
      {.method = "POST", .path = "/v1/completions", .body = json::encode(asked), .ended = [] {
         return true;
       }});
  std::string all;
  int pings = 0;
  EXPECT_TRUE(reply.stream([&](std::string_view bytes) {
    if (bytes.starts_with(": ping")) {
      ++pings;
      gate.open();
    }
    all += bytes;
    return true;
  }));
  EXPECT_EQ(pings, 1);
  EXPECT_TRUE(all.ends_with("data: [DONE]\n\n"));
}

TEST_F(CompletionTaskTest, AFullQueueIsTooManyRequestsAndSaysWhenToComeAgain) {
  start({}, {.chat = true}, {.slots = 1, .max_queue = 0});
  const HttpReply running = post("/v1/completions", endless());
  const HttpReply refused = post("/v1/completions", endless());
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(object(refused)["error"]["type"], "rate_limit_error");
  const auto named = [](const auto& header) { return header.first == "Retry-After"; };
  EXPECT_TRUE(std::any_of(refused.headers.begin(), refused.headers.end(), named));
}

TEST_F(CompletionTaskTest, OfSeveralAnswersNoneGoesOnWhenOneCannotBeStarted) {
  start();
  const Json prompts = {"a", std::string(400, 'a')};  // the second one is too long
  EXPECT_EQ(post("/v1/completions", {{"prompt", prompts}}).status, 400);
  EXPECT_EQ(runtime_->status().started, 1);
  EXPECT_TRUE(all_end());
}

TEST_F(CompletionTaskTest, WhereSeveralAnswersHaveNoRoomNowNoneIsStarted) {
  start({}, {.chat = true}, {.slots = 1, .max_queue = 2});
  const HttpReply running = post("/v1/completions", endless());
  Json asked = endless();
  asked["n"] = 3;
  EXPECT_EQ(post("/v1/completions", asked).status, 429);
  EXPECT_EQ(runtime_->status().started, 1);
}

TEST_F(CompletionTaskTest, MoreAnswersThanThereIsEverRoomForAreAnErrorOfTheClients) {
  start({}, {.chat = true}, {.slots = 1, .max_queue = 1});
  Json asked = endless();
  asked["n"] = 3;
  const HttpReply refused = post("/v1/completions", asked);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(object(refused)["error"]["message"],
            "a request for 3 answers has no room here: at most 2 run and wait at once (slots and "
            "max_queue)");
  EXPECT_EQ(runtime_->status().started, 0);
}

TEST_F(CompletionTaskTest, APromptThatIsTooLongIsAnErrorOfTheClient) {
  start();
  const HttpReply reply = post("/v1/completions", {{"prompt", std::string(400, 'a')}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(object(reply)["error"]["param"], "prompt");
}

}  // namespace
}  // namespace outrider::http
