// Clients that read nothing of what they asked for, or next to nothing: reliability test 15. A text
// without end is streamed to one, while another client's answers are timed. What the server holds
// for it stays small, and then its completion is cancelled, its slot is free, and log and metrics
// count it.
//
// The fake model takes no time, so one client's text would be some ten thousand tokens a second. In
// a soak, where the slow client is beside the others for a minute, a step takes a millisecond at
// least: it is compared what the server does with that time, and what waits for the client is what
// waits at a real model's speed.
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "http/reliability_test.h"
#include "testing/step_gate.h"

namespace outrider::http {
namespace {

using json::Json;
using testing::RawReply;
using testing::SocketClient;

constexpr std::int64_t kLongMs = 60'000;  // for what comes, however slow the machine is
// The system's buffers of both ends together, with room: of the server's listener.cc tells.
constexpr std::size_t kMostUnread = 512 << 10;

// The lines of an access log. Any thread.
class LogLines : public LineSink {
 public:
  void write(std::string_view line) override {
    const json::Parsed parsed = json::parse(line);
    const std::lock_guard<std::mutex> lock(mutex_);
    lines_.push_back(parsed.ok() ? *parsed.value : Json());
  }
  // Those of completions that had no client any more.
  std::vector<Json> cancelled() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Json> found;
    for (const Json& line : lines_) {
      if (line.is_object() && line.contains("finish") && line["finish"] == "cancelled") {
        found.push_back(line);
      }
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Json> lines_;
};

class ServerReliabilityReaders : public ServerReliability {
 protected:
  ~ServerReliabilityReaders() override {
    gate_.open();
    end();  // the log is gone behind this
  }

  void listen_logged() {
    n_ctx_ = 1024;
    gate_.open();
    log_ = &log_lines_;
    // In a soak longer than the minute that the slow client is beside the others.
    listen({.write_timeout_s = times(1, 90)}, {.chat = true, .on_evaluated = slow_steps()},
           {.slots = 4, .max_queue = 4});
  }

  // Tokens a millisecond of a client whose answers come one behind the other: a few of them, or as
  // many as come within `soak_ms`.
  double speed(double soak_ms) const {
    constexpr std::int64_t kTokens = 400;
    std::int64_t tokens = 0;
    const Stopwatch watch;
    while (soaks() ? watch.elapsed_ms() < soak_ms : tokens < 5 * kTokens) {
      const RawReply reply = ask_over_socket("POST", "/v1/completions", asked(kTokens, true));
      EXPECT_EQ(reply.status, 200);
      EXPECT_NE(reply.body.find("data: [DONE]"), std::string::npos) << "it comes whole";
      tokens += kTokens;
    }
    return static_cast<double>(tokens) / watch.elapsed_ms();
  }

  // What any other text takes of the machine: this one's client reads all that comes.
  double speed_beside_a_reader() {
    SocketClient client = connect();
    client.send(endless_request(true));
    EXPECT_NE(client.read(kLongMs, 1), "");
    const Repeated reading(0, [&client] { (void)client.read(20); });
    return speed(20'000.0);
  }

  // Until its completion has been cancelled, and no longer. A step for each look: what the text
  // goes on to say fills no memory, however long this takes.
  void wait_until_given_up() {
    gate_.close();
    EXPECT_TRUE(testing::eventually([this] {
      gate_.let(1);
      return open_requests() == 0;
    })) << "it has been given up";
    gate_.open();
  }

  // A client that reads a byte with such a pause behind each; 0: none.
  void expect_given_up(std::int64_t pause_ms) {
    const double alone = speed(20'000.0);
    const double beside_a_reader = speed_beside_a_reader();
    EXPECT_TRUE(testing::eventually([this] { return log_lines_.cancelled().size() == 1; }));
    SocketClient client(listener_->port(), /*receive_bytes=*/4096);
    client.send(endless_request(true));
    std::string got = client.read(kLongMs, 1);
    std::optional<Repeated> reading;
    if (pause_ms > 0) reading.emplace(pause_ms, [&] { got += client.read_some(0, 1); });
    const double memory = memory_mib();
    const double beside = speed(60'000.0);
    const double ratio = beside / beside_a_reader;
    std::printf("  %-50s %10.2f, wanted: above 0.95\n",
                "another stream's speed, of that beside a reader", ratio);
    std::printf("  %-50s %10.2f\n", "the same, of that alone", beside / alone);
    expect_below("memory more beside it, MiB", memory_mib() - memory, 40.0);
    if (soaks()) {
      EXPECT_GT(ratio, 0.95);
      EXPECT_EQ(open_requests(), 1) << "it was there all the time";
    }
    wait_until_given_up();
    expect_below("memory more when it is given up, MiB", memory_mib() - memory, 40.0);
    if (reading) std::printf("  %d bytes were read one by one\n", reading->done());
    reading.reset();
    got += client.read(kLongMs);
    expect_cut_off(client, got);
  }

  // `got`: all that the client was sent.
  void expect_cut_off(const SocketClient& client, const std::string& got) {
    EXPECT_TRUE(client.closed());
    EXPECT_LT(got.size(), kMostUnread);
    EXPECT_EQ(got.find("data: [DONE]"), std::string::npos) << "it had no end";
    EXPECT_FALSE(got.ends_with("\r\n0\r\n\r\n")) << "it can tell that something is missing";
    ASSERT_TRUE(testing::eventually([this] { return log_lines_.cancelled().size() == 2; }));
    const Json line = log_lines_.cancelled().back();
    EXPECT_EQ(line["path"], "/v1/completions");
    EXPECT_EQ(line["status"], 200);
    EXPECT_GT(line["completion_tokens"], 0);
    EXPECT_EQ(metric(R"(outrider:requests_running{model="fake"})"), 0.0);
    EXPECT_EQ(metric(R"(outrider:completions_finished_total{model="fake"})"),
              metric(R"(outrider:completions_started_total{model="fake"})"));
    EXPECT_EQ(ask_over_socket("POST", "/v1/completions", asked(5, false)).status, 200);
    EXPECT_EQ(runtime_->check_integrity(), "");
  }

 private:
  std::function<void()> slow_steps() const {
    return [held = gate_.hold()] {
      const Stopwatch step;
      if (soaks()) (void)testing::eventually([&step] { return step.elapsed_ms() >= 1.0; });
      held();
    };
  }

  LogLines log_lines_;
  testing::StepGate gate_;
};

TEST_F(ServerReliabilityReaders, AClientThatReadsNothingIsGivenUpAndOthersGoOn) {
  listen_logged();
  expect_given_up(0);
}

// A few bytes a second: of so little room the system tells the server nothing.
TEST_F(ServerReliabilityReaders, AClientThatReadsTooSlowlyIsGivenUpAndOthersGoOn) {
  listen_logged();
  expect_given_up(times(50, 250));
}

}  // namespace
}  // namespace outrider::http
