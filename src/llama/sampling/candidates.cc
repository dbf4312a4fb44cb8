#include "llama/sampling/candidates.h"

#include <algorithm>
#include <functional>

#include "base/types.h"

namespace outrider::llama {

void CandidateScan::begin(std::span<const float> row) {
  row_ = row;
  maxima_.clear();
  for (std::size_t begin = 0; begin < row.size(); begin += kBlock) {
    constexpr std::size_t kLanes = 16;
    float lanes[kLanes];
    std::fill(lanes, lanes + kLanes, kRuledOut);
    const std::size_t end = std::min(begin + kBlock, row.size());
    std::size_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (std::size_t k = 0; k < kLanes; ++k) {
        lanes[k] = row[i + k] > lanes[k] ? row[i + k] : lanes[k];
      }
    }
    for (; i < end; ++i) lanes[0] = row[i] > lanes[0] ? row[i] : lanes[0];
    maxima_.push_back(*std::max_element(lanes, lanes + kLanes));
  }
}

float CandidateScan::best() const {
  return maxima_.empty() ? kRuledOut : *std::max_element(maxima_.begin(), maxima_.end());
}

float CandidateScan::reached_by(std::size_t n) {
  if (n * 2 > row_.size() / kBlock) return kRuledOut;
  sorted_ = maxima_;
  const std::vector<float>::iterator nth = sorted_.begin() + static_cast<std::ptrdiff_t>(n - 1);
  std::nth_element(sorted_.begin(), nth, sorted_.end(), std::greater<float>());
  return *nth;
}

void CandidateScan::collect(float threshold, std::vector<llama_token_data>& out) const {
  for (std::size_t block = 0; block < maxima_.size(); ++block) {
    if (!(maxima_[block] >= threshold)) continue;
    const std::size_t end = std::min((block + 1) * kBlock, row_.size());
    for (std::size_t i = block * kBlock; i < end; ++i) {
      if (!(row_[i] >= threshold)) continue;
      out.push_back({.id = static_cast<llama_token>(i), .logit = row_[i], .p = 0.0f});
    }
  }
}

}  // namespace outrider::llama
