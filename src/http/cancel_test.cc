// A client that goes is noticed within a pass, wherever its request is: while a long prompt is
// read, and in the middle of what a draft model guesses. The next request finds everything as it
// was. And so at /rpc, whose methods run and wait as well.
#include <memory>
#include <string>
#include <utility>

#include "api/methods.h"
#include "http/listening_test.h"
#include "testing/eventually.h"
#include "testing/step_gate.h"

namespace outrider::http {
namespace {

using json::Json;
using testing::eventually;
using testing::RawReply;
using testing::SocketClient;
using testing::StepGate;

class CancelTest : public ListeningTest {
 protected:
  // The target, and a draft that is right now and then; a prompt takes several passes.
  void listen_with(const testing::FakeFile& target, testing::FakeFile draft) {
    n_ctx_ = 512;
    n_batch_ = 32;
    loader_.add("draft", std::move(draft));
    loader_.add("twin", {.chat = true});
    listen({}, target, {.slots = 1, .max_queue = 4});
    ASSERT_TRUE(runtime_->load(ModelRole::kDraft, model("draft")).ok());
    ASSERT_TRUE(runtime_->wait_loaded(-1));
    plain_ = std::move(Runtime::create({.slots = 1, .reuse_prefix = false}, loader_).value());
    ASSERT_TRUE(plain_->load(ModelRole::kTarget, model("twin")).ok());
    ASSERT_TRUE(plain_->wait_loaded(-1));
  }

  ModelOptions model(const char* path) const {
    ModelOptions options;
    options.path = path;
    options.n_ctx = n_ctx_;
    options.n_batch = n_batch_;
    return options;
  }

  // `i`: which of many; they begin differently, so that each is read from its beginning.
  static std::string prompt(int i) {
    std::string text;
    for (int k = 0; k < 200; ++k) text += static_cast<char>('a' + (i + k * k + k / 12) % 12);
    return text;
  }
  static Json asked(int i, bool stream) {
    return {{"prompt", prompt(i)}, {"max_tokens", 40},
            {"seed", 5},           {"temperature", 1},
            {"stream", stream},    {"speculative", {{"drafters", {"draft-model"}}, {"width", 5}}}};
  }

  // Of plain decoding, by a runtime whose requests nobody cancels.
  std::string expected(int i) {
    CompletionRequest request{
        .prompt = {prompt(i)}, .seed = 5, .max_tokens = 40, .speculative = false};
    request.sampling.temperature = 1.0F;
    return (*plain_->run(std::move(request)))->completion.text;
  }

  // Sends a request, lets `passes` of what `gate` holds through, and goes; tells how many passes of
  // the target were begun behind that.
  std::int64_t passes_behind_a_cancel(StepGate& gate, int i, int passes) {
    gate.close();
    SocketClient client = connect();
    client.send(SocketClient::request("POST", "/v1/completions",
                                      json::encode(asked(i, /*stream=*/i % 2 == 0))));
    for (int k = 0; k < passes; ++k) {
      gate.wait_until_held();
      gate.let(1);
    }
    gate.wait_until_held();
    EXPECT_EQ(open_requests(), 1);
    client.close();
    const testing::FakeModel& target = StepGate::fake_target(*runtime_->target()).fake_model();
    EXPECT_TRUE(eventually([&] { return target.is_interrupted(); })) << "noticed while it computes";
    const std::int64_t before = loader_.evaluations();
    gate.open();
    EXPECT_TRUE(eventually([this] { return open_requests() == 0; }));
    return loader_.evaluations() - before;
  }

  void expect_the_plain_text(int i) {
    for (const int which : {i, i + 1}) {  // one that begins alike, and another
      const RawReply reply =
          ask_over_socket("POST", "/v1/completions", json::encode(asked(which, false)));
      ASSERT_EQ(reply.status, 200) << reply.body;
      const Json answer = *json::parse(reply.body).value;
      EXPECT_EQ(answer["choices"][0]["text"], expected(which));
      EXPECT_GT(answer["speculation"]["drafted"], 0);
    }
    EXPECT_EQ(runtime_->check_integrity(), "");
  }

  std::unique_ptr<Runtime> plain_;
};

TEST_F(CancelTest, WhileAPromptIsReadEndsItBeforeTheNextPass) {
  StepGate gate;
  gate.open();
  listen_with({.chat = true, .on_evaluated = gate.hold()}, {.noise = 0.5F});
  for (int passes = 0; passes < 5; ++passes) {
    EXPECT_EQ(passes_behind_a_cancel(gate, passes, passes), 0) << passes;
    expect_the_plain_text(passes);
  }
}

TEST_F(CancelTest, InTheMiddleOfADraftEndsItBeforeTheTargetsNextPassIsOver) {
  StepGate gate;
  gate.open();
  listen_with({.chat = true}, {.noise = 0.5F, .on_evaluated = gate.hold()});
  for (int passes = 0; passes < 12; ++passes) {
    // One that is begun is interrupted.
    EXPECT_LE(passes_behind_a_cancel(gate, passes, passes), 1) << passes;
    expect_the_plain_text(passes);
  }
}

std::string rpc_body(const char* method, Json params) {
  return json::encode(
      {{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", std::move(params)}});
}

TEST_F(CancelTest, AClientOfRpcThatLeavesEndsItsRun) {
  listen({}, {.chat = true}, {.slots = 1, .max_queue = 4});
  Json params = endless();
  params.erase("stream");
  SocketClient client = connect();
  client.send(SocketClient::request("POST", "/rpc", rpc_body("completion.run", params)));
  EXPECT_TRUE(eventually([this] { return open_requests() == 1; }));
  client.close();
  EXPECT_TRUE(eventually([this] { return open_requests() == 0; }));
  EXPECT_EQ(runtime_->check_integrity(), "");
}

// Its thread is free for others again: the waits would take an hour.
TEST_F(CancelTest, AClientOfRpcThatLeavesEndsItsWaits) {
  listen({}, {.chat = true}, {.slots = 1, .max_queue = 4});
  StepGate gate(*runtime_);
  Json params = endless();
  params.erase("stream");
  const RawReply started =
      ask_over_socket("POST", "/rpc", rpc_body("completion.start", std::move(params)));
  const Json id = (*json::parse(started.body).value)["result"]["id"];
  gate.wait_until_held();
  loader_.add("slow", {.load_steps = testing::kEndlessLoad});
  ASSERT_TRUE(runtime_->load(ModelRole::kDraft, model("slow")).ok());
  for (const auto& [method, wait] :
       {std::pair("completion.poll", Json{{"id", id}, {"wait_ms", api::kMaxWaitMs}}),
        std::pair("system.status", Json{{"wait_ms", api::kMaxWaitMs}})}) {
    SocketClient client = connect();
    client.send(SocketClient::request("POST", "/rpc", rpc_body(method, wait)));
    // Beside the test and the catalog the call has it.
    EXPECT_TRUE(eventually([this] { return runtime_.use_count() == 3; })) << method;
    client.close();
    EXPECT_TRUE(eventually([this] { return runtime_.use_count() == 2; })) << method;
  }
  gate.open();
  ASSERT_TRUE(runtime_->cancel_load(ModelRole::kDraft).ok());
  ASSERT_TRUE(runtime_->cancel(id.get<CompletionId>()).ok());
}

}  // namespace
}  // namespace outrider::http
