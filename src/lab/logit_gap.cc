#include "lab/logit_gap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "dist/gumbel.h"

namespace outrider::lab {
namespace {

class RecordingSampler : public Sampler {
 public:
  RecordingSampler(std::unique_ptr<Sampler> inner, std::size_t index, RecordedRow& row)
      : inner_(std::move(inner)), index_(index), row_(row) {}

  Distribution apply(std::span<const float> logits) override {
    const Distribution q = inner_->apply(logits);
    if (calls_++ != index_) return q;
    row_.logits.assign(logits.begin(), logits.end());
    row_.kept.clear();
    row_.scores.clear();
    for (std::size_t i = 0; i < q.size(); ++i) {
      row_.kept.push_back(q.token(i));
      row_.scores.push_back(q.scale * q.logits[i]);
    }
    return q;
  }

  void begin(std::span<const Token> prompt, std::uint64_t seed) override {
    inner_->begin(prompt, seed);
  }
  void accept(Token token) override { inner_->accept(token); }
  Status status() const override { return inner_->status(); }
  bool greedy() const override { return inner_->greedy(); }
  bool has_state() const override { return inner_->has_state(); }
  std::unique_ptr<Sampler> clone() const override { return inner_->clone(); }

 private:
  std::unique_ptr<Sampler> inner_;
  std::size_t index_;
  std::size_t calls_ = 0;
  RecordedRow& row_;
};

double at(const RecordedRow& row, Token token) {
  return static_cast<double>(row.logits[static_cast<std::size_t>(token)]);
}

// The chain's own log-probability of a kept token, else what the row says.
float score(const RecordedRow& row, double temperature, Token token) {
  for (std::size_t i = 0; i < row.scores.size(); ++i) {
    if (row.kept[i] == token) return row.scores[i];
  }
  return static_cast<float>(at(row, token) / temperature);
}

// How far apart the two perturbed scores are, in logits.
double score_gap(const RecordedRow& row, double temperature, NoiseKey key, Token a, Token b) {
  if (temperature == 0.0) return std::abs(at(row, a) - at(row, b));
  const std::array<Token, 2> tokens = {a, b};
  const std::array<float, 2> logits = {score(row, temperature, a), score(row, temperature, b)};
  const Distribution both{.logits = logits, .tokens = tokens};
  const std::vector<PerturbedChoice> scores = perturbed_top_reference(both, key, 2);
  if (scores.size() < 2) return std::numeric_limits<double>::infinity();
  return temperature * (scores[0].score - scores[1].score);
}

}  // namespace

std::unique_ptr<Sampler> make_recording_sampler(std::unique_ptr<Sampler> inner, std::size_t index,
                                                RecordedRow& row) {
  return std::make_unique<RecordingSampler>(std::move(inner), index, row);
}

double logit_gap(const RecordedRow& row, float temperature, NoiseKey key, Token plain,
                 Token speculative) {
  const double scores = score_gap(row, static_cast<double>(temperature), key, plain, speculative);
  if (temperature == 0.0f || row.kept.size() == row.logits.size()) return scores;
  std::vector<bool> kept(row.logits.size(), false);
  for (const Token token : row.kept) kept[static_cast<std::size_t>(token)] = true;
  double lowest_kept = std::numeric_limits<double>::infinity();
  double highest_cut = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const double logit = static_cast<double>(row.logits[i]);
    if (kept[i]) {
      lowest_kept = std::min(lowest_kept, logit);
    } else {
      highest_cut = std::max(highest_cut, logit);
    }
  }
  // The speculative run's token was cut off here: it had to cross the edge. Else it was kept in
  // both runs, and either it won on score, or the plain run's token fell off the edge.
  if (!kept[static_cast<std::size_t>(speculative)]) return lowest_kept - at(row, speculative);
  return std::min(scores, at(row, plain) - highest_cut);
}

}  // namespace outrider::lab
