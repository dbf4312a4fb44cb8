#include "plan/acceptance_table.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace outrider {
namespace {

// Where one bucket of confidence ends and the next begins.
constexpr std::array<float, 13> kEdges = {0.02f, 0.05f, 0.1f, 0.2f, 0.3f,  0.4f, 0.5f,
                                          0.6f,  0.7f,  0.8f, 0.9f, 0.96f, 0.99f};
// The last that many guesses of a cell count most of what it says.
constexpr double kMemory = 400.0;
constexpr double kPredictionMemory = 40.0;
// As how many guesses what another run learned counts at most.
constexpr double kRecalled = 40.0;
constexpr double kPredictionRecalled = 12.0;
// As how many guesses a broader figure counts in a narrower one.
constexpr double kPriorWeight = 4.0;
constexpr double kPredictionWeight = 5.0;
// How far the upper prediction is above the mean one, in standard deviations.
constexpr double kUpper = 1.5;
constexpr double kFirstPrediction = 0.6;  // of a drafter that nothing is known of

constexpr double kBiasRate = 0.05;
constexpr double kMaxBias = 3.0;
constexpr double kLeast = 1e-3;  // chances stay this far from 0 and 1

double bounded(double chance) { return std::clamp(chance, kLeast, 1.0 - kLeast); }

}  // namespace

AcceptanceTable::AcceptanceTable() : drafters_(kMaxDrafters) {}

std::size_t AcceptanceTable::bucket(float confidence) {
  return static_cast<std::size_t>(std::upper_bound(kEdges.begin(), kEdges.end(), confidence) -
                                  kEdges.begin());
}

// 1, 2, 3, 4, 5 and 6, 7 to 9, 10 to 15, beyond.
std::size_t AcceptanceTable::depth_class(std::int32_t depth) {
  if (depth <= 4) return static_cast<std::size_t>(std::max(depth, 1)) - 1;
  if (depth <= 6) return 4;
  if (depth <= 9) return 5;
  return depth <= 15 ? 6 : 7;
}

void AcceptanceTable::Count::add(bool was_right, double memory) {
  const double fade = 1.0 - 1.0 / memory;
  right = right * fade + (was_right ? 1.0 : 0.0);
  seen = seen * fade + 1.0;
}

void AcceptanceTable::Count::shrink_to(double most) {
  if (seen <= most) return;
  right = std::min(right * (most / seen), most);  // never above it by rounding
  seen = most;
}

template <typename Self, typename Visit>
void AcceptanceTable::PerDrafter::for_each_count(Self& self, Visit&& visit) {
  for (auto& count : self.by_confidence) visit(count, kRecalled);
  for (auto& depth : self.by_depth) {
    for (auto& count : depth) visit(count, kRecalled);
  }
  for (auto& count : self.predictions) visit(count, kPredictionRecalled);
}

double AcceptanceTable::chance(const GuessClaim& claim) const {
  assert(claim.drafter < kMaxDrafters);
  const PerDrafter& drafter = drafters_[claim.drafter];
  const std::size_t b = bucket(claim.confidence);
  const double said = claim.confidence > 0.0f ? static_cast<double>(claim.confidence) : 0.0;
  const double broad = drafter.by_confidence[b].share(said, kPriorWeight);
  const Count& cell = drafter.by_depth[depth_class(claim.depth)][b];
  return bounded(cell.share(broad, kPriorWeight));
}

void AcceptanceTable::learn(const GuessClaim& claim, bool right) {
  PerDrafter& drafter = drafters_[claim.drafter];
  const std::size_t b = bucket(claim.confidence);
  drafter.by_confidence[b].add(right, kMemory);
  drafter.by_depth[depth_class(claim.depth)][b].add(right, kMemory);
}

double AcceptanceTable::prediction(std::size_t drafter, std::int32_t depth) const {
  const PerDrafter& d = drafters_[drafter];
  double expected = kFirstPrediction;
  // Each depth has the one before it as its prior.
  for (std::size_t i = 0; i <= depth_class(depth); ++i) {
    expected = d.predictions[i].share(expected, kPredictionWeight);
  }
  return bounded(expected);
}

double AcceptanceTable::upper_prediction(std::size_t drafter, std::int32_t depth) const {
  const double expected = prediction(drafter, depth);
  const double seen = drafters_[drafter].predictions[depth_class(depth)].seen + kPredictionWeight;
  return bounded(expected + kUpper * std::sqrt(expected * (1.0 - expected) / seen));
}

void AcceptanceTable::learn_prediction(std::size_t drafter, std::int32_t depth, bool right) {
  drafters_[drafter].predictions[depth_class(depth)].add(right, kPredictionMemory);
}

bool AcceptanceTable::ever_right(std::size_t drafter) const {
  const auto& counts = drafters_[drafter].by_confidence;
  return std::any_of(counts.begin(), counts.end(),
                     [](const Count& count) { return count.right > 0.0; });
}

void AcceptanceTable::forget(std::size_t drafter) { drafters_[drafter] = PerDrafter(); }

std::vector<double> AcceptanceTable::numbers(std::size_t drafter) const {
  std::vector<double> result;
  double seen = 0.0;
  PerDrafter::for_each_count(drafters_[drafter], [&](const Count& count, double /*most*/) {
    result.push_back(count.right);
    result.push_back(count.seen);
    seen += count.seen;
  });
  return seen > 0.0 ? result : std::vector<double>();
}

bool AcceptanceTable::recall(std::size_t drafter, std::span<const double> numbers) {
  PerDrafter recalled;
  std::size_t at = 0;
  bool possible = true;
  PerDrafter::for_each_count(recalled, [&](Count& count, double most) {
    if (at + 2 > numbers.size()) {
      possible = false;
      return;
    }
    count = {.right = numbers[at], .seen = numbers[at + 1]};
    at += 2;
    // Not written as the negation: a comparison with a NaN is false.
    possible = possible && count.right >= 0.0 && count.right <= count.seen && count.seen < 1e9;
    count.shrink_to(most);
  });
  if (!possible || at != numbers.size()) return false;
  drafters_[drafter] = recalled;
  return true;
}

double AcceptanceBias::shifted(std::size_t drafter, double chance) const {
  const double odds = bounded(chance) / (1.0 - bounded(chance));
  const double moved = odds * std::exp(static_cast<double>(shift_[drafter]));
  return bounded(moved / (1.0 + moved));
}

void AcceptanceBias::learn(std::size_t drafter, double chance, bool right) {
  const double moved =
      static_cast<double>(shift_[drafter]) + kBiasRate * ((right ? 1.0 : 0.0) - chance);
  shift_[drafter] = static_cast<float>(std::clamp(moved, -kMaxBias, kMaxBias));
}

}  // namespace outrider
