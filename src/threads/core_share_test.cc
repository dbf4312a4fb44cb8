#include "threads/core_share.h"

#include <gtest/gtest.h>

#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace outrider::threads {
namespace {

constexpr std::int64_t kEach = CoreShare::kEachNs;

// Looks a number of times, each a period after the last: in each the team computes `own` periods,
// all programs together `busy`.
class Periods {
 public:
  Periods(CoreShare& share, int n_cores) : share_(share) { times_.n_cores = n_cores; }
  void pass(double own, double busy, double periods = 1.0) {
    now_ns_ += static_cast<std::int64_t>(periods * kEach);
    own_ns_ += static_cast<std::int64_t>(own * kEach);
    times_.busy_ns += static_cast<std::int64_t>(busy * kEach);
    share_.look(now_ns_, own_ns_, times_);
  }
  std::int64_t now_ns() const { return now_ns_; }

 private:
  CoreShare& share_;
  CoreTimes times_;
  std::int64_t now_ns_ = 0;
  std::int64_t own_ns_ = 0;
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

TEST(CoreShareTest, AllAgainOnceTheOthersAreGone) {
  CoreShare share;
  Periods periods(share, 2);
  periods.pass(0, 0);
  periods.pass(1.0, 2.0);
  ASSERT_EQ(share.of(2), 1);
  EXPECT_FALSE(share.is_due(/*crowded=*/false, periods.now_ns() + kEach - 1));
  EXPECT_TRUE(share.is_due(/*crowded=*/false, periods.now_ns() + kEach))
      << "though one thread waits for none";
  periods.pass(1.0, 1.2);
  EXPECT_EQ(share.of(2), 2);
  EXPECT_FALSE(share.is_due(/*crowded=*/false, periods.now_ns() + kEach));
}

TEST(CoreShareTest, WhatLiesBeforeAPauseIsNotJudged) {
  CoreShare share;
  Periods periods(share, 2);
  periods.pass(0, 0);
  periods.pass(0.0, 200.0, /*periods=*/100.0);
  EXPECT_EQ(share.of(2), 2);
  periods.pass(1.0, 2.0);
  EXPECT_EQ(share.of(2), 1);
}

TEST(CoreShareTest, NorWhatAnotherThreadSaw) {
  CoreShare share;
  Periods periods(share, 2);
  periods.pass(0, 0);
  std::thread([&] { periods.pass(0.0, 2.0); }).join();
  EXPECT_EQ(share.of(2), 2);
}

TEST(CoreShareTest, WhereTheSystemDoesNotTellAllAreUsed) {
  CoreShare share;
  Periods periods(share, 2);
  periods.pass(0, 0);
  periods.pass(1.0, 2.0);
  ASSERT_EQ(share.of(2), 1);
  share.look(periods.now_ns() + kEach, 0, std::nullopt);
  EXPECT_EQ(share.of(2), 2);
}

#if defined(__linux__)
TEST(CoreTimesTest, AreOfTheCoresThatTheProcessMayUse) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const std::optional<CoreTimes> before = read_core_times();
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->n_cores, CPU_COUNT(&allowed));
  // Until what this thread computes is counted.
  std::optional<CoreTimes> after = before;
  while (after && after->busy_ns == before->busy_ns) after = read_core_times();
  ASSERT_TRUE(after.has_value());
  EXPECT_GT(after->busy_ns, before->busy_ns);
}
#endif

}  // namespace
}  // namespace outrider::threads
