// EnumeratedChance: goes through every outcome of a random procedure, each with its probability.
//
// The procedure runs again and again; each run takes the decisions of one leaf of its decision
// tree, depth first. Decisions that cannot fall otherwise (probability 0 or 1) do not branch.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "verify/chance.h"

namespace outrider::testing {

class EnumeratedChance : public Chance {
 public:
  bool flip(double probability) override;
  Token draw(const Pmf& weights) override;

  // Of the run that is on.
  double weight() const { return weight_; }

  // Ends the run and prepares the next one; false when all have been.
  bool next();

 private:
  struct Decision {
    std::vector<double> weights;  // of the outcomes, sum 1, all > 0
    std::size_t taken = 0;
  };

  std::size_t decide(std::vector<double> weights);

  std::vector<Decision> decisions_;
  std::size_t depth_ = 0;  // decisions of this run so far
  double weight_ = 1.0;
};

// Calls `run` once for each outcome; it returns after its last decision. Returns how many there
// were.
std::size_t for_every_outcome(const std::function<void(EnumeratedChance& chance)>& run);

}  // namespace outrider::testing
