// Which open models go to make room for another one.
//
// Idea. Those that nobody uses, the one that was used longest ago first, until there is room. Of
// these, whatever is not needed after all stays: with models of 1 (used longest ago), 8 and 2 GiB
// and 7 GiB wanted, only the one of 8 goes. Cost: n log n.
//
// Tested by room_plan_test.cc, over all small worlds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace outrider {

struct OpenModel {
  std::uint64_t bytes = 0;     // that closing it gives back; 0: not known
  std::uint64_t last_use = 0;  // a larger one is later; of no other model
  bool idle = true;
};

struct RoomWanted {
  std::uint64_t bytes = 0;            // 0: not known, there is always room for it
  std::optional<std::uint64_t> free;  // bytes, now; none: no limit
  std::int32_t max_models = 0;        // open at once, the new one included; 0: any number
  bool even_without = false;          // whether to close all and try when nothing is in use
};

// The indices in `open` of those to close, in that order; nothing when even closing all idle ones
// would not do.
std::optional<std::vector<std::size_t>> plan_room(const RoomWanted& wanted,
                                                  const std::vector<OpenModel>& open);

}  // namespace outrider
