#include "plan/cost_curve.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

// Half of a change of the machine is followed in 6 passes, of a width's own shape in 23.
constexpr double kLevelRate = 0.1;
constexpr double kShapeRate = 0.03;
// What was measured with care counts as so many passes.
constexpr std::int64_t kMeasured = 8;
// How far one pass may be off and still count in full: a quarter more, or a fifth less.
constexpr double kClip = 0.22;
constexpr double kFirstClip = 0.7;   // of a width's first: twice, or half
constexpr double kBeyondClip = 1.4;  // where it is the widest so far: four times, or a quarter
// Of a pass, what building its graph can have taken at most.
constexpr double kMostRebuild = 0.5;

}  // namespace

CostCurve::CostCurve(std::span<const CostPoint> measured, double rebuild_ms) {
  for (const CostPoint& point : measured) {
    if (point.width < 1 || point.width > kMaxWidth || !(point.ms > 0.0)) continue;
    if (!std::isfinite(point.ms)) continue;
    if (n_noted_ == 0) level_ = std::log(point.ms);
    entries_[static_cast<std::size_t>(point.width)] = {.shape = std::log(point.ms) - level_,
                                                       .n = kMeasured};
    largest_ = std::max(largest_, point.width);
    smallest_ = smallest_ == 0 ? point.width : std::min(smallest_, point.width);
    ++n_noted_;
    ++n_widths_;
  }
  const bool possible = n_noted_ > 0 && rebuild_ms > 0.0 && std::isfinite(rebuild_ms);
  if (possible) rebuild_ = rebuild_ms / std::exp(level_);
}

void CostCurve::note(std::int32_t width, double ms) {
  const double rebuilt_ms = rebuild_ms(width);
  graph_width_ = width;
  if (width < 1 || width > kMaxWidth || !(ms > 0.0) || !std::isfinite(ms)) return;
  ms -= std::min(rebuilt_ms, kMostRebuild * ms);
  Entry& entry = entries_[static_cast<std::size_t>(width)];
  const double time = std::log(ms);
  if (n_noted_ == 0) level_ = time;
  if (entry.n == 0) return note_first(width, time);
  const bool begins_to_compare = entry.n == 1 && width > smallest_ && !compares_widths();
  ++n_noted_;
  ++entry.n;
  double off = time - level_ - entry.shape;
  if (entry.n == 2 && width == smallest_ && off < 0.0) {
    // The very first one may have been held up, and a pass is never too quick. Where others were
    // noted in between, the level is theirs as well.
    (n_widths_ == 1 ? level_ : entry.shape) += off;
    off = 0.0;
  }
  if (begins_to_compare) {
    entry.shape += std::min(off, 0.0);
    off = 0.0;
    forget_seen_once();
  }
  level_ += kLevelRate * std::clamp(off, -kClip, kClip);
  // The first passes of a width are averaged, against the level: it may be the only one from now
  // on, and one alone may have been held up.
  const double rate = std::max(kShapeRate, 1.0 / (static_cast<double>(entry.n) + 1.0));
  if (entry.n <= kMeasured) {
    entry.shape += rate * std::clamp(off, -kClip, kClip);
  } else if (last_width_ != 0 && last_width_ != width) {
    const double beside = time - entry.shape - last_level_;
    entry.shape += rate * std::clamp(beside, -kClip, kClip);
  }
  last_width_ = width;
  last_level_ = time - entry.shape;
}

// One pass may have been held up: what its neighbours say bounds what it says.
void CostCurve::note_first(std::int32_t width, double time) {
  double expected = time;
  if (compares_widths()) {
    expected = std::log(ms(width));
  } else if (width < smallest_) {
    // Alone a wider one bounds it from above.
    expected = std::min(time, std::log(ms(width)));
  }
  const double clip = width > largest_ ? kBeyondClip : kFirstClip;
  entries_[static_cast<std::size_t>(width)] = {
      .shape = std::clamp(time, expected - clip, expected + clip) - level_, .n = 1};
  largest_ = std::max(largest_, width);
  smallest_ = smallest_ == 0 ? width : std::min(smallest_, width);
  ++n_noted_;
  ++n_widths_;
}

void CostCurve::forget_seen_once() {
  std::int32_t last = smallest_;
  for (std::int32_t width = smallest_ + 1; width <= largest_; ++width) {
    if (noted(width) > 1) last = width;
    if (noted(width) != 1) continue;
    entries_[static_cast<std::size_t>(width)] = Entry();
    --n_noted_;
    --n_widths_;
  }
  largest_ = last;
}

bool CostCurve::compares_widths() const {
  for (std::int32_t width = smallest_ + 1; width <= largest_; ++width) {
    if (noted(width) > 1) return true;
  }
  return false;
}

double CostCurve::rebuild_ms() const { return rebuild_ * std::exp(level_); }

double CostCurve::detour_ms(std::int32_t width, std::int32_t plain) const {
  if (width == plain || rebuild_ <= 0.0) return 0.0;
  return rebuild_ms(width) + rebuild_ms() - rebuild_ms(plain);
}

std::int32_t CostCurve::reach() const { return std::min(2 * largest_, kMaxWidth); }

double CostCurve::time_of(std::int32_t width) const {
  return std::exp(level_ + entries_[static_cast<std::size_t>(width)].shape);
}

// Two widths that are close to each other would say little of the slope: tiles, and noise.
double CostCurve::slope() const {
  std::int32_t half = largest_ / 2;
  while (half > 0 && noted(half) == 0) --half;
  const double low = half > 0 ? time_of(half) : 0.0;
  return std::max(0.0, time_of(largest_) - low) / static_cast<double>(largest_ - half);
}

double CostCurve::beyond(std::int32_t width) const {
  return time_of(largest_) + slope() * static_cast<double>(width - largest_);
}

double CostCurve::further_ms() const { return n_widths_ > 1 ? slope() : 0.0; }

double CostCurve::ms(std::int32_t width) const {
  if (width < 1 || n_noted_ == 0) return 0.0;
  if (width >= largest_) return beyond(width);
  std::int32_t above = width;
  while (noted(above) == 0) ++above;
  std::int32_t below = width;
  while (below > 0 && noted(below) == 0) --below;
  const double high = time_of(above);
  // Below the smallest it cannot be told how much less.
  if (above == width || below == 0) return high;
  const double low = time_of(below);
  const double share = static_cast<double>(width - below) / static_cast<double>(above - below);
  return low + share * (high - low);
}

std::int64_t CostCurve::noted(std::int32_t width) const {
  return width < 1 || width > kMaxWidth ? 0 : entries_[static_cast<std::size_t>(width)].n;
}

std::vector<CostPoint> CostCurve::points() const {
  std::vector<CostPoint> result;
  for (std::int32_t width = 1; width <= kMaxWidth; ++width) {
    if (noted(width) > 0) result.push_back({.width = width, .ms = ms(width)});
  }
  return result;
}

}  // namespace outrider
