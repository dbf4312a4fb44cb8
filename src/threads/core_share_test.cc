#include "threads/core_share.h"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sched.h>
#endif

#include "base/clock.h"

namespace outrider::threads {
namespace {

constexpr std::int64_t kEach = CoreShare::kEachNs;

// Looks a number of times, each a period after the last: in each the team computes for `own`
// periods, all programs together for `busy`.
class Periods {
 public:
  Periods(CoreShare& share, int n_cores) : share_(share), n_cores_(n_cores) {}
  // After `pause_ns` without a run.
  void pass(double own, double busy, double periods = 1.0, std::int64_t pause_ns = 0) {
    now_ns_ += static_cast<std::int64_t>(periods * kEach);
    own_ns_ += static_cast<std::int64_t>(own * kEach);
    busy_ += busy;
    share_.look(now_ns_, now_ns_ - pause_ns, own_ns_, times());
  }
  void set_cores(int n) { n_cores_ = n; }
  std::int64_t now_ns() const { return now_ns_; }

 private:
  CoreTimes times() const {
    constexpr std::int64_t kTicks = 1000;  // a second
    return {.n_cores = n_cores_,
            .busy_ticks = static_cast<std::int64_t>(busy_ * kEach * 1e-9 * kTicks),
            .ticks_per_s = kTicks};
  }

  CoreShare& share_;
  int n_cores_;
  std::int64_t now_ns_ = 0;
  std::int64_t own_ns_ = 0;
  double busy_ = 0.0;
};

// Others were seen to take one of two cores.
class NarrowedShare : public ::testing::Test {
 protected:
  void SetUp() override {
    periods.pass(0, 0);
    periods.pass(1.0, 2.0);
    ASSERT_EQ(share.of(2), 1);
  }
  CoreShare share;
  Periods periods{share, 2};
};

TEST(CoreShareTest, AllThreadsAreUsedWhereNothingIsKnown) {
  CoreShare share;
  for (const int n : {1, 2, 3, 64}) EXPECT_EQ(share.of(n), n);
  EXPECT_FALSE(share.is_due(/*crowded=*/false, 10 * kEach)) << "nobody wants the cores";
  EXPECT_TRUE(share.is_due(/*crowded=*/true, 10 * kEach));
  Periods periods(share, 2);
  periods.pass(1.0, 2.0);
  EXPECT_EQ(share.of(2), 2) << "one look is none";
}

TEST(CoreShareTest, AsManyAsOthersLeave) {
  struct Case {
    int n_cores;
    double own, busy;  // cores
    int asked, used;
  };
  for (const Case& c : {Case{2, 2.0, 2.0, 2, 2}, Case{2, 1.0, 2.0, 2, 1}, Case{2, 1.6, 2.0, 2, 2},
                        Case{2, 1.4, 2.0, 2, 1}, Case{8, 4.0, 7.0, 8, 5}, Case{8, 4.0, 7.0, 4, 4},
                        Case{8, 4.0, 7.0, 6, 5}, Case{16, 15.5, 16.0, 16, 16}}) {
    CoreShare share;
    Periods periods(share, c.n_cores);
    periods.pass(0, 0);
    periods.pass(c.own, c.busy);
    EXPECT_EQ(share.of(c.asked), c.used) << c.n_cores << " cores, " << c.own << " of " << c.busy;
    EXPECT_EQ(share.of(1), 1);
  }
}

TEST(CoreShareTest, AtLeastHalfOfThoseAskedFor) {
  CoreShare share;
  Periods periods(share, 8);
  periods.pass(0, 0);
  periods.pass(1.0, 8.0);
  EXPECT_EQ(share.of(8), 4);
  EXPECT_EQ(share.of(7), 4);
  EXPECT_EQ(share.of(3), 2);
  EXPECT_EQ(share.of(2), 1);
}

TEST_F(NarrowedShare, AllAgainOnceTheOthersAreGone) {
  EXPECT_FALSE(share.is_due(/*crowded=*/false, periods.now_ns() + kEach - 1));
  EXPECT_TRUE(share.is_due(/*crowded=*/false, periods.now_ns() + kEach))
      << "though one thread waits for none";
  periods.pass(1.0, 1.2);
  EXPECT_EQ(share.of(2), 2);
  EXPECT_FALSE(share.is_due(/*crowded=*/false, periods.now_ns() + kEach));
}

TEST_F(NarrowedShare, BehindAPauseAllThreadsAreUsed) {
  periods.pass(1.0, 4.0, /*periods=*/2.0, CoreShare::kPauseNs / 2);
  EXPECT_EQ(share.of(2), 1) << "a short one is a part of the time";
  periods.pass(0.0, 200.0, /*periods=*/100.0, 99 * kEach);
  EXPECT_EQ(share.of(2), 2);
  periods.pass(1.0, 2.0);
  EXPECT_EQ(share.of(2), 1);
}

TEST(CoreShareTest, ALongRunIsNoPause) {
  CoreShare share;
  Periods periods(share, 2);
  periods.pass(0, 0);
  periods.pass(15.0, 30.0, /*periods=*/15.0);
  EXPECT_EQ(share.of(2), 1);
  periods.pass(15.0, 15.0, /*periods=*/15.0);
  EXPECT_EQ(share.of(2), 2);
}

TEST_F(NarrowedShare, OtherCoresAreNotComparedWithThoseBefore) {
  periods.set_cores(4);
  periods.pass(1.0, 100'000.0);
  EXPECT_EQ(share.of(4), 4);
  periods.pass(1.0, 4.0);
  EXPECT_EQ(share.of(4), 2);
}

TEST_F(NarrowedShare, WhereTheSystemDoesNotTellAllAreUsed) {
  share.look(periods.now_ns() + kEach, periods.now_ns(), 0, std::nullopt);
  EXPECT_EQ(share.of(2), 2);
}

#if defined(__linux__)
TEST(CoreTimesTest, AreOfTheCoresThatTheProcessMayUse) {
  const std::optional<CoreTimes> before = read_core_times();
  if (!before) GTEST_SKIP() << "/proc/stat does not tell of these cores";
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_EQ(before->n_cores, CPU_COUNT(&allowed));
  // Until what this thread computes is counted; some systems count nothing.
  std::optional<CoreTimes> after = before;
  const double begin = thread_ms();
  while (after && after->busy_ticks == before->busy_ticks) {
    if (thread_ms() - begin > 5000.0) GTEST_SKIP() << "/proc/stat stands still";
    after = read_core_times();
  }
  ASSERT_TRUE(after.has_value());
  EXPECT_GT(after->busy_ticks, before->busy_ticks);
}
#endif

}  // namespace
}  // namespace outrider::threads
