// AcceptanceTable: how often a drafter's guesses are right.
//
// Idea. A drafter says of each guess how sure it is. That figure is not the chance of acceptance (a
// draft that is sure to 0.9 may be right in 0.7 of the cases), but guesses that it is equally sure
// of, at the same depth, are right equally often. So hits and misses are counted per drafter, depth
// and confidence, with the older ones fading. While a count is small, a broader one is added to it
// as a prior: to a depth's that of all depths, to that the figure itself.
//
// All guesses count whose parent was right, also those that were not checked: what the target said
// there is known. What follows a wrong guess is not.
//
// One request's text may be easier or harder than all others': AcceptanceBias shifts the odds.
//
// Cost: O(1) each. Tested by acceptance_table_test.cc (calibration error and Brier score of drafts
// whose confidence is off).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tree/token_tree.h"

namespace outrider {

// What a drafter says of one guess.
struct GuessClaim {
  std::size_t drafter = 0;  // its index in the engine, below kMaxDrafters
  std::int32_t depth = 1;   // of the guess in its tree, >= 1
  float confidence = 0.0f;  // 0 to 1
};

class AcceptanceTable {
 public:
  AcceptanceTable();

  // The chance that the guess is right, given that the one before it is. In (0, 1).
  double chance(const GuessClaim& claim) const;
  void learn(const GuessClaim& claim, bool right);

  // The chance that the drafter's best guess at this depth is right, given that the one before it
  // is, and counting having no guess as being wrong: what asking it for one more is predicted to
  // bring.
  double prediction(std::size_t drafter, std::int32_t depth) const;
  // An upper bound, for exploration: prediction() and one and a half times its standard deviation,
  // which is large while little was seen.
  double upper_prediction(std::size_t drafter, std::int32_t depth) const;
  void learn_prediction(std::size_t drafter, std::int32_t depth, bool right);

  // Whether any guess of the drafter was right, in this run or in one that was recalled.
  bool ever_right(std::size_t drafter) const;

  // What was learned of this drafter is void: another one has its index.
  void forget(std::size_t drafter);

  // All that was learned of a drafter, in an order of its own; empty: nothing. And back, in place
  // of what is known: false, and nothing has changed, for numbers that were not made by numbers().
  // Counts come back smaller where they are large, so that what is seen now soon outweighs them.
  std::vector<double> numbers(std::size_t drafter) const;
  bool recall(std::size_t drafter, std::span<const double> numbers);

 private:
  static constexpr std::size_t kBuckets = 14;
  static constexpr std::size_t kDepths = 8;

  struct Count {
    double right = 0.0;
    double seen = 0.0;

    void add(bool was_right, double memory);
    void shrink_to(double most);
    // The share, as if `prior` had been seen `weight` times as well.
    double share(double prior, double weight) const {
      return (right + prior * weight) / (seen + weight);
    }
  };
  struct PerDrafter {
    std::array<Count, kBuckets> by_confidence{};
    std::array<std::array<Count, kBuckets>, kDepths> by_depth{};  // [depth class][bucket]
    std::array<Count, kDepths> predictions{};

    // All counts, with as how many guesses each may count when it is recalled.
    template <typename Self, typename Visit>
    static void for_each_count(Self& self, Visit&& visit);
  };

  static std::size_t bucket(float confidence);
  static std::size_t depth_class(std::int32_t depth);

  std::vector<PerDrafter> drafters_;  // [kMaxDrafters]
};

// One request's shift of the odds, per drafter.
class AcceptanceBias {
 public:
  double shifted(std::size_t drafter, double chance) const;
  // A guess that was given `chance` (shifted) was right or wrong.
  void learn(std::size_t drafter, double chance, bool right);

 private:
  std::array<float, kMaxDrafters> shift_{};  // of the log-odds
};

}  // namespace outrider
