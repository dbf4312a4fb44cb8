#include "dist/pmf.h"

#include <algorithm>
#include <cassert>

namespace outrider {

Pmf Pmf::of(const Distribution& q) {
  std::vector<double> p = probabilities(q);
  if (q.tokens.empty()) {
    Pmf dense;
    dense.p_ = std::move(p);
    return dense;
  }
  return sparse(std::vector<Token>(q.tokens.begin(), q.tokens.end()), std::move(p));
}

Pmf Pmf::sparse(std::vector<Token> tokens, std::vector<double> weights) {
  assert(tokens.size() == weights.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (weights[i] > 0.0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return tokens[a] < tokens[b]; });
  Pmf pmf;
  for (const std::size_t i : order) {
    pmf.tokens_.push_back(tokens[i]);
    pmf.p_.push_back(weights[i]);
  }
  return pmf;
}

std::ptrdiff_t Pmf::find(Token token) const {
  if (tokens_.empty()) {
    return token >= 0 && static_cast<std::size_t>(token) < p_.size() ? token : -1;
  }
  const std::vector<Token>::const_iterator it =
      std::lower_bound(tokens_.begin(), tokens_.end(), token);
  return it != tokens_.end() && *it == token ? it - tokens_.begin() : -1;
}

double Pmf::at(Token token) const {
  const std::ptrdiff_t i = find(token);
  return i < 0 ? 0.0 : p_[static_cast<std::size_t>(i)];
}

double Pmf::total() const { return sum_of(p_); }

void Pmf::normalise() {
  const double sum = total();
  if (!(sum > 0.0)) return;
  for (double& p : p_) p /= sum;
}

void Pmf::remove(Token token) {
  const std::ptrdiff_t i = find(token);
  if (i >= 0) p_[static_cast<std::size_t>(i)] = 0.0;
}

Pmf Pmf::residual(const Pmf& q, const Pmf& p, double scale) {
  Pmf result = q;
  if (scale != 1.0) {
    for (double& value : result.p_) value *= scale;
  }
  const bool both_dense = q.tokens_.empty() && p.tokens_.empty();
  if (both_dense) {
    const std::size_t n = std::min(q.size(), p.size());
    for (std::size_t i = 0; i < n; ++i) result.p_[i] -= p.p_[i];
  } else if (p.tokens_.empty()) {
    for (std::size_t i = 0; i < q.size(); ++i) result.p_[i] -= p.at(q.token(i));
  } else {
    for (std::size_t i = 0; i < p.size(); ++i) {
      const std::ptrdiff_t at = result.find(p.tokens_[i]);
      if (at >= 0) result.p_[static_cast<std::size_t>(at)] -= p.p_[i];
    }
  }
  for (double& value : result.p_) value = value > 0.0 ? value : 0.0;
  return result;
}

}  // namespace outrider
