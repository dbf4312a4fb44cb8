#include "tools/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "tools/report.h"

namespace outrider::tools {
namespace {

// Signals as a shell leaves them, whatever the test was started under; a child of a death test.
void reset_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, SIG_DFL);
}

// A watch with a made-up clock, and SIGWINCH to learn that all before it has been taken: of those
// that wait, the one with the least number is taken first, and SIGWINCH has the greatest.
struct Watched {
  Watched() {
    watch.on_other([this](int) { seen.fetch_add(1); });
  }
  void send(int number, double ms) {
    now.store(ms);
    kill(getpid(), number);
    const int before = seen.load();
    kill(getpid(), SIGWINCH);
    while (seen.load() == before) std::this_thread::yield();
  }

  std::atomic<double> now{0.0};
  std::atomic<int> seen{0};
  SignalWatch watch{{SIGWINCH}, [this] { return now.load(); }};
};

// What `number` tells twice, `again` being the second one's time. Exits with 7 where it lives on.
[[noreturn]] void twice(int first, int second, double again) {
  reset_signals();
  Watched watched;
  watched.send(first, 1000.0);
  if (!watched.watch.raised()) _exit(1);
  watched.send(second, again);
  _exit(watched.watch.exit_code() == kSignalBase + first ? 7 : 2);
}

TEST(SignalsDeath, ASignalThatIsSentTwiceAtOnceIsOneAsGnuTimeoutSendsIt) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    EXPECT_EXIT(twice(number, number, 1000.0), ::testing::ExitedWithCode(7), "") << number;
    EXPECT_EXIT(twice(number, number, 1499.0), ::testing::ExitedWithCode(7), "") << number;
    EXPECT_EXIT(twice(number, number, 1500.0), ::testing::KilledBySignal(number), "") << number;
  }
  // As systemd may send them; but who stops an answer and then ends all means both.
  EXPECT_EXIT(twice(SIGTERM, SIGHUP, 1001.0), ::testing::ExitedWithCode(7), "");
  EXPECT_EXIT(twice(SIGINT, SIGTERM, 1001.0), ::testing::KilledBySignal(SIGTERM), "");
}

TEST(SignalsDeath, SighupAsksForAnEndUnlessItIsIgnoredOrMeansSomethingElse) {
  const auto raised_by_hangup = [](bool is_ignored, bool is_other) {
    std::signal(SIGHUP, is_ignored ? SIG_IGN : SIG_DFL);
    std::vector<int> others = {SIGWINCH};
    if (is_other) others.push_back(SIGHUP);
    std::atomic<int> told{0};
    std::atomic<bool> all{false};
    SignalWatch watch(others);
    watch.on_other([&](int number) { number == SIGHUP ? (void)++told : all.store(true); });
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGWINCH);
    while (!all.load()) std::this_thread::yield();
    _exit(10 * told.load() + (watch.terminated() && watch.exit_code() == 129 ? 1 : 0));
  };
  EXPECT_EXIT(raised_by_hangup(false, false), ::testing::ExitedWithCode(1), "");
  EXPECT_EXIT(raised_by_hangup(true, false), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(raised_by_hangup(false, true), ::testing::ExitedWithCode(10), "");
}

}  // namespace
}  // namespace outrider::tools
