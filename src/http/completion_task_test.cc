// Answering: clients that go, queues that are full, requests that fail on the way.
#include "http/completion_task.h"

#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

// A text of 200 tokens takes it seconds, so what ends sooner has been ended.
const testing::FakeFile kSlow{.chat = true, .step_us = 20'000};

class CompletionTaskTest : public ServerTest {
 protected:
  static Json endless() { return {{"prompt", "abc"}, {"max_tokens", 200}, {"stream", true}}; }
  std::int64_t open() const {
    const RuntimeStatus status = runtime_->status();
    return status.running + status.queued;
  }
};

TEST_F(CompletionTaskTest, AStreamThatIsNotReadEndsItsCompletion) {
  start();
  { const HttpReply unsent = post("/v1/completions", endless()); }
  EXPECT_EQ(open(), 0);
}

TEST_F(CompletionTaskTest, AClientThatTakesNoMoreEndsItsCompletion) {
  start({}, kSlow);
  const HttpReply reply = post("/v1/completions", endless());
  int taken = 0;
  reply.stream([&taken](std::string_view) { return ++taken < 3; });
  EXPECT_EQ(taken, 3) << "nothing is written behind a refusal";
}

TEST_F(CompletionTaskTest, AClientThatHasGoneIsNoticedWhileItWaits) {
  start({}, kSlow);
  int looks = 0;
  const HttpReply reply = server_->answer({.method = "POST",
                                           .path = "/v1/completions",
                                           .body = R"({"prompt":"abc","max_tokens":200})",
                                           .gone = [&looks] { return ++looks > 1; }});
  EXPECT_EQ(reply.status, 499);
  EXPECT_EQ(open(), 0);
}

TEST_F(CompletionTaskTest, AFullQueueIsTooManyRequestsAndSaysWhenToComeAgain) {
  start({}, kSlow, {.slots = 1, .max_queue = 0});
  const HttpReply running = post("/v1/completions", endless());
  const HttpReply refused = post("/v1/completions", endless());
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(object(refused)["error"]["type"], "rate_limit_error");
  const auto named = [](const auto& header) { return header.first == "Retry-After"; };
  EXPECT_TRUE(std::any_of(refused.headers.begin(), refused.headers.end(), named));
}

TEST_F(CompletionTaskTest, OfSeveralAnswersNoneGoesOnWhenOneCannotBeStarted) {
  start({}, kSlow, {.slots = 1, .max_queue = 1});
  Json asked = endless();
  asked["n"] = 3;
  EXPECT_EQ(post("/v1/completions", asked).status, 429);
  EXPECT_EQ(open(), 0);
}

TEST_F(CompletionTaskTest, APromptThatIsTooLongIsAnErrorOfTheClient) {
  start();
  const HttpReply reply = post("/v1/completions", {{"prompt", std::string(400, 'a')}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(object(reply)["error"]["param"], "prompt");
}

}  // namespace
}  // namespace outrider::http
