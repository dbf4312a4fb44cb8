#include "llama/sampling/mirostat.h"

#include <algorithm>
#include <cmath>

namespace outrider::llama {
namespace {

// Single precision, in llama.cpp's order of operations, so that the cuts are the same.
void set_probabilities(std::vector<llama_token_data>& candidates) {
  const float best = candidates.front().logit;
  float sum = 0.0f;
  for (llama_token_data& candidate : candidates) {
    candidate.p = expf(candidate.logit - best);
    sum += candidate.p;
  }
  for (llama_token_data& candidate : candidates) candidate.p /= sum;
}

}  // namespace

void Mirostat::truncate(std::vector<llama_token_data>& candidates) {
  while (!candidates.empty() && candidates.back().logit == kRuledOut) candidates.pop_back();
  last_.clear();
  if (candidates.empty()) return;
  set_probabilities(candidates);
  candidates.resize(version_ == 1 ? count_by_zipf(candidates) : count_by_surprise(candidates));
  set_probabilities(candidates);
  for (const llama_token_data& candidate : candidates) {
    last_.emplace_back(candidate.id, candidate.p);
  }
}

std::size_t Mirostat::count_by_zipf(const std::vector<llama_token_data>& candidates) const {
  constexpr std::size_t kBest = 100;  // llama.cpp's constant
  float sum_ti_bi = 0.0f;
  float sum_ti_sq = 0.0f;
  for (std::size_t i = 0; i < kBest - 1 && i + 1 < candidates.size(); ++i) {
    const float t_i = logf(static_cast<float>(i + 2) / static_cast<float>(i + 1));
    const float b_i = logf(candidates[i].p / candidates[i + 1].p);
    sum_ti_bi += t_i * b_i;
    sum_ti_sq += t_i * t_i;
  }
  const float s_hat = sum_ti_bi / sum_ti_sq;
  const float epsilon = s_hat - 1.0f;
  const float k =
      powf((epsilon * powf(2.0f, mu_)) / (1.0f - powf(static_cast<float>(n_vocab_), -epsilon)),
           1.0f / s_hat);
  if (!(k >= 1.0f)) return 1;  // NaN too: a flat or a single distribution
  if (k >= static_cast<float>(candidates.size())) return candidates.size();
  return static_cast<std::size_t>(k);
}

std::size_t Mirostat::count_by_surprise(const std::vector<llama_token_data>& candidates) const {
  const std::ptrdiff_t n =
      std::find_if(candidates.begin(), candidates.end(),
                   [this](const llama_token_data& c) { return -log2f(c.p) > mu_; }) -
      candidates.begin();
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(n, 1));
}

void Mirostat::accept(Token token) {
  for (const auto& [id, p] : last_) {
    if (id != token) continue;
    const float error = -log2f(p) - tau_;
    mu_ = mu_ - eta_ * error;
    return;
  }
}

}  // namespace outrider::llama
