// The server over sockets: what arrives as a request, what does not, who holds what for how long,
// and how it ends. (Larger numbers: reliability_*_test.cc.)
#include "http/listener.h"

#include <atomic>

#include "http/listening_test.h"

namespace outrider::http {
namespace {

using json::Json;
using testing::RawReply;
using testing::SocketClient;

class ListenerTest : public ListeningTest {
 protected:
  static Json error_of(const RawReply& reply) {
    const json::Parsed parsed = json::parse(reply.body);
    EXPECT_TRUE(parsed.ok()) << reply.status << reply.body;
    return parsed.ok() ? (*parsed.value)["error"] : Json();
  }
  // The reply to bytes that need not be a request.
  RawReply reply_to(const std::string& bytes) const {
    SocketClient client = connect();
    client.send(bytes);
    return client.reply();
  }
  static std::string endless() {
    return json::encode(Json{{"prompt", "abc"}, {"max_tokens", 200}, {"stream", true}});
  }
};

TEST_F(ListenerTest, AnswersOverOneConnectionAgainAndAgain) {
  listen();
  SocketClient client = connect();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(client.ask("GET", "/health").status, 200);
    const RawReply reply =
        client.ask("POST", "/v1/completions", R"({"prompt":"abc","max_tokens":5})");
    EXPECT_EQ(reply.status, 200) << reply.body;
  }
}

TEST_F(ListenerTest, RequestsThatComeTogetherAreAnsweredInTurn) {
  listen();
  SocketClient client = connect();
  client.send(SocketClient::request("GET", "/health") + SocketClient::request("GET", "/v1/models"));
  const std::string all = client.read(500);
  EXPECT_NE(all.find(R"("status":"ok")"), std::string::npos);
  EXPECT_NE(all.find(R"("object":"list")"), std::string::npos) << all;
}

TEST_F(ListenerTest, AStreamArrivesEventByEventAndEnds) {
  listen();
  const RawReply reply = ask_over_socket("POST", "/v1/completions",
                                         R"({"prompt":"abc","max_tokens":9,"stream":true})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.head.find("text/event-stream"), std::string::npos);
  EXPECT_NE(reply.body.find("data: [DONE]"), std::string::npos);
}

TEST_F(ListenerTest, HeadHasTheHeadersOfGetAndNoBody) {
  listen();
  SocketClient client = connect();
  client.send("HEAD /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string all = client.read(2000);
  EXPECT_EQ(all.find("HTTP/1.1 200"), 0U);
  EXPECT_EQ(all.find("{"), std::string::npos);
}

TEST_F(ListenerTest, WhatIsNoRequestGetsAnErrorInTheSameForm) {
  listen();
  const std::string host = "Host: localhost\r\n";
  struct Case {
    std::string bytes;
    int status;
  };
  std::string many;
  for (int i = 0; i < 101; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
  const std::vector<Case> cases = {
      {"nonsense\r\n\r\n", 400},
      {"GET / HTTP/9.9\r\n" + host + "\r\n", 400},
      {"FETCH /health HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET /health HTTP/1.1\r\n" + host + many + "\r\n", 400},
      {"GET /health HTTP/1.1\r\n" + host + "X: " + std::string(9 << 10, 'x') + "\r\n\r\n", 400},
      {"GET /" + std::string(31'000, 'a') + " HTTP/1.1\r\n" + host + "\r\n", 404},
      {"GET /" + std::string(60'000, 'a') + " HTTP/1.1\r\n" + host + "\r\n", 414},
      {"POST /v1/completions HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", 400},
      {"POST /v1/completions HTTP/1.1\r\n" + host +
           "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"POST /v1/completions HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
       400},
      {"POST /v1/completions HTTP/1.1\r\n" + host +
           "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
       415},
      {"POST /v1/completions HTTP/1.1\r\n" + host +
           "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 3\r\n\r\n--b",
       415},
  };
  for (const Case& c : cases) {
    const RawReply reply = reply_to(c.bytes);
    EXPECT_EQ(reply.status, c.status) << c.bytes.substr(0, 60);
    EXPECT_TRUE(error_of(reply)["message"].is_string()) << c.bytes.substr(0, 60);
  }
  EXPECT_EQ(ask_over_socket("GET", "/health").status, 200);
}

TEST_F(ListenerTest, ABodyBeyondTheLimitIsRefusedWhetherItsLengthIsToldOrNot) {
  listen({.max_body = 4096});
  const std::string body(5000, 'x');
  EXPECT_EQ(ask_over_socket("POST", "/v1/completions", body).status, 413);
  EXPECT_EQ(reply_to("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                     "Content-Length: 99999999999\r\n\r\n")
                .status,
            413);
  const RawReply chunked = reply_to(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "1388\r\n" +
      body + "\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.status, 413);
  EXPECT_NE(error_of(chunked)["message"].get<std::string>().find("max-body"), std::string::npos);
}

TEST_F(ListenerTest, WithoutAKeyNoBodyIsRead) {
  listen({.api_keys = {"right"}, .max_body = 1 << 20});
  SocketClient client = connect();
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(client.reply().status, 401) << "before a byte of the body is sent";
}

TEST_F(ListenerTest, ConnectionsBeyondTheLimitAreRefusedAtOnce) {
  listen({.max_connections = 8});
  std::vector<SocketClient> holding;
  for (int i = 0; i < 8; ++i) {
    holding.push_back(connect());
    EXPECT_EQ(holding.back().ask("GET", "/health").status, 200);
  }
  const RawReply refused = ask_over_socket("GET", "/health");
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.head.find("Retry-After: "), std::string::npos) << refused.head;
  holding.pop_back();
  RawReply again;
  for (int i = 0; i < 200 && again.status != 200; ++i) again = ask_over_socket("GET", "/health");
  EXPECT_EQ(again.status, 200) << "once one has gone";
}

TEST_F(ListenerTest, AHeadHasOneTimeForAllOfItHoweverItsBytesCome) {
  listen({.read_timeout_s = 1});
  SocketClient client = connect();
  const std::string request = SocketClient::request("GET", "/health");
  std::string answer;
  for (std::size_t i = 0; i < request.size() && !client.closed(); ++i) {
    client.send(request.substr(i, 1));
    answer += client.read(100);
  }
  EXPECT_TRUE(client.closed()) << "each byte came in time, and yet it was no request in time";
  EXPECT_EQ(answer.find("HTTP/1.1 408 "), 0U) << answer;
}

TEST_F(ListenerTest, AConnectionThatSaysNothingIsClosed) {
  listen({.read_timeout_s = 1});
  SocketClient client = connect();
  EXPECT_EQ(client.read(5000), "");
  EXPECT_TRUE(client.closed());
}

TEST_F(ListenerTest, AClientThatGoesGivesItsSlotBackWhereverItsRequestIs) {
  listen({}, {.chat = true, .step_us = 1000}, {.slots = 1, .max_queue = 4});
  for (int round = 0; round < 5; ++round) {
    SocketClient running = connect();
    running.send(SocketClient::request("POST", "/v1/completions", endless()));
    EXPECT_NE(running.read(5000, 1), "");
    SocketClient queued = connect();
    queued.send(SocketClient::request("POST", "/v1/completions", endless()));
    while (open_requests() < 2) std::this_thread::yield();
    (round % 2 == 0 ? queued : running).close();
    (round % 2 == 0 ? running : queued).close();
    const Stopwatch watch;
    while (open_requests() > 0 && watch.elapsed_ms() < 20'000) std::this_thread::yield();
    EXPECT_EQ(open_requests(), 0);
  }
  EXPECT_EQ(runtime_->check_integrity(), "");
}

TEST_F(ListenerTest, StoppingLetsARunningAnswerEnd) {
  listen({.drain_s = 60}, {.chat = true, .step_us = 2000});
  SocketClient client = connect();
  client.send(SocketClient::request("POST", "/v1/completions",
                                    R"({"prompt":"abc","max_tokens":60,"stream":true})"));
  std::string all = client.read(5000, 1);
  listener_->stop();
  EXPECT_EQ(ask_over_socket("GET", "/health").status, 503) << "new ones are told";
  all += client.read(30'000);
  EXPECT_NE(all.find(R"("finish_reason":"length")"), std::string::npos) << all;
  EXPECT_NE(all.find("data: [DONE]"), std::string::npos);
  thread_.join();
  EXPECT_TRUE(ended_.ok());
}

TEST_F(ListenerTest, StoppingEndsALongAnswerWithWhatItHasWhenTheTimeIsOver) {
  n_ctx_ = 100'000;
  listen({.drain_s = 0}, {.chat = true, .step_us = 2000});
  SocketClient client = connect();
  client.send(SocketClient::request("POST", "/v1/completions",
                                    R"({"prompt":"abc","max_tokens":90000,"stream":true})"));
  std::string all = client.read(5000, 1);
  SocketClient idle = connect();
  EXPECT_EQ(idle.ask("GET", "/health").status, 200);
  end();
  all += client.read(1000);
  EXPECT_NE(all.find("data: [DONE]"), std::string::npos) << all.substr(all.size() - 300);
  (void)idle.read(1000);
  EXPECT_TRUE(idle.closed());
}

TEST_F(ListenerTest, StoppingBeforeTheFirstRequestIsFine) {
  listen();
  end();
  EXPECT_TRUE(ended_.ok()) << ended_.message();
}

TEST_F(ListenerTest, AnAddressForOthersNeedsAKey) {
  start({.host = "0.0.0.0", .port = 0});
  const Result<std::unique_ptr<Listener>> listener = Listener::create(*server_);
  ASSERT_FALSE(listener.ok());
  EXPECT_EQ(listener.status().field(), "host");
  EXPECT_NE(listener.status().message().find("--public-without-key"), std::string::npos);
}

TEST_F(ListenerTest, AnAddressThatCannotBeHadIsAnError) {
  listen();
  Server second({.port = listener_->port()}, *catalog_);
  const Result<std::unique_ptr<Listener>> taken = Listener::create(second);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace outrider::http
