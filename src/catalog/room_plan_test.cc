#include "catalog/room_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace outrider {
namespace {

// Whether there is room when those of the bits of `closed` are closed.
bool is_room(const RoomWanted& wanted, const std::vector<OpenModel>& open, unsigned closed) {
  std::uint64_t bytes = 0;
  int left = 0;
  for (std::size_t i = 0; i < open.size(); ++i) {
    if ((closed >> i & 1u) != 0) {
      bytes += open[i].bytes;
    } else {
      ++left;
    }
  }
  return (wanted.max_models == 0 || left < wanted.max_models) &&
         (!wanted.free || wanted.bytes <= *wanted.free + bytes);
}

unsigned bits_of(const std::vector<std::size_t>& indices) {
  unsigned bits = 0;
  for (const std::size_t i : indices) bits |= 1u << i;
  return bits;
}

void check_world(const RoomWanted& wanted, const std::vector<OpenModel>& open) {
  unsigned all_idle = 0;
  for (std::size_t i = 0; i < open.size(); ++i) all_idle |= open[i].idle ? 1u << i : 0u;
  const std::optional<std::vector<std::size_t>> plan = plan_room(wanted, open);
  if (!is_room(wanted, open, all_idle)) {
    const bool all = wanted.even_without && all_idle == (1u << open.size()) - 1;
    ASSERT_EQ(plan.has_value(), all);
    if (plan) {
      ASSERT_EQ(bits_of(*plan), all_idle);
    }
    return;
  }
  ASSERT_TRUE(plan);
  const unsigned closed = bits_of(*plan);
  ASSERT_EQ(closed & ~all_idle, 0u) << "one in use goes";
  ASSERT_TRUE(is_room(wanted, open, closed));
  for (const std::size_t i : *plan) {
    ASSERT_FALSE(is_room(wanted, open, closed & ~(1u << i))) << i << " need not go";
  }
  // Of models of one size, those used longest ago go.
  const bool same_size = std::all_of(
      open.begin(), open.end(), [&](const OpenModel& m) { return m.bytes == open.front().bytes; });
  if (!same_size) return;
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (!open[i].idle || (closed >> i & 1u) != 0) continue;
    for (const std::size_t gone : *plan) ASSERT_LT(open[gone].last_use, open[i].last_use);
  }
}

// Every world of up to four models of 0 to 3 bytes, in every order of use, each idle or not.
TEST(RoomPlan, InEverySmallWorldItClosesJustWhatIsNeededAndNothingThatIsUsed) {
  int worlds = 0;
  for (std::size_t n = 0; n <= 4; ++n) {
    std::vector<std::uint64_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    do {
      for (unsigned sizes = 0; sizes < 1u << (2 * n); ++sizes) {
        for (unsigned idle = 0; idle < 1u << n; ++idle) {
          std::vector<OpenModel> open(n);
          for (std::size_t i = 0; i < n; ++i) {
            open[i] = {.bytes = sizes >> (2 * i) & 3u,
                       .last_use = order[i],
                       .idle = (idle >> i & 1u) != 0};
          }
          for (const std::uint64_t bytes : {0u, 1u, 3u, 6u}) {
            for (const int free : {-1, 0, 1, 3}) {
              for (const std::int32_t most : {0, 1, 2}) {
                RoomWanted wanted{.bytes = bytes, .max_models = most, .even_without = most != 1};
                if (free >= 0) wanted.free = static_cast<std::uint64_t>(free);
                check_world(wanted, open);
                if (HasFatalFailure()) return;
                ++worlds;
              }
            }
          }
        }
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
  EXPECT_GT(worlds, 1'000'000);
}

TEST(RoomPlan, OneLargeModelGoesInsteadOfSmallOnesThatWouldNotDo) {
  const std::vector<OpenModel> open = {
      {.bytes = 1, .last_use = 1}, {.bytes = 8, .last_use = 2}, {.bytes = 2, .last_use = 3}};
  EXPECT_EQ(plan_room({.bytes = 7, .free = 0}, open), (std::vector<std::size_t>{1}));
}

}  // namespace
}  // namespace outrider
