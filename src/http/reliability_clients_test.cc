// Many clients, and such as do not behave, over sockets: reliability tests 14, 16 to 18 and 23, on
// hand-written models, since it is the transport that is tested. (13, 19:
// src/http/listener_test.cc; 15: reliability_readers_test.cc; 20 to 22: access_test.cc.)
#include <algorithm>
#include <atomic>
#include <random>

#include "http/reliability_test.h"
#include "testing/chi_square.h"

namespace outrider::http {
namespace {

using json::Json;
using testing::RawReply;
using testing::SocketClient;

// Each sends a byte of a request now and then, and within the time for its head it is kept: none is
// ended meanwhile, so an answer beside them tells that they hold nobody up.
TEST_F(ServerReliability, SlowClientsHoldNobodyUp) {
  listen({.read_timeout_s = 600});
  const std::string head = SocketClient::request("GET", "/health");
  std::vector<SocketClient> slow;
  const int n = times(100, 500);
  for (int i = 0; i < n; ++i) {
    slow.push_back(connect());
    ASSERT_TRUE(slow.back().connected());
  }
  std::size_t sent = 0;  // of each head, which never gets whole
  Repeated sending(times(50, 10'000), [&] {
    if (sent + 1 == head.size()) return;
    for (SocketClient& client : slow) EXPECT_TRUE(client.send(head.substr(sent, 1)));
    ++sent;
  });
  int answers = 0;
  double slowest = 0.0;
  for (const int bytes = times(4, 7); sending.done() < bytes; ++answers) {
    const Stopwatch watch;
    EXPECT_EQ(ask_over_socket("POST", "/v1/completions", asked(5, false)).status, 200);
    slowest = std::max(slowest, watch.elapsed_ms());
    // Connections that were closed keep their ports for a while: not too many of them.
    EXPECT_TRUE(testing::eventually([&] { return watch.elapsed_ms() >= times(5, 50); }));
  }
  sending.stop();
  std::printf("  %d answers while %d slow connections send %zu bytes each\n", answers, n, sent);
  print_figure("a request beside slow connections, ms", slowest, 2000.0);
  for (SocketClient& client : slow) {
    EXPECT_EQ(client.read(0), "");
    EXPECT_FALSE(client.closed()) << "it was there all the time";
    client.send(head.substr(sent));
    EXPECT_EQ(client.reply().status, 200) << "what it was slow to ask is answered";
  }
}

// The time is for all of a head: that each byte comes soon behind the one before does not help.
TEST_F(ServerReliability, SlowClientsAreToldAndEndedWhenTheirTimeIsOver) {
  listen({.read_timeout_s = times(1, 20)});
  const std::size_t n = static_cast<std::size_t>(times(100, 500));
  std::vector<SocketClient> slow;
  std::vector<std::string> answers(n);
  for (std::size_t i = 0; i < n; ++i) {
    // Behind an answer the next head may begin later than its own time would allow.
    ASSERT_TRUE(testing::eventually([&] {
      if (slow.size() > i) slow.pop_back();
      slow.push_back(connect());
      return slow.back().ask("GET", "/health").status == 200;
    }));
    ASSERT_TRUE(slow.back().send("GET /health?"));
  }
  std::atomic<std::size_t> ended{0};
  Repeated sending(times(50, 10'000), [&] {
    std::size_t closed = 0;
    for (std::size_t i = 0; i < n; ++i) {
      answers[i] += slow[i].read(0);
      closed += slow[i].closed() ? 1 : 0;
      if (!slow[i].closed()) (void)slow[i].send("y");
    }
    ended.store(closed);
  });
  EXPECT_TRUE(testing::eventually([&] { return ended.load() == n; }));
  sending.stop();
  for (const std::string& answer : answers) EXPECT_EQ(answer.find("HTTP/1.1 408 "), 0U) << answer;
  std::printf("  %zu slow connections were told 408 and ended\n", ended.load());
  expect_alive();
}

TEST_F(ServerReliability, ClientsThatGoFreeTheirSlotsAndChangeNoOtherText) {
  listen({}, {.chat = true}, {.slots = 3, .max_queue = 64});
  const std::string expected = ask_over_socket("POST", "/v1/completions", asked(150, false)).body;
  const std::string text = (*json::parse(expected).value)["choices"][0]["text"];
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::thread bystander([&] {
    while (!stop.load()) {
      const RawReply reply = ask_over_socket("POST", "/v1/completions", asked(150, false));
      ASSERT_EQ(reply.status, 200) << reply.body;
      EXPECT_EQ((*json::parse(reply.body).value)["choices"][0]["text"], text);
      ++rounds;
    }
  });
  std::mt19937_64 random(testing::test_seed(16));
  const int n = times(100, 1000);
  double slowest = 0.0;
  for (int i = 0; i < n;) {
    std::vector<SocketClient> clients;
    for (int k = 0; k < 8; ++k, ++i) {
      const bool stream = random() % 2 == 0;
      clients.push_back(connect());
      clients.back().send(endless_request(stream, i));
      if (stream && random() % 3 == 0) {
        EXPECT_NE(clients.back().read(60'000, 1), "");
      }
    }
    // Half of the times all of them run or wait when they go.
    if (random() % 2 == 0) {
      EXPECT_TRUE(testing::eventually([this] { return open_requests() >= 8; }));
    }
    clients.clear();
    const Stopwatch watch;
    EXPECT_TRUE(testing::eventually([this] { return open_requests() <= 1; }));
    slowest = std::max(slowest, watch.elapsed_ms());
  }
  stop.store(true);
  bystander.join();
  std::printf("  %d clients went while another one read %d texts\n", n, rounds.load());
  print_figure("slots of 8 clients free again, ms at most", slowest, 500.0);
  wait_until_free();
  EXPECT_EQ(runtime_->check_integrity(), "");
}

TEST_F(ServerReliability, ManyClientsGetAllTheirAnswersInSteadyMemory) {
  listen({}, {.chat = true}, {.slots = 4, .max_queue = 256});
  constexpr int kClients = 32;
  const int n = times(1000, 10'000);
  const auto handles = [this] { return metric("process_open_fds"); };
  std::atomic<int> next{0};
  std::atomic<int> failed{0};
  double memory_after_a_tenth = 0.0;
  double handles_after_a_tenth = 0.0;
  const auto work_until = [&](int end) {
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back([&] {
        SocketClient client = connect();
        for (int k = 0; next++ < end; ++k) {
          if (k % 20 == 19) client = connect();
          const RawReply reply = client.ask("POST", "/v1/completions", asked(8, k % 2 == 0, k));
          failed += reply.status == 200 ? 0 : 1;
        }
      });
    }
    for (std::thread& client : clients) client.join();
  };
  work_until(n / 10);
  memory_after_a_tenth = memory_mib();
  handles_after_a_tenth = handles();
  next.store(n / 10);
  const Stopwatch watch;
  work_until(n);
  const double thousands = 0.9 * n / 1000.0;
  EXPECT_EQ(failed.load(), 0);
  std::printf("  %d requests of %d clients, %.0f a second\n", n, kClients,
              900.0 * n / watch.elapsed_ms());
  expect_below("memory more for 1,000 requests, MiB",
               (memory_mib() - memory_after_a_tenth) / thousands, 1.0);
  // The last connections are closed a moment behind their last answers.
  double more_handles = 0.0;
  EXPECT_TRUE(testing::eventually([&] {
    more_handles = handles() - handles_after_a_tenth;
    return more_handles < 4.0;
  })) << more_handles;
  print_figure("handles more", more_handles, 4.0);
  wait_until_free();
}

TEST_F(ServerReliability, AFullQueueAnswersAtOnce) {
  listen({}, {.chat = true}, {.slots = 1, .max_queue = 2});
  std::vector<SocketClient> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(connect());
    waiting.back().send(endless_request(false));
    EXPECT_TRUE(testing::eventually([this, i] { return open_requests() == i + 1; }));
  }
  double slowest = 0.0;
  for (int i = 0; i < times(20, 200); ++i) {
    const Stopwatch watch;
    const RawReply reply = ask_over_socket("POST", "/v1/completions", asked(1, false));
    EXPECT_EQ(reply.status, 429);
    EXPECT_NE(reply.head.find("Retry-After: "), std::string::npos);
    EXPECT_EQ(open_requests(), 3) << "it was not for a place that it waited";
    slowest = std::max(slowest, watch.elapsed_ms());
  }
  print_figure("429 of a full queue, ms", slowest, 100.0);
  for (SocketClient& client : waiting) {
    EXPECT_EQ(client.read(0), "") << "their texts have no end";
    EXPECT_FALSE(client.closed());
  }
}

TEST_F(ServerReliability, NoPathLeadsOutOfThePage) {
  listen();
  const std::vector<std::string> ups = {"..",   "%2e%2e",     ".%2e", "%2e.",         "..%00",
                                        "....", "%252e%252e", "..;",  "%c0%ae%c0%ae", "..%5c"};
  const std::vector<std::string> slashes = {"/", "%2f", "//", "\\", "%5c"};
  const std::vector<std::string> files = {"etc/passwd", "proc/self/environ", "CMakeLists.txt",
                                          "index.html"};
  int asked = 0;
  for (const std::string& up : ups) {
    for (const std::string& slash : slashes) {
      for (const std::string& file : files) {
        std::string path = "/";
        for (int depth = 0; depth < 8; ++depth) path += up + slash;
        SocketClient client = connect();
        const RawReply reply = client.ask("GET", path + file);
        EXPECT_TRUE(reply.status == 404 || reply.status == 400) << path << " " << reply.status;
        EXPECT_EQ(reply.body.find("root:"), std::string::npos) << path;
        ++asked;
      }
    }
  }
  std::printf("  %d paths that climb: none escapes\n", asked);
  EXPECT_GE(asked, 200);
}

}  // namespace
}  // namespace outrider::http
