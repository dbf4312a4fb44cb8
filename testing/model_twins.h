// Two models that must be the same, call for call: what stands between a model and its user (a
// process, a wrapper) may not change anything.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "model/language_model.h"

namespace outrider::testing {

// Drives both at random: new trees of several sequences, prefixes alone, grown trees, commits of a
// random part of a path, truncations, shared texts, tokens outside the vocabulary. Statuses,
// lengths, room and the bits of all rows are compared (GoogleTest failures). Seeded by
// OUTRIDER_TEST_SEED, which failures print.
class ModelTwins {
 public:
  // Both in the same state, with nothing tentative.
  ModelTwins(LanguageModel& a, LanguageModel& b);

  // So many random calls, until the first failure.
  void act(int n_calls);

  int n_rows() const { return n_rows_; }  // compared so far

 private:
  // What of a sequence is tentative.
  struct Tentative {
    bool open = false;
    std::optional<TokenTree> tree;
  };

  int draw(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Token token();
  TokenTree random_tree();
  void act();
  void truncate(SeqId seq);
  void share(SeqId from);
  void evaluate();
  void grow(SeqId seq);
  void commit(SeqId seq);
  bool run(std::span<const EvalItem> items);
  void expect_same(const Status& a, const Status& b) const;
  Tentative& tentative(SeqId seq) { return tentative_[static_cast<std::size_t>(seq)]; }

  LanguageModel& a_;
  LanguageModel& b_;
  std::uint64_t seed_;
  std::mt19937 random_;
  std::vector<Tentative> tentative_;  // [n_sequences]
  int n_rows_ = 0;
};

}  // namespace outrider::testing
