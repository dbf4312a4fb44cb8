#include "llama/probe/probe_truth.h"

#include <algorithm>
#include <utility>

namespace outrider::llama {

std::int32_t ProbeTruth::known(std::int32_t start, std::int32_t round) const {
  const std::map<std::int32_t, Stretch>::const_iterator at = stretches_.find(start);
  if (at == stretches_.end() || round != round_) return 0;
  return static_cast<std::int32_t>(at->second.rows.size());
}

Status ProbeTruth::take(std::int32_t start, std::int32_t round, std::int32_t n, bool again,
                        std::int64_t* repeated) {
  if (round != round_) stretches_.clear();
  round_ = round;
  Stretch& truth = stretches_[start];
  if (!again && truth.rows.size() >= static_cast<std::size_t>(n)) return Status();
  OUTRIDER_RETURN_IF_ERROR(walk_.go_to(start));
  const std::uint64_t which =
      64 * static_cast<std::uint64_t>(round) + static_cast<std::uint64_t>(start);
  const auto random = [&](std::size_t i) {
    return walk_.random_token(ProbeWalk::Stream::kStretch, i, which);
  };
  if (truth.tokens.empty()) truth.tokens.push_back(random(0));
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    ProbeRow row;
    OUTRIDER_RETURN_IF_ERROR(walk_.single_step(truth.tokens[i], &row));
    if (i < truth.rows.size()) {
      ++*repeated;
      if (!same_bits(row, truth.rows[i]) && difference_.empty()) {
        difference_ = describe_difference(row, truth.rows[i]);
      }
      continue;
    }
    // What the model would say, for the first half of the even rounds; random tokens elsewhere.
    const Token likely = static_cast<Token>(std::max_element(row.begin(), row.end()) - row.begin());
    const bool greedy = round % 2 == 0 && i < static_cast<std::size_t>(widest_) / 2;
    truth.tokens.push_back(greedy && walk_.is_usable(likely) ? likely : random(i + 1));
    truth.rows.push_back(std::move(row));
  }
  return Status();
}

}  // namespace outrider::llama
