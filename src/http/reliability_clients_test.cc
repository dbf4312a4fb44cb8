// Many clients, and such as do not behave, over sockets: reliability tests 14 to 18 and 23, on
// hand-written models, since it is the transport that is tested. (13, 19:
// src/http/listener_test.cc; 20 to 22: access_test.cc.)
#include <algorithm>
#include <atomic>
#include <random>

#include "http/reliability_test.h"
#include "testing/chi_square.h"
#include "testing/step_gate.h"

namespace outrider::http {
namespace {

using json::Json;
using testing::RawReply;
using testing::SocketClient;

// None of them is ended meanwhile, so an answer beside them tells that they hold nobody up.
TEST_F(ServerReliability, SlowClientsHoldNobodyUp) {
  listen({.read_timeout_s = 600});
  std::vector<SocketClient> slow;
  const int n = times(100, 500);
  for (int i = 0; i < n; ++i) {
    slow.push_back(connect());
    ASSERT_TRUE(slow.back().connected());
    slow.back().send("G");
  }
  double slowest = 0.0;
  for (int round = 0; round < 4; ++round) {
    for (SocketClient& client : slow) client.send(round % 2 == 0 ? "E" : "T");
    const Stopwatch watch;
    EXPECT_EQ(ask_over_socket("POST", "/v1/completions", asked(5, false)).status, 200);
    slowest = std::max(slowest, watch.elapsed_ms());
  }
  print_figure("a request beside slow connections, ms", slowest, 2000.0);
  for (SocketClient& client : slow) {
    EXPECT_EQ(client.read(0), "");
    EXPECT_FALSE(client.closed());
  }
}

TEST_F(ServerReliability, SlowClientsAreEndedWhenTheirTimeIsOver) {
  listen({.read_timeout_s = times(1, 20)});
  std::vector<SocketClient> slow;
  const int n = times(100, 500);
  for (int i = 0; i < n; ++i) {
    slow.push_back(connect());
    ASSERT_TRUE(slow.back().connected());
    slow.back().send("GET");
  }
  const Stopwatch watch;
  int ended = 0;
  for (SocketClient& client : slow) {
    (void)client.read(60'000);
    ended += client.closed() ? 1 : 0;
  }
  EXPECT_EQ(ended, n);
  std::printf("  %d slow connections ended after %.1f s\n", n, watch.elapsed_ms() / 1000.0);
}

// One stream is not read: it takes no memory beyond the system's buffers, and is given up.
TEST_F(ServerReliability, AClientThatDoesNotReadIsGivenUpAndOthersGoOn) {
  n_ctx_ = 1024;
  testing::StepGate gate;
  gate.open();
  listen({.write_timeout_s = times(1, 20)}, {.chat = true, .on_evaluated = gate.hold()},
         {.slots = 4, .max_queue = 4});
  const auto speed = [this] {
    const int rounds = times(5, 50);
    const Stopwatch watch;
    for (int i = 0; i < rounds; ++i) {
      const RawReply reply = ask_over_socket("POST", "/v1/completions", asked(400, true));
      EXPECT_EQ(reply.status, 200);
      EXPECT_NE(reply.body.find("data: [DONE]"), std::string::npos) << "it comes whole";
    }
    return rounds * 400.0 / watch.elapsed_ms();
  };
  (void)speed();
  const double alone = speed();
  // What any other text takes of the machine: this one's client reads.
  double beside_a_reader = 0.0;
  {
    SocketClient client = connect();
    client.send(endless_request(true));
    (void)client.read(60'000, 1);
    std::atomic<bool> stop{false};
    std::thread reading([&] {
      while (!stop.load()) (void)client.read(20);
    });
    beside_a_reader = speed();
    stop.store(true);
    reading.join();
  }
  wait_until_free();
  SocketClient deaf(listener_->port(), /*receive_bytes=*/4096);
  deaf.send(endless_request(true));
  (void)deaf.read(60'000, 1);
  const double memory = memory_mib();
  const double beside = speed();
  // A step for each look: what it goes on to say fills no memory, however long this takes.
  gate.close();
  const Stopwatch watch;
  EXPECT_TRUE(testing::eventually([&] {
    gate.let(1);
    return open_requests() == 0;
  })) << "it has been given up";
  std::printf(
      "  given up after %.1f s; another stream's speed beside it: %.2f of that beside a client "
      "that "
      "reads, %.2f of that alone\n",
      watch.elapsed_ms() / 1000.0, beside / beside_a_reader, beside / alone);
  expect_below("memory more, MiB", memory_mib() - memory, 40.0);
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
  const auto handles = [this] {
    const std::string text = ask("GET", "/metrics").body;
    return std::stod(text.substr(text.find("\nprocess_open_fds ") + 18));
  };
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
