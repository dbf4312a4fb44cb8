// What the tests of the server at its limits share. Each prints its figures; with OUTRIDER_SOAK
// (./dev soak) the numbers are full, and amounts are held to their limits. Times never are, since
// they depend on what else the machine does. What they stand for is tested in another way: that a
// request is answered while what could hold it up is still there.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "http/endpoints.h"
#include "http/listening_test.h"
#include "testing/eventually.h"
#include "testing/sanitized.h"

namespace outrider::http {

// Sanitizers keep what is freed for a while.
inline constexpr bool kCountsMemory = !testing::kSanitized;

inline bool soaks() { return std::getenv("OUTRIDER_SOAK") != nullptr; }
inline int times(int quick, int full) { return soaks() ? full : quick; }

// Prints what was measured, and the goal.
inline void print_figure(const char* what, double value, double goal) {
  std::printf("  %-50s %10.2f, wanted: below %g\n", what, value, goal);
}

// Prints an amount (no time), which has to be within the limit where the numbers are full: in small
// ones what is kept once outweighs what grows.
inline void expect_below(const char* what, double value, double limit) {
  print_figure(what, value, limit);
  if (soaks()) {
    EXPECT_LT(value, limit) << what;
  }
}

inline double memory_mib() {
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return static_cast<double>(resident) * 4096.0 / (1 << 20);
}

class ServerReliability : public ListeningTest {
 protected:
  static std::string asked(std::int64_t tokens, bool stream, std::int64_t seed = 1) {
    return json::encode(
        json::Json{{"prompt", "abc"}, {"max_tokens", tokens}, {"stream", stream}, {"seed", seed}});
  }
  static std::string request(std::int64_t tokens, bool stream, std::int64_t seed = 1) {
    return testing::SocketClient::request("POST", "/v1/completions", asked(tokens, stream, seed));
  }
  // For a text without end.
  static std::string endless_request(bool stream, std::int64_t seed = 1) {
    json::Json body = endless(stream);
    body["seed"] = seed;
    return testing::SocketClient::request("POST", "/v1/completions", json::encode(body));
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
    EXPECT_TRUE(testing::eventually([this] { return open_requests() == 0; }));
    return watch.elapsed_ms();
  }
};

}  // namespace outrider::http
