#include "threads/team.h"

#include <gtest/gtest.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "threads/teams.h"

namespace outrider::threads {
namespace {

// Runs a lambda.
template <typename Work>
void run(Team& team, int n, Work&& work) {
  team.run(
      n, [](void* data) { (*static_cast<std::remove_reference_t<Work>*>(data))(); }, &work);
}

// The threads of a team by their place in it, so that one can wait until the others have stopped to
// spin and sleep. Where that cannot be seen nobody waits: the tests hold either way.
class Sleepers {
 public:
#if defined(__linux__)
  void note(int place) {
    ids_.at(static_cast<std::size_t>(place)) = static_cast<int>(syscall(SYS_gettid));
  }
  // Until it sleeps. It must be noted, or come to that, and have nothing to do but wait.
  void wait_until_asleep(int place) const {
    const std::atomic<int>& id = ids_.at(static_cast<std::size_t>(place));
    while (id == 0 || !is_asleep(id)) std::this_thread::yield();
  }
#else
  void note(int /*place*/) {}
  void wait_until_asleep(int /*place*/) const {}
#endif

 private:
  static bool is_asleep(int id) {
    std::string line;
    std::ifstream file("/proc/self/task/" + std::to_string(id) + "/stat");
    std::getline(file, line);
    const std::size_t name_end = line.rfind(") ");
    return name_end != std::string::npos && line[name_end + 2] == 'S';
  }

  std::array<std::atomic<int>, 4> ids_{};
};

TEST(TeamTest, EachThreadOfARunHasANumberOfItsOwn) {
  Team team;
  for (const int n : {1, 2, 7, 3, 1, 8, 8, 2}) {  // growing, shrinking, the same again
    std::array<std::atomic<int>, 8> calls{};
    std::atomic<int> wrong_counts{0};
    run(team, n, [&] {
      const Team::Member& here = *Team::here();
      ++calls.at(static_cast<std::size_t>(here.index));
      if (here.n != n) ++wrong_counts;
    });
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(calls.at(static_cast<std::size_t>(i)).load(), i < n ? 1 : 0) << i << " of " << n;
    }
    EXPECT_EQ(wrong_counts.load(), 0);
  }
}

TEST(TeamTest, TheCallersThreadIsNumber0AndOnlyThere) {
  Team team;
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> wrong{0};
  EXPECT_EQ(Team::here(), nullptr);
  run(team, 4, [&] {
    if ((std::this_thread::get_id() == caller) != (Team::here()->index == 0)) ++wrong;
  });
  EXPECT_EQ(Team::here(), nullptr);
  EXPECT_EQ(wrong.load(), 0);
}

// Every thread writes, all meet, every thread reads what the others wrote: with plain memory, so
// that the thread sanitizer sees whether a meeting orders it.
TEST(TeamTest, WhatWasWrittenBeforeAMeetingIsReadAfterIt) {
  Team team;
  for (const int n : {2, 3, 5}) {
    std::vector<int> written(static_cast<std::size_t>(n), 0);
    std::atomic<int> wrong{0};
    run(team, n, [&] {
      const auto index = static_cast<std::size_t>(Team::here()->index);
      for (int round = 1; round <= 300; ++round) {
        written[index] = round;
        Team::meet();
        if (std::accumulate(written.begin(), written.end(), 0) != n * round) ++wrong;
        Team::meet();
      }
    });
    EXPECT_EQ(wrong.load(), 0) << n << " threads";
  }
}

TEST(TeamTest, AMeetingWaitsForAThreadThatIsLongOnItsWay) {
  Team team;
  std::array<bool, 3> arrived{};
  std::atomic<int> missed{0};
  for (int late = 0; late < 3; ++late) {
    arrived.fill(false);
    Sleepers others;
    run(team, 3, [&] {
      const int index = Team::here()->index;
      others.note(index);
      for (int i = 0; i < 3; ++i) {
        if (index == late && i != late) others.wait_until_asleep(i);
      }
      arrived.at(static_cast<std::size_t>(index)) = true;
      Team::meet();
      if (!(arrived[0] && arrived[1] && arrived[2])) ++missed;
    });
  }
  EXPECT_EQ(missed.load(), 0);
}

TEST(TeamTest, RunsFollowEachOtherWithoutLosingOne) {
  Team team;
  constexpr int kRuns = 3000;
  std::atomic<int> calls{0};
  Sleepers workers;
  int expected = 0;
  for (int i = 0; i < kRuns; ++i) {
    // Wider and narrower ones in any order: threads that a run has no part for wait elsewhere.
    const int n = i < 4 ? 1 + i : 1 + static_cast<int>(mix64(static_cast<std::uint64_t>(i)) % 4);
    expected += n;
    // Now and then so late that the others have gone to sleep.
    for (int place = 1; i % 1000 == 999 && place < 4; ++place) workers.wait_until_asleep(place);
    run(team, n, [&] {
      ++calls;
      workers.note(Team::here()->index);
    });
  }
  EXPECT_EQ(calls.load(), expected);
}

TEST(TeamTest, ARunWithinARunIsTheCallersAlone) {
  Team team;
  Team other;
  std::atomic<int> inner{0};
  std::atomic<int> wrong{0};
  run(team, 3, [&] {
    const int outer_index = Team::here()->index;
    run(other, 4, [&] {
      ++inner;
      if (Team::here()->n != 1 || Team::here()->index != 0) ++wrong;
      Team::meet();
    });
    if (Team::here()->n != 3 || Team::here()->index != outer_index) ++wrong;
    Team::meet();
  });
  EXPECT_EQ(inner.load(), 3);
  EXPECT_EQ(wrong.load(), 0);
}

TEST(TeamTest, AnotherThreadMayRunItNext) {
  Team team;
  std::atomic<int> calls{0};
  for (int i = 0; i < 3; ++i) {
    std::thread([&] { run(team, 3, [&] { ++calls; }); }).join();
  }
  EXPECT_EQ(calls.load(), 9);
}

// Else a caller that samples under a grammar between its runs takes itself for another program.
TEST(TeamTest, WhatACallerComputesBetweenItsRunsIsTheTeamsOwnAndAnotherThreadsIsNot) {
  Team team;
  // Runs nothing, on the caller alone; then what the caller has computed in between: ns.
  const auto between_two_runs = [&team] {
    run(team, 1, [] {});
    const double begin = thread_ms();
    double ms = 0.0;
    while (ms < 20.0) ms = thread_ms() - begin;
    run(team, 1, [] {});
    return static_cast<std::int64_t>(1e6 * ms);
  };
  const std::int64_t first = between_two_runs();
  const std::int64_t own = team.computed_ns();
  EXPECT_GE(own, first);

  // Another thread, which computes before its first run, too.
  std::thread([&] {
    const double begin = thread_ms();
    while (thread_ms() - begin < 20.0) continue;
    run(team, 1, [] {});
    EXPECT_LT(team.computed_ns() - own, 20'000'000);
    EXPECT_GE(between_two_runs(), 20'000'000);
  }).join();
  EXPECT_GE(team.computed_ns() - own, 20'000'000);
}

TEST(PatienceTest, SpinsLessWhereThatDidNotHelpAndMoreWhereItWouldHave) {
  Patience patience;
  EXPECT_EQ(patience.spin_ns(), Patience::kMostNs);
  for (int i = 0; i < 20; ++i) patience.learn(3'000'000, 1);
  EXPECT_EQ(patience.spin_ns(), Patience::kLeastNs);
  patience.learn(Patience::kMostNs - 1, 1);  // slept, but spinning at its longest would have helped
  EXPECT_EQ(patience.spin_ns(), 2 * Patience::kLeastNs);
  for (int i = 0; i < 20; ++i) patience.learn(100, 1);
  EXPECT_EQ(patience.spin_ns(), Patience::kMostNs);
}

TEST(CrowdingTest, IsWhereAThreadWaitedForItsCoreSinceTheLastLook) {
  constexpr std::int64_t kMs = 1'000'000;
  Crowding crowding;
  crowding.judge(100 * kMs, 50 * kMs);  // before that: nobody knows
  EXPECT_FALSE(crowding.crowded());
  crowding.judge(120 * kMs, 50 * kMs);
  EXPECT_FALSE(crowding.crowded());
  crowding.judge(140 * kMs, 60 * kMs);
  EXPECT_TRUE(crowding.crowded());
  crowding.judge(160 * kMs, 62 * kMs);
  EXPECT_TRUE(crowding.crowded());
  crowding.judge(180 * kMs, 62 * kMs + kMs / 2);
  EXPECT_FALSE(crowding.crowded());
}

TEST(CrowdingTest, AnotherThreadBeginsWithoutKnowing) {
  constexpr std::int64_t kMs = 1'000'000;
  Crowding crowding;
  crowding.look(1 * kMs);
  crowding.judge(100 * kMs, 0);
  crowding.judge(120 * kMs, 10 * kMs);
  EXPECT_TRUE(crowding.crowded());
  std::thread([&] { crowding.look(121 * kMs); }).join();
  EXPECT_FALSE(crowding.crowded());
}

TEST(TeamsTest, AThreadGetsTheTeamThatItHadLast) {
  const std::shared_ptr<Teams> teams = Teams::shared();
  const Team* mine = nullptr;
  const Team* other = nullptr;
  {
    const Teams::Borrowed a(*teams);
    mine = &*a;
    std::thread([&] {
      const Teams::Borrowed b(*teams);
      other = &*b;
    }).join();
  }
  EXPECT_NE(mine, other);
  std::thread([&] {  // has both, and gives the other one back last
    auto c = std::make_unique<Teams::Borrowed>(*teams);
    auto d = std::make_unique<Teams::Borrowed>(*teams);
    if (&**c == other) std::swap(c, d);
    c.reset();
  })
      .join();
  const Teams::Borrowed again(*teams);
  EXPECT_EQ(&*again, mine);
}

TEST(TeamsTest, OneAfterTheOtherShareATeamAndTwoAtOnceDoNot) {
  const std::shared_ptr<Teams> teams = Teams::shared();
  EXPECT_EQ(Teams::shared(), teams);
  const Team* first = nullptr;
  {
    const Teams::Borrowed a(*teams);
    first = &*a;
    const Teams::Borrowed b(*teams);
    EXPECT_NE(&*b, first);
  }
  const Teams::Borrowed c(*teams);
  EXPECT_EQ(&*c, first);  // given back last
}

}  // namespace
}  // namespace outrider::threads
