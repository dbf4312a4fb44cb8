#include "draft/model/draft_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "dist/gumbel.h"
#include "dist/log_probability.h"

namespace outrider {
namespace {

// REQUIRES: q is dense
std::vector<double> probabilities_of(std::span<const Token> tokens, const Distribution& q) {
  const double log_sum = log_sum_exp(q.logits, q.scale);
  std::vector<double> p;
  for (const Token token : tokens) {
    const float logit = q.logits[static_cast<std::size_t>(token)];
    p.push_back(std::exp(static_cast<double>(q.scale) * static_cast<double>(logit) - log_sum));
  }
  return p;
}

// The `n` largest probabilities, falling.
std::vector<double> largest(const Distribution& q, std::size_t n) {
  if (q.tokens.empty()) return probabilities_of(likeliest(q.logits, n), q);
  std::vector<double> p = probabilities(q);
  n = std::min(n, p.size());
  std::partial_sort(p.begin(), p.begin() + static_cast<std::ptrdiff_t>(n), p.end(),
                    std::greater<double>());
  p.resize(n);
  return p;
}

// Of the first `n` choices, how far each is ahead of the best of the others, as a chance: 1/2 where
// they are even. Nothing else is possible: 1.
std::vector<float> leads(std::span<const PerturbedChoice> choices, std::size_t n) {
  if (choices.size() == 1) return {1.0f};
  std::vector<float> result;
  for (std::size_t i = 0; i < n; ++i) {
    const double lead = choices[i].score - choices[i == 0 ? 1 : 0].score;
    result.push_back(std::isnan(lead) ? 0.0f : static_cast<float>(1.0 / (1.0 + std::exp(-lead))));
  }
  return result;
}

DraftRivals rivals_of(std::span<const PerturbedChoice> choices, NoiseKey key, float sharpness) {
  if (choices.size() < 2) return {};
  const PerturbedChoice& first = choices[0];
  const PerturbedChoice& second = choices[1];
  const double noise_lead = gumbel_noise(key, first.token) - gumbel_noise(key, second.token);
  const double lead = first.score - second.score - noise_lead;
  return {first.token, second.token, lead / static_cast<double>(sharpness), noise_lead};
}

// Where the chain leaves one token of the row (temperature 0): what stands in for the rest.
//
// What the row has above that token the chain has ruled out (a grammar, a bias) or pushed down
// (penalties). The target's chain does the same, so those are no guesses, and nothing is compared
// with them.
struct GreedyRow {
  std::span<const float> logits;  // the row without what is above the chosen token
  std::vector<float> copy;        // holds it, where there is any
  std::vector<Token> top;         // its likeliest

  // `count` of `top`, at least 1.
  GreedyRow(std::span<const float> row, Token chosen, std::size_t count)
      : logits(row), top(likeliest(row, count)) {
    const float most = row[static_cast<std::size_t>(chosen)];
    // Mostly the chosen one is the row's first, and nothing but `top` is computed.
    if (top.empty() || !(row[static_cast<std::size_t>(top[0])] > most)) return;
    copy.assign(row.begin(), row.end());
    for (float& value : copy) {
      value = value > most ? -std::numeric_limits<float>::infinity() : value;
    }
    logits = copy;
    top = likeliest(logits, count);
  }
  GreedyRow(const GreedyRow&) = delete;
  GreedyRow& operator=(const GreedyRow&) = delete;

  // The `n` largest probabilities, falling; no more than there are of `top`.
  std::vector<double> largest(std::size_t n) const {
    return probabilities_of(std::span(top).first(std::min(n, top.size())), {.logits = logits});
  }
};

// The chosen token, then the likeliest others, `count` together.
std::vector<PerturbedChoice> greedy_top(const GreedyRow& left, Token chosen, std::size_t count) {
  const auto with_score = [&left](Token token) {
    const float logit = left.logits[static_cast<std::size_t>(token)];
    return PerturbedChoice{token, static_cast<double>(logit)};
  };
  std::vector<PerturbedChoice> top = {with_score(chosen)};
  for (const Token token : left.top) {
    if (token != chosen && top.size() < count) top.push_back(with_score(token));
  }
  return top;
}

// One child, whatever the probabilities are.
bool is_plain(const ChoiceContext& c) {
  return c.max_children == 1 && c.shape.p_min <= 0.0f && c.shape.p_ratio <= 0.0f;
}

// How many children the shape wants here, by the largest probabilities: two at least, if there are.
std::int32_t n_children(std::span<const double> p, const ChoiceContext& c) {
  const DraftShape& shape = c.shape;
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
  std::optional<GreedyRow> left;
  if (single && (c.wants_confidence || !is_plain(c))) {
    left.emplace(row, q.token(0), static_cast<std::size_t>(c.max_children) + 1);
  }
  const auto largest_here = [&](std::int32_t n) {
    const std::size_t most = static_cast<std::size_t>(n);
    return left ? left->largest(most) : largest(q, most);
  };
  const std::int32_t wanted =
      is_plain(c) ? 1 : n_children(largest_here(std::max(2, c.max_children)), c);
  if (wanted == 0) return choice;
  const std::uint64_t position = c.root_position + static_cast<std::uint64_t>(c.depth) + 1;
  const NoiseKey key =
      c.draws ? noise_key(mix64(c.seed) ^ c.root_position,
                          (c.node << 16) + static_cast<std::uint64_t>(c.depth), kDraftStream)
              : noise_key(c.seed, position);
  // One more than is proposed: how far the last one is ahead, and who the first one's rival is.
  const bool one_more = !c.draws && (c.wants_confidence || !single);
  const std::size_t count = static_cast<std::size_t>(wanted) + (one_more ? 1 : 0);
  Distribution scored = q;
  if (!c.draws) scored.scale *= c.sharpness;
  std::vector<PerturbedChoice> best = perturbed_top(scored, key, count);
  if (best.empty()) return choice;
  if (left && count > 1) best = greedy_top(*left, best[0].token, count);
  const std::size_t n = std::min(best.size(), static_cast<std::size_t>(wanted));
  for (std::size_t i = 0; i < n; ++i) choice.tokens.push_back(best[i].token);
  if (c.draws) {
    const std::size_t n_drawn = single ? 1 : n;
    choice.draw = {.p = Pmf::of(q),
                   .tokens = {choice.tokens.begin(),
                              choice.tokens.begin() + static_cast<std::ptrdiff_t>(n_drawn)}};
  }
  if (!single && !c.draws) choice.rivals = rivals_of(best, key, c.sharpness);
  if (!c.wants_confidence) return choice;
  if (!c.draws) {
    choice.confidence = leads(best, n);
    return choice;
  }
  for (const double p : largest_here(static_cast<std::int32_t>(n))) {
    choice.confidence.push_back(static_cast<float>(p));
  }
  return choice;
}

}  // namespace outrider
