#include "testing/enumerated_chance.h"

#include <cassert>
#include <utility>

namespace outrider::testing {

std::size_t EnumeratedChance::decide(std::vector<double> weights) {
  if (depth_ == decisions_.size()) decisions_.push_back({.weights = std::move(weights)});
  Decision& decision = decisions_[depth_++];
  weight_ *= decision.weights[decision.taken];
  return decision.taken;
}

bool EnumeratedChance::flip(double probability) {
  if (!(probability > 0.0)) return false;
  if (probability >= 1.0) return true;
  return decide({probability, 1.0 - probability}) == 0;
}

Token EnumeratedChance::draw(const Pmf& weights) {
  std::vector<Token> tokens;
  std::vector<double> chances;
  const double total = weights.total();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights.p(i) > 0.0)) continue;
    tokens.push_back(weights.token(i));
    chances.push_back(weights.p(i) / total);
  }
  if (tokens.empty()) return kNoToken;
  if (tokens.size() == 1) return tokens[0];
  return tokens[decide(std::move(chances))];
}

bool EnumeratedChance::next() {
  assert(depth_ == decisions_.size());  // the procedure is a function of its decisions
  while (!decisions_.empty()) {
    Decision& last = decisions_.back();
    if (++last.taken < last.weights.size()) break;
    decisions_.pop_back();
  }
  depth_ = 0;
  weight_ = 1.0;
  return !decisions_.empty();
}

std::size_t for_every_outcome(const std::function<void(EnumeratedChance& chance)>& run) {
  EnumeratedChance chance;
  std::size_t n = 0;
  do {
    run(chance);
    ++n;
  } while (chance.next());
  return n;
}

}  // namespace outrider::testing
