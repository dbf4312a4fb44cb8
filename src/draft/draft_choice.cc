#include "draft/draft_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "dist/gumbel.h"
#include "dist/log_probability.h"

namespace outrider {
namespace {

// The `n` largest probabilities, falling.
std::vector<double> largest(const Distribution& q, std::size_t n) {
  if (q.tokens.empty() && q.scale == 1.0f) {
    const double log_sum = log_sum_exp(q.logits);
    std::vector<double> p;
    for (const Token token : likeliest(q.logits, n)) {
      p.push_back(
          std::exp(static_cast<double>(q.logits[static_cast<std::size_t>(token)]) - log_sum));
    }
    return p;
  }
  std::vector<double> p = probabilities(q);
  n = std::min(n, p.size());
  std::partial_sort(p.begin(), p.begin() + static_cast<std::ptrdiff_t>(n), p.end(),
                    std::greater<double>());
  p.resize(n);
  return p;
}

// The probabilities of `tokens`, which are of `q`.
std::vector<float> probabilities_of(const Distribution& q, std::span<const Token> tokens) {
  std::vector<float> result;
  const bool raw = q.tokens.empty() && q.scale == 1.0f;
  const double log_sum = raw ? log_sum_exp(q.logits) : 0.0;
  const std::vector<double> p = raw ? std::vector<double>() : probabilities(q);
  for (const Token token : tokens) {
    double chance = 0.0;
    if (raw) {
      chance = std::exp(static_cast<double>(q.logits[static_cast<std::size_t>(token)]) - log_sum);
    } else {
      for (std::size_t i = 0; i < q.size(); ++i) {
        if (q.token(i) == token) chance = p[i];
      }
    }
    result.push_back(static_cast<float>(chance));
  }
  return result;
}

// How many children the shape wants here.
std::int32_t n_children(const Distribution& q, const ChoiceContext& c) {
  const DraftShape& shape = c.shape;
  const bool plain = c.max_children == 1 && shape.p_min <= 0.0f && shape.p_ratio <= 0.0f;
  if (plain) return 1;
  const std::vector<double> p = largest(q, static_cast<std::size_t>(std::max(2, c.max_children)));
  if (p.empty()) return 0;
  if (p[0] < static_cast<double>(shape.p_min)) return 0;
  if (p.size() > 1 && p[0] < static_cast<double>(shape.p_ratio) * p[1]) return 0;
  std::int32_t n = 1;
  while (n < c.max_children && static_cast<std::size_t>(n) < p.size() &&
         p[static_cast<std::size_t>(n)] > 0.0 &&
         p[static_cast<std::size_t>(n)] >= static_cast<double>(shape.split_p)) {
    ++n;
  }
  return n;
}

}  // namespace

DraftChoice choose_draft(std::span<const float> row, const Distribution& q,
                         const ChoiceContext& c) {
  DraftChoice choice;
  if (q.size() == 0) return choice;
  const bool single = c.greedy && q.size() == 1;
  const std::int32_t wanted = n_children(single ? Distribution{.logits = row} : q, c);
  if (wanted == 0) return choice;
  const std::uint64_t position = c.root_position + static_cast<std::uint64_t>(c.depth) + 1;
  const NoiseKey key =
      c.draws ? noise_key(mix64(c.seed) ^ c.root_position,
                          (c.node << 16) + static_cast<std::uint64_t>(c.depth), kDraftStream)
              : noise_key(c.seed, position);
  for (const PerturbedChoice& best : perturbed_top(q, key, static_cast<std::size_t>(wanted))) {
    choice.tokens.push_back(best.token);
  }
  if (choice.tokens.empty()) return choice;
  if (c.draws) choice.draw = {.p = Pmf::of(q), .tokens = choice.tokens};
  if (single && wanted > 1) {
    for (const Token token : likeliest(row, static_cast<std::size_t>(wanted))) {
      if (token != choice.tokens[0] && choice.tokens.size() < static_cast<std::size_t>(wanted)) {
        choice.tokens.push_back(token);
      }
    }
  }
  if (c.wants_confidence) {
    const Distribution said = single ? Distribution{.logits = row} : q;
    if (c.draws) {
      for (const double p : largest(said, choice.tokens.size())) {
        choice.confidence.push_back(static_cast<float>(p));
      }
    } else {
      choice.confidence = probabilities_of(said, choice.tokens);
    }
  }
  return choice;
}

}  // namespace outrider
