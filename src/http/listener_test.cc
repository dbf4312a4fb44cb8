// The server over sockets: what arrives as a request, what does not, who holds what for how long,
// and how it ends. (Larger numbers: reliability_*_test.cc.)
#include "http/listener.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "http/connection/connections.h"
#include "http/listening_test.h"
#include "testing/eventually.h"
#include "testing/step_gate.h"

namespace outrider::http {
namespace {

using json::Json;
using testing::eventually;
using testing::RawReply;
using testing::SocketClient;

constexpr std::int64_t kLongMs = 60'000;  // for what comes, however slow the machine is

// Who asked, as the access log has it.
class LoggedRemotes : public LineSink {
 public:
  void write(std::string_view line) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    last_ = (*json::parse(line).value)["remote"].get<std::string>();
    ++n_;
  }
  // Of the n-th request: its line comes behind its answer.
  std::string of(int n) {
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard<std::mutex> lock(mutex_);
      return n_ == n;
    }));
    const std::lock_guard<std::mutex> lock(mutex_);
    return last_;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::string last_;
  int n_ = 0;
};

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
  static std::string completion(const Json& body) {
    return SocketClient::request("POST", "/v1/completions", json::encode(body));
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
  client.send(SocketClient::request("GET", "/health") +
              SocketClient::request("GET", "/v1/models", "", "Connection: close\r\n"));
  const std::string all = client.read(kLongMs);
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

TEST_F(ListenerTest, AStreamToAClientOfHttp10HasNoChunksAndEndsWithTheConnection) {
  listen();
  const std::string body = R"({"prompt":"abc","max_tokens":9,"stream":true})";
  for (const char* header : {"", "Connection: keep-alive\r\n", "Connection: close\r\n"}) {
    SocketClient client = connect();
    client.send("POST /v1/completions HTTP/1.0\r\nHost: localhost\r\n" + std::string(header) +
                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    const std::string all = client.read(kLongMs);
    EXPECT_TRUE(client.closed()) << header;
    EXPECT_EQ(all.find("HTTP/1.1 200 OK\r\n"), 0U) << all;
    const std::size_t end = all.find("\r\n\r\n");
    ASSERT_NE(end, std::string::npos) << all;
    const std::string head = all.substr(0, end + 2);
    EXPECT_EQ(head.find("Transfer-Encoding"), std::string::npos) << head;
    EXPECT_EQ(head.find("Content-Length"), std::string::npos) << head;
    EXPECT_NE(head.find("\r\nConnection: close\r\n"), std::string::npos) << head;
    const std::string stream = all.substr(end + 4);
    EXPECT_EQ(stream.find("data: {"), 0U) << stream;
    EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n")) << stream;
    EXPECT_EQ(stream.find('\r'), std::string::npos) << "no chunk's size";
  }
}

TEST_F(ListenerTest, HeadHasTheHeadersOfGetAndNoBody) {
  listen();
  SocketClient client = connect();
  client.send("HEAD /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string all = client.read(kLongMs);
  EXPECT_EQ(all.find("HTTP/1.1 200"), 0U);
  EXPECT_EQ(all.find('{'), std::string::npos);
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

// From the right: what is left of the first one that is not trusted anybody may have written.
TEST_F(ListenerTest, TheClientIsTheLastAddressThatATrustedProxyNames) {
  LoggedRemotes remotes;
  log_ = &remotes;
  listen({.trusted_proxies = {"10.0.0.9", "127.0.0.1"}});
  int n = 0;
  const auto logged = [&](std::string_view header) {
    EXPECT_EQ(ask_over_socket("GET", "/v1/models", "", header).status, 200);
    return remotes.of(++n);
  };
  EXPECT_EQ(logged("X-Forwarded-For: 6.6.6.6, 192.0.2.7, 10.0.0.9\r\n"), "192.0.2.7");
  EXPECT_EQ(logged("X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 2001:db8::7\r\n"), "2001:db8::7");
  EXPECT_EQ(logged(""), "127.0.0.1");
  const std::string long_header = "X-Forwarded-For: " + std::string(5000, '1') + "\r\n";
  EXPECT_EQ(logged(long_header), std::string(256, '1'));
  end();
}

TEST_F(ListenerTest, OthersThanTrustedProxiesCannotSayWhoAsks) {
  LoggedRemotes remotes;
  log_ = &remotes;
  listen({.trusted_proxies = {"10.0.0.9"}});
  const std::string_view header = "X-Forwarded-For: 6.6.6.6, 10.0.0.9\r\n";
  EXPECT_EQ(ask_over_socket("GET", "/v1/models", "", header).status, 200);
  EXPECT_EQ(remotes.of(1), "127.0.0.1");
  end();
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

TEST(ConnectionLimitsTest, ThereAreNeverMoreConnectionsThanFilesForThem) {
  for (const std::size_t wanted : {8U, 1024U, 16384U}) {
    for (std::size_t files = 32; files < 40'000; ++files) {
      const ConnectionLimits limits = connections_within(wanted, files);
      ASSERT_LE(limits.connections, wanted);
      ASSERT_GE(limits.connections, 8U) << files;
      ASSERT_GE(limits.refusals, 4U) << files;
      ASSERT_LE(limits.all() + std::min<std::size_t>(files / 2, 256), files);
      if (files >= wanted + 320) {
        ASSERT_EQ(limits.connections, wanted) << files;
      }
    }
  }
  EXPECT_EQ(connections_within(1024, 1024).connections, 704U);
  EXPECT_GE(allow_files(8), 8U);
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
  EXPECT_TRUE(eventually([this] { return ask_over_socket("GET", "/health").status == 200; }))
      << "once one has gone";
}

// Also behind the request's line, from where on cpp-httplib would answer 400.
TEST_F(ListenerTest, AHeadHasOneTimeForAllOfItHoweverItsBytesCome) {
  listen({.read_timeout_s = 1});
  for (const char* begin : {"GET /health?", "GET /health HTTP/1.1\r\nX-Slow: "}) {
    SocketClient client = connect();
    // Behind an answer the next head may begin later than a second after it.
    ASSERT_TRUE(eventually([&] {
      client = connect();
      return client.ask("GET", "/health").status == 200;
    }));
    client.send(begin);
    std::string answer;
    EXPECT_TRUE(eventually([&] {
      client.send("y");
      answer += client.read(1);
      return client.closed();
    })) << "each byte came in time, and yet it was no request in time";
    EXPECT_EQ(answer.find("HTTP/1.1 408 "), 0U) << begin << ": " << answer;
    EXPECT_NE(answer.find("did not arrive in time"), std::string::npos) << answer;
  }
}

TEST_F(ListenerTest, AConnectionThatSaysNothingIsClosed) {
  listen({.read_timeout_s = 1});
  SocketClient client = connect();
  EXPECT_EQ(client.read(kLongMs), "");
  EXPECT_TRUE(client.closed());
}

TEST_F(ListenerTest, AClientThatGoesGivesItsSlotBackWhereverItsRequestIs) {
  listen({}, {.chat = true}, {.slots = 1, .max_queue = 4});
  for (int round = 0; round < 5; ++round) {
    SocketClient running = connect();
    running.send(completion(endless()));
    EXPECT_NE(running.read(kLongMs, 1), "");
    SocketClient queued = connect();
    queued.send(completion(endless()));
    EXPECT_TRUE(eventually([this] { return open_requests() == 2; }));
    (round % 2 == 0 ? queued : running).close();
    EXPECT_TRUE(eventually([this] { return open_requests() == 1; }));
    (round % 2 == 0 ? running : queued).close();
    EXPECT_TRUE(eventually([this] { return open_requests() == 0; }));
  }
  EXPECT_EQ(runtime_->check_integrity(), "");
}

TEST_F(ListenerTest, StoppingLetsARunningAnswerEnd) {
  testing::StepGate gate;
  listen({.drain_s = 60}, {.chat = true, .on_evaluated = gate.hold()});
  SocketClient client = connect();
  client.send(completion({{"prompt", "abc"},
                          {"max_tokens", 60},
                          {"stream", true},
                          {"stream_options", {{"include_usage", true}}}}));
  gate.wait_until_held();
  listener_->stop();
  EXPECT_EQ(ask_over_socket("GET", "/health").status, 503) << "new ones are told";
  gate.open();
  const std::string all = client.read(kLongMs);
  EXPECT_NE(all.find(R"("completion_tokens":60)"), std::string::npos) << all;
  EXPECT_NE(all.find("data: [DONE]"), std::string::npos);
  thread_.join();
  EXPECT_TRUE(ended_.ok());
}

TEST_F(ListenerTest, StoppingEndsALongAnswerWithWhatItHasWhenTheTimeIsOver) {
  // What it has is three times of what the system keeps for a client that does not read. So its end
  // cannot be written before this one reads, which is when the text has long been ended.
  std::map<Token, std::string> pieces;
  for (Token t = 0; t < 12; ++t) pieces[t] = std::string(4096, static_cast<char>('a' + t));
  testing::StepGate gate;
  listen({.write_timeout_s = 600, .drain_s = 0},
         {.pieces = pieces, .chat = true, .on_evaluated = gate.hold()});
  SocketClient client(listener_->port(), /*receive_bytes=*/64 << 10);
  client.send(completion(endless()));
  gate.let(300);
  gate.wait_until_held();
  SocketClient idle = connect();
  EXPECT_EQ(idle.ask("GET", "/health").status, 200);
  listener_->stop();
  EXPECT_TRUE(eventually([&] {
    gate.let(1);  // it is ended between two steps
    return open_requests() == 0;
  }));
  // Looks that give a server that waits for nobody the time to end.
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ask_over_socket("GET", "/health").status, 503) << "it waits for the client";
  }
  const std::string all = client.read(kLongMs);
  EXPECT_GT(all.size(), std::size_t{1} << 20);
  EXPECT_NE(all.find("data: [DONE]"), std::string::npos) << "what it has is written to its end";
  EXPECT_TRUE(client.closed());
  (void)idle.read(kLongMs);
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

TEST(Connections, OneThatComesBehindTheEndIsShutAtOnce) {
  Connections connections(2);
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  connections.shut_all();
  EXPECT_TRUE(connections.add(ends[0]));
  char byte = 0;
  EXPECT_EQ(::recv(ends[0], &byte, 1, MSG_DONTWAIT), 0) << "an end, not a wait";
  connections.remove(ends[0]);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace outrider::http
