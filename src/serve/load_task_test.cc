// The states of a load: what each transition does from each state in which it is allowed.
#include "serve/load_task.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "testing/chi_square.h"

namespace outrider {
namespace {

using State = LoadTask::State;

const Status kWhy = internal_error("on purpose");

LoadTask loaded() {
  LoadTask task;
  task.ask(1);
  (void)task.begin();
  task.succeed();
  return task;
}

TEST(LoadTask, ALoadThatSucceedsIsAtWork) {
  LoadTask task;
  EXPECT_EQ(task.model_state(), ModelState::kAbsent);
  task.ask(1);
  EXPECT_TRUE(task.waiting());
  EXPECT_EQ(task.model_state(), ModelState::kLoading);
  const LoadTask::Opening opening = task.begin();
  EXPECT_TRUE(task.is_current(opening));
  EXPECT_EQ(task.model_state(), ModelState::kLoading);
  EXPECT_TRUE(task.note_progress(0.5));
  EXPECT_FALSE(task.note_progress(0.505)) << "not worth telling";
  EXPECT_FALSE(task.note_progress(0.2));
  EXPECT_EQ(task.progress(), 0.505) << "it never goes back";
  EXPECT_FALSE(task.serving());
  task.succeed();
  EXPECT_EQ(task.model_state(), ModelState::kReady);
  EXPECT_TRUE(task.serving());
  EXPECT_EQ(task.progress(), 1.0);
  EXPECT_FALSE(opening.cancel->load());
  EXPECT_FALSE(task.is_current(opening)) << "it is over";
}

TEST(LoadTask, AWishThatFailsOrIsCalledOffLeavesTheOneAtWork) {
  LoadTask task = loaded();
  task.ask(2);
  (void)task.begin();
  task.fail(kWhy);
  EXPECT_EQ(task.model_state(), ModelState::kFailed);
  EXPECT_EQ(task.error().message(), kWhy.message());
  EXPECT_TRUE(task.serving());
  task.ask(3);
  EXPECT_TRUE(task.error().ok());
  const LoadTask::Opening opening = task.begin();
  task.fail(kWhy);
  EXPECT_TRUE(opening.cancel->load()) << "it ends soon";
  EXPECT_EQ(task.state(), State::kFailed);
  EXPECT_TRUE(task.serving());
}

TEST(LoadTask, ANewerWishEndsTheOpeningOfTheOneBefore) {
  LoadTask task;
  task.ask(1);
  const LoadTask::Opening first = task.begin();
  task.ask(2);
  EXPECT_TRUE(first.cancel->load());
  EXPECT_TRUE(task.waiting());
  const LoadTask::Opening second = task.begin();
  EXPECT_FALSE(task.is_current(first));
  EXPECT_TRUE(task.is_current(second));
  EXPECT_FALSE(second.cancel->load());
}

TEST(LoadTask, WhenWhatItIsForGoesWishesStayAndTheRestGoes) {
  LoadTask task = loaded();
  task.lose();
  EXPECT_EQ(task.state(), State::kAbsent);
  EXPECT_FALSE(task.serving());
  task = loaded();
  task.ask(2);
  task.lose();
  EXPECT_TRUE(task.waiting());
  EXPECT_FALSE(task.serving());
  const LoadTask::Opening opening = task.begin();
  task.lose();
  EXPECT_TRUE(task.is_current(opening));
  task.wait_again();
  EXPECT_TRUE(task.waiting());
  EXPECT_EQ(task.number(), 2U) << "it keeps its place";
  EXPECT_FALSE(task.is_current(opening));
}

TEST(LoadTask, OneThatIsLostHasFailedUnlessANewerWishStands) {
  LoadTask task = loaded();
  task.lose(kWhy);
  EXPECT_EQ(task.state(), State::kFailed);
  EXPECT_FALSE(task.serving());
  task = loaded();
  task.ask(2);
  task.lose(kWhy);
  EXPECT_TRUE(task.waiting());
  EXPECT_FALSE(task.serving());
  task.take_away();
  EXPECT_EQ(task.state(), State::kAbsent);
}

// Every transition that its state allows, at random.
TEST(LoadTask, IsSoundAfterAnyTransitions) {
  const std::uint64_t seed = testing::test_seed(5);
  const NoiseKey key = noise_key(seed, 1);
  LoadTask task;
  std::uint64_t number = 0;
  std::vector<LoadTask::Opening> openings;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    switch (noise_bits(key, i) % 11) {
      case 0:
        task.ask(++number);
        break;
      case 1:
        if (task.waiting()) openings.push_back(task.begin());
        break;
      case 2:
        if (task.opening()) (void)task.note_progress(0.001 * (i % 1000));
        break;
      case 3:
        if (!task.opening()) break;
        task.wait_again();
        openings.pop_back();  // its opener says so at its end
        break;
      case 4:
        if (task.opening()) task.succeed();
        break;
      case 5:
        if (task.pending()) task.fail(kWhy);
        break;
      case 6:  // a call-off, while another one may be at work
        if (task.opening()) task.fail(kWhy);
        break;
      case 7:
        task.lose();
        break;
      case 8:
        task.lose(kWhy);
        break;
      case 9:
        if (task.pending()) task.stop_serving();
        break;
      default:
        task.take_away();
    }
    ASSERT_EQ(task.check_integrity(), "") << "seed " << seed << ", transition " << i;
    int current = 0;
    for (const LoadTask::Opening& opening : openings) {
      current += task.is_current(opening) && !opening.cancel->load() ? 1 : 0;
    }
    ASSERT_LE(current, 1);
    if (openings.size() > 20) openings.erase(openings.begin());
  }
}

}  // namespace
}  // namespace outrider
