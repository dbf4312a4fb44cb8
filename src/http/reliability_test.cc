// The server at its limits, over sockets: reliability tests 6 to 8, 12, 14 to 18 and 23, on
// hand-written models, since it is the transport that is tested. (9 to 11 are tested where
// grammars, schemas and templates are read; 13, 19: src/http/listener_test.cc; 20 to 22:
// access_test.cc.)
//
// Each prints its figures. With OUTRIDER_SOAK (./dev soak) the numbers are full, and times count.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#include "http/endpoint.h"
#include "http/listening_test.h"
#include "testing/broken_bodies.h"
#include "testing/chi_square.h"

namespace outrider::http {
namespace {

using json::Json;
using testing::RawReply;
using testing::SocketClient;

// Sanitizers keep what is freed for a while.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCountsMemory = false;
#else
constexpr bool kCountsMemory = true;
#endif

bool soaks() { return std::getenv("OUTRIDER_SOAK") != nullptr; }
int times(int quick, int full) { return soaks() ? full : quick; }

// Prints a figure; it has to be within the limit only where nothing else runs on the machine.
void expect_below(const char* what, double value, double limit) {
  std::printf("  %-50s %10.2f, wanted: below %g\n", what, value, limit);
  if (soaks()) {
    EXPECT_LT(value, limit) << what;
  }
}

double memory_mib() {
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return static_cast<double>(resident) * 4096.0 / (1 << 20);
}

class ServerReliability : public ListeningTest {
 protected:
  static std::string asked(std::int64_t tokens, bool stream, std::int64_t seed = 1) {
    return json::encode(
        Json{{"prompt", "abc"}, {"max_tokens", tokens}, {"stream", stream}, {"seed", seed}});
  }
  static std::string request(std::int64_t tokens, bool stream, std::int64_t seed = 1) {
    return SocketClient::request("POST", "/v1/completions", asked(tokens, stream, seed));
  }
  void expect_alive() const { EXPECT_EQ(ask_over_socket("GET", "/health").status, 200); }

  // A body that the endpoint takes; empty: it takes none of these, or is not for this model.
  std::string good_body(const Endpoint& endpoint) {
    if (endpoint.method != "POST" || endpoint.body == nullptr) return "";
    for (const char* text : {R"("messages":[{"role":"user","content":"abc"}])", R"("prompt":"abc")",
                             R"("input":"abc")", R"("content":"abc")"}) {
      std::string body = "{" + std::string(text) + R"(,"max_tokens":1})";
      if (ask("POST", std::string(endpoint.path), body).status == 200) return body;
    }
    return "";
  }

  // Milliseconds until nothing runs or waits.
  double wait_until_free() const {
    const Stopwatch watch;
    while (open_requests() > 0 && watch.elapsed_ms() < 60'000) std::this_thread::yield();
    EXPECT_EQ(open_requests(), 0);
    return watch.elapsed_ms();
  }
};

TEST_F(ServerReliability, MalformedBodiesAreErrorsOfTheClient) {
  listen({.max_connections = 64});
  const std::uint64_t seed = testing::test_seed(6);
  testing::BrokenBodies breaker(seed);
  std::vector<std::pair<std::string, std::string>> good;  // path, body
  for (const Endpoint& endpoint : endpoints()) {
    std::string body = good_body(endpoint);
    if (!body.empty()) good.emplace_back(endpoint.path, std::move(body));
  }
  ASSERT_GE(good.size(), 2U);
  const int n = times(700, 10'000);
  const Stopwatch watch;
  for (int i = 0; i < n; ++i) {
    const auto& [path, whole] = good[static_cast<std::size_t>(i) % good.size()];
    const std::string body = breaker.next(whole);
    const RawReply reply = ask_over_socket("POST", path, body);
    ASSERT_GE(reply.status, 400) << path << " " << body;
    ASSERT_LT(reply.status, 500) << path << " " << body;
  }
  std::printf("  %d malformed bodies: all 4xx, %.2f ms each\n", n, watch.elapsed_ms() / n);
  expect_alive();
}

// On a stack of 512 KiB, as small as threads have anywhere.
TEST_F(ServerReliability, DeepJsonIsRefusedAtOnce) {
  start();
  struct Deep {
    Server* server;
    std::string body;
    int status = 0;
  };
  const auto ask_on_small_stack = [](Deep& deep) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 512 << 10);
    pthread_t thread{};
    const auto run = [](void* given) -> void* {
      Deep& d = *static_cast<Deep*>(given);
      d.status =
          d.server->answer({.method = "POST", .path = "/v1/chat/completions", .body = d.body})
              .status;
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, run, &deep), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
  };
  for (const std::size_t depth : {65U, 3'000U, 100'000U}) {
    for (const std::string& bracket : {std::string("["), std::string("{\"a\":")}) {
      std::string body = "{\"tools\":";
      for (std::size_t i = 0; i < depth; ++i) body += bracket;
      Deep deep{.server = server_.get(), .body = std::move(body)};
      const Stopwatch watch;
      ask_on_small_stack(deep);
      EXPECT_EQ(deep.status, 400) << depth;
      expect_below(("JSON of depth " + std::to_string(depth) + ", ms").c_str(), watch.elapsed_ms(),
                   50.0);
    }
  }
}

TEST_F(ServerReliability, NumbersAtTheirLimitsAreTakenOrRefused) {
  start({}, {.chat = true}, {.slots = 4, .max_queue = 64});
  const char* const values[] = {"-1",
                                "0",
                                "1",
                                "2147483647",
                                "2147483648",
                                "-2147483649",
                                "9223372036854775807",
                                "9223372036854775808",
                                "-9223372036854775809",
                                "1e308",
                                "-1e308",
                                "1e-320",
                                "\"1\"",
                                "null",
                                "true",
                                "[]",
                                "{}"};
  int asked = 0;
  int taken = 0;
  for (const Endpoint& endpoint : endpoints()) {
    const std::string good = good_body(endpoint);
    if (good.empty()) continue;
    for (const api::Parameter& field : endpoint.body()) {
      const bool number = field.type.find("number") != field.type.npos ||
                          field.type.find("integer") != field.type.npos;
      if (!number) continue;
      const std::string before = field.name == "max_tokens" ? good.substr(0, good.rfind(',')) + ","
                                                            : good.substr(0, good.size() - 1) + ",";
      for (const char* value : values) {
        const std::string body = before + "\"" + field.name + "\":" + value + "}";
        const int status = ask("POST", std::string(endpoint.path), body).status;
        EXPECT_TRUE(status < 500 || status == 501) << endpoint.path << " " << field.name << value;
        ++asked;
        taken += status == 200 ? 1 : 0;
      }
    }
  }
  std::printf("  %d values of numbers: %d taken, the others refused\n", asked, taken);
  EXPECT_GT(taken, 0);
  EXPECT_GT(asked, taken);
  EXPECT_EQ(runtime_->check_integrity(), "");
}

TEST_F(ServerReliability, ABodyThatNeverEndsCostsNoMoreThanItsLimit) {
  listen();
  const double before = memory_mib();
  double most = 0.0;
  for (int i = 0; i < times(3, 20); ++i) {
    SocketClient client = connect();
    client.send(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    const std::string chunk = "10000\r\n" + std::string(1 << 16, ' ') + "\r\n";
    for (int k = 0; k < 1024 && client.send(chunk); ++k) most = std::max(most, memory_mib());
    EXPECT_EQ(client.reply().status, 413);
  }
  expect_below("memory more while bodies of 64 MiB come, MiB", most - before, 20.0);
  expect_below("memory more afterwards, MiB", memory_mib() - before, 20.0);
  expect_alive();
}

// Each connection has a thread, and each thread may have a heap of its own.
TEST_F(ServerReliability, BodiesThatCameAtOnceLeaveNoMemoryBehind) {
  listen({.max_connections = 64});
  EXPECT_EQ(ask_over_socket("POST", "/v1/completions", asked(1, false)).status, 200);
  const double before = memory_mib();
  constexpr int kClients = 8;
  const std::string chunk = "10000\r\n" + std::string(1 << 16, ' ') + "\r\n";
  std::vector<SocketClient> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(connect());
    clients.back().send(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  }
  double most = 0.0;
  for (int k = 0; k < 255; ++k) {  // 64 KiB less than the limit
    for (SocketClient& client : clients) ASSERT_TRUE(client.send(chunk));
    most = std::max(most, memory_mib() - before);
  }
  for (SocketClient& client : clients) {
    client.send("0\r\n\r\n");
    EXPECT_EQ(client.reply().status, 400) << "spaces are no JSON";
  }
  std::printf("  memory while %d bodies of 16 MiB come, MiB                %10.2f\n", kClients,
              most);
  const double left = memory_mib() - before;
  std::printf("  memory more afterwards, MiB                        %10.2f, wanted: below 20\n",
              left);
  if (kCountsMemory) {
    EXPECT_GT(most, 64.0) << "they were there at once";
    EXPECT_LT(left, 20.0);
  }
  expect_alive();
}

TEST_F(ServerReliability, SlowClientsHoldNobodyUp) {
  listen({.read_timeout_s = times(2, 20)});
  std::vector<SocketClient> slow;
  const int n = times(100, 500);
  for (int i = 0; i < n; ++i) {
    slow.push_back(connect());
    ASSERT_TRUE(slow.back().connected());
    slow.back().send("G");
  }
  const Stopwatch all;
  double slowest = 0.0;
  for (int round = 0; round < 4; ++round) {
    for (SocketClient& client : slow) client.send(round % 2 == 0 ? "E" : "T");
    const Stopwatch watch;
    EXPECT_EQ(ask_over_socket("POST", "/v1/completions", asked(5, false)).status, 200);
    slowest = std::max(slowest, watch.elapsed_ms());
    std::this_thread::sleep_for(std::chrono::milliseconds(times(100, 10'000)));
  }
  expect_below("a request beside slow connections, ms", slowest, 2000.0);
  int ended = 0;
  for (SocketClient& client : slow) {
    (void)client.read(60'000);
    ended += client.closed() ? 1 : 0;
  }
  EXPECT_EQ(ended, n);
  std::printf("  %d slow connections ended after %.1f s\n", n, all.elapsed_ms() / 1000.0);
}

// One stream is not read: it takes no memory beyond the system's buffers, and is given up.
TEST_F(ServerReliability, AClientThatDoesNotReadIsGivenUpAndOthersGoOn) {
  n_ctx_ = 200'000;
  listen({.write_timeout_s = times(1, 20)}, {.chat = true, .step_us = 200},
         {.slots = 4, .max_queue = 4});
  const auto speed = [this] {
    const Stopwatch watch;
    EXPECT_EQ(ask_over_socket("POST", "/v1/completions", asked(400, true)).status, 200);
    return 400.0 / watch.elapsed_ms();
  };
  (void)speed();
  const double alone = speed();
  // What any other text takes of the machine: this one's client reads.
  double beside_a_reader = 0.0;
  {
    SocketClient client = connect();
    client.send(request(190'000, true));
    (void)client.read(5000, 1);
    std::atomic<bool> stop{false};
    std::thread reading([&] {
      while (!stop.load()) (void)client.read(20);
    });
    constexpr int kRounds = 5;
    for (int i = 0; i < kRounds; ++i) beside_a_reader += speed() / kRounds;
    stop.store(true);
    reading.join();
  }
  wait_until_free();
  SocketClient deaf(listener_->port(), /*receive_bytes=*/4096);
  deaf.send(request(190'000, true));
  (void)deaf.read(5000, 1);
  const double memory = memory_mib();
  double beside = 0.0;
  int rounds = 0;
  const Stopwatch watch;
  while (open_requests() > 0 && watch.elapsed_ms() < times(20'000, 120'000)) {
    beside += speed();
    ++rounds;
  }
  EXPECT_EQ(open_requests(), 0) << "it has been given up";
  beside /= std::max(rounds, 1);
  std::printf(
      "  given up after %.1f s; another stream's speed beside it: %.2f of that beside a client "
      "that "
      "reads, %.2f of that alone\n",
      watch.elapsed_ms() / 1000.0, beside / beside_a_reader, beside / alone);
  if (soaks()) {
    EXPECT_GE(beside, 0.95 * beside_a_reader) << "that it does not read costs nobody anything";
  }
  expect_below("memory more, MiB", memory_mib() - memory, 40.0);
}

TEST_F(ServerReliability, ClientsThatGoFreeTheirSlotsAndChangeNoOtherText) {
  listen({}, {.chat = true, .step_us = 500}, {.slots = 3, .max_queue = 64});
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
      clients.push_back(connect());
      clients.back().send(request(200, random() % 2 == 0, static_cast<std::int64_t>(i)));
      if (random() % 3 == 0) (void)clients.back().read(static_cast<std::int64_t>(random() % 20), 1);
    }
    clients.clear();
    const Stopwatch watch;
    while (open_requests() > 1 && watch.elapsed_ms() < 60'000) std::this_thread::yield();
    slowest = std::max(slowest, watch.elapsed_ms());
  }
  stop.store(true);
  bystander.join();
  std::printf("  %d clients went while another one read %d texts\n", n, rounds.load());
  expect_below("slots of 8 clients free again, ms at most", slowest, 500.0);
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
  expect_below("handles more", handles() - handles_after_a_tenth, 4.0);
  wait_until_free();
}

TEST_F(ServerReliability, AFullQueueAnswersAtOnce) {
  listen({}, {.chat = true, .step_us = 1000}, {.slots = 1, .max_queue = 2});
  std::vector<SocketClient> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(connect());
    waiting.back().send(request(200, false));
    while (open_requests() < i + 1) std::this_thread::yield();
  }
  double slowest = 0.0;
  for (int i = 0; i < times(20, 200) && open_requests() == 3; ++i) {
    const Stopwatch watch;
    const RawReply reply = ask_over_socket("POST", "/v1/completions", asked(1, false));
    if (open_requests() < 3) break;  // one has ended meanwhile
    EXPECT_EQ(reply.status, 429);
    EXPECT_NE(reply.head.find("Retry-After: "), std::string::npos);
    slowest = std::max(slowest, watch.elapsed_ms());
  }
  expect_below("429 of a full queue, ms", slowest, 100.0);
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
