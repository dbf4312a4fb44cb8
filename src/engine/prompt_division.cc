#include "engine/prompt_division.h"

#include <algorithm>
#include <cassert>

#include "engine/prompt_share.h"

namespace outrider {

std::int64_t cut_at_grid(Pos seen, std::int64_t missing, std::int64_t room, std::int64_t grid) {
  if (missing <= room) return missing;
  const std::int64_t end = (seen + room) / grid * grid;
  return end > seen ? end - seen : room;
}

std::vector<std::int64_t> PromptDivision::divide(std::span<const Unread> prompts,
                                                 std::int64_t allowance, std::int64_t grid) {
  assert(allowance >= 0 && grid >= 1);
  std::vector<std::int64_t> parts(prompts.size(), 0);
  if (prompts.empty()) return parts;
  std::vector<std::size_t> others;  // the shortest first, of equals the older
  for (std::size_t i = 1; i < prompts.size(); ++i) others.push_back(i);
  std::stable_sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
    return prompts[a].wanted < prompts[b].wanted;
  });
  std::int64_t left = allowance;
  const std::int64_t piece = std::min(PromptShare::kPiece, grid);
  owed_ += allowance;
  bool is_short = false;  // of a whole piece
  for (const std::size_t i : others) {
    const std::int64_t wanted = prompts[i].wanted;
    if (2 * wanted >= prompts[0].missing) break;
    const std::int64_t most = std::min(owed_ / 2, left);
    parts[i] = wanted <= most ? wanted : most / piece * piece;
    left -= parts[i];
    owed_ -= 2 * parts[i];
    is_short = parts[i] < wanted;
    if (is_short) break;
  }
  owed_ = is_short ? std::min(owed_, 2 * piece) : 0;
  // Cut at the grid, the oldest would lose much of its half to the others.
  const std::int64_t cuts = left < allowance ? 1 : grid;
  const auto give = [&](std::size_t i) {
    const Unread& prompt = prompts[i];
    const Pos seen = prompt.seen + static_cast<Pos>(parts[i]);
    const std::int64_t more = cut_at_grid(seen, prompt.missing - parts[i], left, cuts);
    parts[i] += more;
    left -= more;
  };
  give(0);
  for (const std::size_t i : others) give(i);
  return parts;
}

}  // namespace outrider
