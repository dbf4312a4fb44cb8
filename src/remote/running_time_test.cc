// Time in which this process was stopped is none of the child's, with a clock of the test's.
#include "remote/running_time.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "remote/thread_host_test.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(RunningTime, CountsAtMostASecondBetweenTwoLooks) {
  RunningTime::Clock::time_point now{};
  RunningTime time([&now] { return now; });
  EXPECT_EQ(time.look(), milliseconds(0));
  now += milliseconds(2);
  EXPECT_EQ(time.look(), milliseconds(2));
  now += milliseconds(999);
  EXPECT_EQ(time.look(), milliseconds(1'001)) << "a busy machine's";
  now += minutes(10);
  EXPECT_EQ(time.look(), milliseconds(2'001)) << "the process was stopped";
  now += milliseconds(1);
  EXPECT_EQ(time.look(), milliseconds(2'002));
}

// A clock that stands until it is told otherwise, and knows how often it was asked.
class TestClock {
 public:
  RunningTime::Now now() {
    return [this] {
      looks_.fetch_add(1);
      return RunningTime::Clock::time_point(milliseconds(ms_.fetch_add(step_ms_.load())));
    };
  }
  void jump(milliseconds by) { ms_.fetch_add(by.count()); }
  // With every look from now on.
  void advance_by(milliseconds step) { step_ms_.store(step.count()); }
  // Until the one that waits has looked again, or waits no more.
  void wait_for_looks() const {
    const int before = looks_.load();
    while (looks_.load() < before + 4 && !over_.load()) std::this_thread::yield();
  }
  void end() { over_.store(true); }

 private:
  std::atomic<int> looks_{0};
  std::atomic<std::int64_t> ms_{0};
  std::atomic<std::int64_t> step_ms_{0};
  std::atomic<bool> over_{false};
};

class StoppedProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<RemoteModel>> opened = host_.open();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    model_ = std::move(*opened);
    model_->set_clock(clock_.now());
    model_->set_interrupt(&flag_);
  }
  Status evaluate() {
    const TokenTree root(1);
    const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
    Status status = model_->evaluate({&item, 1});
    clock_.end();
    return status;
  }
  // The process is stopped for so long while the child computes.
  void stop_for(milliseconds time) {
    clock_.wait_for_looks();
    clock_.jump(time);
    clock_.wait_for_looks();
  }

  void stay_deaf() {
    flag_.store(true);
    host_.fake().wait_for_flag();
    deaf_.wait(true);
  }
  void end_deafness() {
    deaf_.store(false);
    deaf_.notify_all();
  }

  TestClock clock_;
  std::atomic<bool> flag_{false};
  std::atomic<bool> deaf_{true};
  ThreadHost host_;  // with workers
  std::unique_ptr<RemoteModel> model_;
};

TEST_F(StoppedProcess, TimeInWhichItWasStoppedIsNoSilenceOfTheHost) {
  model_->set_silence_patience(minutes(1));
  host_.fake().on_evaluate([this] { stop_for(minutes(10)); });
  const Status status = evaluate();
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(StoppedProcess, TimeInWhichItWasStoppedIsNoneThatTheHostTookToStop) {
  model_->set_stop_patience(seconds(3));
  model_->set_silence_patience(milliseconds(0));
  host_.fake().on_evaluate([this] {
    flag_.store(true);
    host_.fake().wait_for_flag();
    stop_for(seconds(30));
  });
  const Status status = evaluate();
  EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.message();
  EXPECT_TRUE(model_->health().ok());
}

TEST_F(StoppedProcess, AHostThatIsSilentWhileTheProcessRunsIsGivenUp) {
  model_->set_silence_patience(minutes(1));
  host_.fake().on_evaluate([this] { deaf_.wait(true); });
  clock_.advance_by(milliseconds(500));
  const Status status = evaluate();
  EXPECT_NE(status.message().find("said nothing for 60000 ms"), std::string::npos)
      << status.message();
  end_deafness();
}

// How long a call took decides how long the host on workers may go on when it is to stop.
TEST_F(StoppedProcess, ACallDuringWhichItWasStoppedWasNotALongOne) {
  model_->set_silence_patience(milliseconds(0));
  host_.fake().on_evaluate([this] { stop_for(minutes(10)); });
  ASSERT_TRUE(evaluate().ok());
  ASSERT_TRUE(model_->commit(0, {}).ok());
  // Counted from where the host has the call: how long that takes depends on the machine's load.
  std::atomic<RunningTime::Clock::time_point> before{};
  host_.fake().on_evaluate([this, &before] {
    before = clock_.now()();
    clock_.advance_by(milliseconds(500));
    stay_deaf();
  });
  const Status status = evaluate();
  EXPECT_EQ(status.code(), StatusCode::kInternal) << status.message();
  EXPECT_LT(clock_.now()() - before.load(), minutes(1)) << "3 s are its least";
  end_deafness();
}

}  // namespace
}  // namespace outrider
