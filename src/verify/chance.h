// Chance: the random decisions of the rules that need some.
//
// The rules ask for decisions, not for random bits, so that a proof can go through all of them with
// their weights (testing/enumerated_chance.h) in the very code that draws them.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "dist/pmf.h"

namespace outrider {

class Chance {
 public:
  virtual ~Chance() = default;

  // True with this probability; always (never) from 1 (0) on.
  virtual bool flip(double probability) = 0;

  // A token in proportion to its weight, or kNoToken when all are 0.
  virtual Token draw(const Pmf& weights) = 0;
};

// Decisions from the seed and the place in the text: repeatable, and independent of each other, of
// the drafts' noise and of every other step's, since no two steps of a text begin at one position.
class SeededChance : public Chance {
 public:
  SeededChance(std::uint64_t seed, Pos root_position)
      : key_(noise_key(seed, static_cast<std::uint64_t>(root_position), kVerifyStream)) {}

  bool flip(double probability) override;
  Token draw(const Pmf& weights) override;

 private:
  NoiseKey key_;
  std::uint32_t next_ = 0;
};

}  // namespace outrider
