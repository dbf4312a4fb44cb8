// Pmf: a distribution as numbers, for the rules that compare probabilities.
//
// Entry i is the probability of token(i): either every id of the vocabulary in order (dense) or a
// few in rising order of id (sparse), so that two of them are always compared by token id, whatever
// order their sampler chains left the candidates in. Comparing by index is a well-known bug of
// stochastic tree verification.
//
// Tested by pmf_test.cc.
#pragma once

#include <vector>

#include "base/types.h"
#include "dist/distribution.h"

namespace outrider {

class Pmf {
 public:
  Pmf() = default;

  // `q` normalised to sum to 1; entries of a sparse one that are impossible are left out. Empty
  // when no entry is possible.
  static Pmf of(const Distribution& q);

  // [tokens] distinct, in any order, with as many weights >= 0, taken as they are.
  static Pmf sparse(std::vector<Token> tokens, std::vector<double> weights);

  std::size_t size() const { return p_.size(); }
  Token token(std::size_t i) const { return tokens_.empty() ? static_cast<Token>(i) : tokens_[i]; }
  double p(std::size_t i) const { return p_[i]; }
  const std::vector<double>& values() const { return p_; }

  // The probability of `token`; 0 for ids that are not there.
  double at(Token token) const;

  double total() const;
  bool possible() const { return total() > 0.0; }

  // Scales the sum to 1. No effect when it is 0.
  void normalise();

  // Sets the probability of `token` to 0; not normalised.
  void remove(Token token);

  // max(scale * q - p, 0) for each token of q, by id; not normalised.
  static Pmf residual(const Pmf& q, const Pmf& p, double scale = 1.0);

 private:
  std::ptrdiff_t find(Token token) const;  // index, or -1

  std::vector<Token> tokens_;  // rising, or empty: entry i is token i
  std::vector<double> p_;
};

}  // namespace outrider
