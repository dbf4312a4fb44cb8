// A client that ends its side of the connection and reads on gets its answer; one that has closed
// is noticed, though both look alike at first.
#include <string>

#include "http/listening_test.h"
#include "testing/eventually.h"
#include "testing/step_gate.h"

namespace outrider::http {
namespace {

using json::Json;
using testing::eventually;
using testing::SocketClient;
using testing::StepGate;

constexpr std::int64_t kLongMs = 60'000;  // for what comes, however slow the machine is

class HalfClosedTest : public ListeningTest {
 protected:
  static std::string completion(const Json& body) {
    return SocketClient::request("POST", "/v1/completions", json::encode(body));
  }
  static Json twenty(bool stream) {
    return {{"prompt", "abc"}, {"max_tokens", 20}, {"stream", stream}};
  }
  // Behind an evaluation that stands still.
  void expect_to_be_cancelled(StepGate& gate) {
    const testing::FakeModel& target = StepGate::fake_target(*runtime_->target()).fake_model();
    EXPECT_TRUE(eventually([&] { return target.is_interrupted(); }));
    gate.open();
    EXPECT_TRUE(eventually([this] { return open_requests() == 0; }));
  }
};

TEST_F(HalfClosedTest, AnAnswerComesWholeBehindAnInterimResponse) {
  StepGate gate;
  listen({}, {.chat = true, .on_evaluated = gate.hold()});
  SocketClient client = connect();
  client.send(completion(twenty(/*stream=*/false)));
  gate.wait_until_held();
  client.end();
  EXPECT_EQ(client.read(kLongMs, 1), "HTTP/1.1 100 Continue\r\n\r\n") << "whether it is there";
  gate.open();
  const std::string all = client.read(kLongMs);
  EXPECT_EQ(all.find("HTTP/1.1 200 OK\r\n"), 0U) << all;
  EXPECT_NE(all.find(R"("finish_reason":"length")"), std::string::npos) << all;
}

TEST_F(HalfClosedTest, AStreamComesWhole) {
  StepGate gate;
  listen({}, {.chat = true, .on_evaluated = gate.hold()});
  SocketClient client = connect();
  client.send(completion(twenty(/*stream=*/true)));
  gate.wait_until_held();
  EXPECT_EQ(client.read(kLongMs, 1).find("HTTP/1.1 200 OK\r\n"), 0U);
  client.end();
  EXPECT_NE(client.read(kLongMs, 1).find(": ping"), std::string::npos) << "whether it is there";
  gate.open();
  const std::string all = client.read(kLongMs);
  EXPECT_NE(all.find(R"("finish_reason":"length")"), std::string::npos) << all;
  EXPECT_NE(all.find("data: [DONE]"), std::string::npos) << all;
  EXPECT_TRUE(all.ends_with("\r\n0\r\n\r\n")) << all;
}

// All that came is read, so that the system sends no reset by itself.
TEST_F(HalfClosedTest, WhoHasClosedIsNoticedWhileNothingIsSaid) {
  StepGate gate;
  listen({}, {.chat = true, .on_evaluated = gate.hold()});
  for (const bool stream : {false, true}) {
    gate.close();
    SocketClient client = connect();
    client.send(completion(endless(stream)));
    gate.wait_until_held();
    if (stream) {
      EXPECT_NE(client.read(kLongMs, 1), "");
    }
    client.close();
    expect_to_be_cancelled(gate);
  }
  EXPECT_EQ(runtime_->check_integrity(), "");
}

TEST_F(HalfClosedTest, WithHttp10TheEndOfARequestsSideIsThatOfTheClient) {
  StepGate gate;
  listen({}, {.chat = true, .on_evaluated = gate.hold()});
  SocketClient client = connect();
  const std::string body = json::encode(endless(/*stream=*/false));
  client.send("POST /v1/completions HTTP/1.0\r\nHost: localhost\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  gate.wait_until_held();
  client.end();
  expect_to_be_cancelled(gate);
  EXPECT_EQ(client.read(kLongMs), "") << "nothing, and no status that nobody knows";
  EXPECT_TRUE(client.closed());
}

}  // namespace
}  // namespace outrider::http
