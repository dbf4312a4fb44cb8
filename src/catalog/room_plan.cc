#include "catalog/room_plan.h"

#include <algorithm>

namespace outrider {
namespace {

// Whether there is room once `closed` models with `bytes` together are closed.
bool enough(const RoomWanted& wanted, std::size_t n_open, std::size_t closed, std::uint64_t bytes) {
  const std::size_t left = n_open - closed;
  if (wanted.max_models > 0 && left >= static_cast<std::size_t>(wanted.max_models)) return false;
  if (!wanted.free || wanted.bytes <= *wanted.free) return true;
  return wanted.bytes - *wanted.free <= bytes;
}

}  // namespace

std::optional<std::vector<std::size_t>> plan_room(const RoomWanted& wanted,
                                                  const std::vector<OpenModel>& open) {
  std::vector<std::size_t> idle;
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (open[i].idle) idle.push_back(i);
  }
  std::sort(idle.begin(), idle.end(),
            [&open](std::size_t a, std::size_t b) { return open[a].last_use < open[b].last_use; });
  std::vector<std::size_t> closed;
  std::uint64_t bytes = 0;
  while (!enough(wanted, open.size(), closed.size(), bytes)) {
    if (closed.size() == idle.size()) {
      if (wanted.even_without && idle.size() == open.size()) return closed;
      return std::nullopt;
    }
    closed.push_back(idle[closed.size()]);
    bytes += open[closed.back()].bytes;
  }
  // The last one was needed; of those before, the ones used latest stay if they can.
  for (std::size_t i = closed.size(); i-- > 0;) {
    const std::uint64_t without = bytes - open[closed[i]].bytes;
    if (!enough(wanted, open.size(), closed.size() - 1, without)) continue;
    bytes = without;
    closed.erase(closed.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return closed;
}

}  // namespace outrider
