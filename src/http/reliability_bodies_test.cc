// What comes as a body, at its limits, over sockets: reliability tests 6 to 8 and 12, on
// hand-written models, since it is the transport that is tested. (9 to 11 are tested where
// grammars, schemas and templates are read.)
#include <pthread.h>

#include <algorithm>
#include <random>
#include <span>

#include "api/completion_params.h"
#include "http/reliability_test.h"
#include "testing/broken_bodies.h"
#include "testing/chi_square.h"

namespace outrider::http {
namespace {

using json::Json;
using testing::RawReply;
using testing::SocketClient;

TEST_F(ServerReliability, MalformedBodiesAreErrorsOfTheClient) {
  listen({.max_connections = 64});
  const std::uint64_t seed = testing::test_seed(6);
  testing::BrokenBodies breaker(seed);
  std::vector<std::pair<std::string, std::string>> good;  // path, body
  for (const Endpoint& endpoint : endpoints()) {
    std::string body = good_body(endpoint);
    if (!body.empty()) good.emplace_back(endpoint.path, std::move(body));
  }
  for (const char* const path : {"/v1/chat/completions", "/v1/completions", "/v1/responses",
                                 "/v1/messages", "/completion", "/tokenize", "/apply-template",
                                 "/v1/messages/count_tokens", "/v1/responses/input_tokens"}) {
    EXPECT_TRUE(std::any_of(good.begin(), good.end(), [path](const auto& known) {
      return known.first == path;
    })) << path;
  }
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

// `depth` levels, all of them closed: nothing else is wrong with it as JSON.
std::string body_of_depth(std::size_t depth, const std::string& open, char close) {
  std::string body = "{\"tools\":";
  for (std::size_t i = 1; i < depth; ++i) body += open;
  return body + "1" + std::string(depth - 1, close) + "}";
}

// On a stack of 512 KiB, as small as threads have anywhere.
TEST_F(ServerReliability, DeepJsonIsRefusedAtOnce) {
  start();
  struct Deep {
    Server* server;
    std::string body;
    HttpReply reply;
  };
  const auto ask_on_small_stack = [](Deep& deep) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 512 << 10);
    pthread_t thread{};
    const auto run = [](void* given) -> void* {
      Deep& d = *static_cast<Deep*>(given);
      d.reply =
          d.server->answer({.method = "POST", .path = "/v1/chat/completions", .body = d.body});
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, run, &deep), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
  };
  // 64 levels are read, and refused for what they say.
  for (const std::size_t depth : {64U, 65U, 3'000U, 100'000U}) {
    for (const auto& [open, close] : {std::pair("[", ']'), std::pair("{\"a\":", '}')}) {
      Deep deep{.server = server_.get(), .body = body_of_depth(depth, open, close), .reply = {}};
      const Stopwatch watch;
      ask_on_small_stack(deep);
      EXPECT_EQ(deep.reply.status, 400) << depth;
      const bool too_deep =
          deep.reply.body.find("nested deeper than 64 levels") != std::string::npos;
      EXPECT_EQ(too_deep, depth > 64) << depth << ": " << deep.reply.body;
      print_figure(("JSON of depth " + std::to_string(depth) + ", ms").c_str(), watch.elapsed_ms(),
                   50.0);
    }
  }
}

// The endpoint's fields that are numbers. llama-server's endpoints list none: there they are ours,
// and those that it has more.
std::vector<std::string> number_fields(const Endpoint& endpoint) {
  std::vector<std::string> names;
  std::vector<api::Parameter> fields;
  if (endpoint.body != nullptr) {
    fields = endpoint.body();
  } else if (endpoint.path == "/completion") {
    const std::span<const api::Parameter> ours = api::completion_parameters();
    fields.assign(ours.begin(), ours.end());
    names = {"n_predict", "n_probs",  "n_keep",           "n_indent", "n_discard",
             "min_keep",  "id_slot",  "t_max_predict_ms", "n",        "repeat_last_n",
             "tfs_z",     "mirostat", "adaptive_target",  "n_cmpl"};
  }
  for (const api::Parameter& field : fields) {
    const bool number = field.type.find("number") != field.type.npos ||
                        field.type.find("integer") != field.type.npos;
    if (number) names.push_back(field.name);
  }
  return names;
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
    for (const std::string& field : number_fields(endpoint)) {
      const std::string before = field == "max_tokens" ? good.substr(0, good.rfind(',')) + ","
                                                       : good.substr(0, good.size() - 1) + ",";
      for (const char* value : values) {
        const std::string body = before + "\"" + field + "\":" + value + "}";
        const int status = ask("POST", std::string(endpoint.path), body).status;
        EXPECT_TRUE(status < 500 || status == 501) << endpoint.path << " " << field << value;
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

}  // namespace
}  // namespace outrider::http
