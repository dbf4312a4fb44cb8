// What the tests of the server at its limits share. Each prints its figures; with OUTRIDER_SOAK
// (./dev soak) the numbers are full, and amounts are held to their limits, and so is the ratio of
// two speeds of the same run. Times never are, since they depend on what else the machine does.
// What they stand for is tested in another way: that a request is answered while what could hold it
// up is still there.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

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
  if (soaks()) {  // else no amount is held to its limit
    EXPECT_GT(resident, 0u) << "/proc/self/statm cannot be read";
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// What slow clients do: something again and again, with a pause behind each time, on a thread of
// its own, from its construction to stop().
class Repeated {
 public:
  Repeated(std::int64_t pause_ms, std::function<void()> what)
      : pause_(pause_ms), what_(std::move(what)), thread_([this] { repeat(); }) {}
  ~Repeated() { stop(); }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

  // How often it was done. Any thread.
  int done() const { return done_.load(); }

  // Returns when it is not being done any more, and never will be.
  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void repeat() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopped_) {
      lock.unlock();
      what_();
      ++done_;
      lock.lock();
      changed_.wait_for(lock, pause_, [this] { return stopped_; });
    }
  }

  const std::chrono::milliseconds pause_;
  const std::function<void()> what_;
  std::mutex mutex_;  // guards stopped_
  std::condition_variable changed_;
  bool stopped_ = false;
  std::atomic<int> done_{0};
  std::thread thread_;  // last: it uses the others
};

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
    // /rpc answers each JSON with 200, and an error in it.
    if (endpoint.method != "POST" || endpoint.path == "/rpc") return "";
    for (const char* text : {R"("messages":[{"role":"user","content":"abc"}])", R"("prompt":"abc")",
                             R"("input":"abc")"}) {
      std::string body = R"({"model":"fake",)" + std::string(text) + R"(,"max_tokens":1})";
      if (ask("POST", std::string(endpoint.path), body).status == 200) return body;
    }
    const std::string body = R"({"content":"abc"})";
    return ask("POST", std::string(endpoint.path), body).status == 200 ? body : "";
  }

  // Of /metrics; `sample`: its name, with its labels.
  double metric(const std::string& sample) {
    const std::string text = ask("GET", "/metrics").body;
    const std::size_t at = text.find("\n" + sample + " ");
    EXPECT_NE(at, std::string::npos) << sample;
    return at == std::string::npos ? 0.0 : std::stod(text.substr(at + sample.size() + 2));
  }

  // Milliseconds until nothing runs or waits.
  double wait_until_free() const {
    const Stopwatch watch;
    EXPECT_TRUE(testing::eventually([this] { return open_requests() == 0; }));
    return watch.elapsed_ms();
  }
};

}  // namespace outrider::http
