// WrongModel: a FakeModel whose rows are made wrong on purpose, at chosen widths, depths and times,
// by the least that a float can differ. What a probe for exactness must find.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "testing/fake_model.h"

namespace outrider::testing {

// What a row is about, for the decision whether it shall be wrong.
struct RowFacts {
  std::int32_t batch = 0;           // tokens in the whole evaluation
  std::size_t n_items = 0;          // sequences in it
  Pos pos = 0;                      // of the row's token
  std::int64_t evaluation = 0;      // number of this evaluation, from 1
  bool after_rollback = false;      // a part of the last evaluation was not kept
  std::int32_t longest_prefix = 0;  // that the sequence has seen since it was emptied
  bool branches = false;            // the evaluation holds a tree that is no chain
};

// A FakeModel, some of whose logits are off by one unit in the last place.
class WrongModel : public LanguageModel {
 public:
  static constexpr std::int32_t kVocab = 32;
  using Wrong = std::function<bool(const RowFacts&)>;

  explicit WrongModel(Wrong wrong, std::int32_t n_sequences = 1, std::int32_t n_ctx = 1024,
                      std::int32_t max_leaves = 1, Rollback rollback = Rollback::kAny)
      : fake_({.n_vocab = kVocab,
               .n_ctx = n_ctx,
               .n_batch = 512,
               .n_sequences = n_sequences,
               .rollback = rollback,
               .max_leaves = max_leaves,
               .max_width = 64,
               .rollback_reason = ""},
              random_rows(kVocab, /*seed=*/5, /*spread=*/3.0f)),
        wrong_(std::move(wrong)),
        longest_prefix_(static_cast<std::size_t>(n_sequences), 0) {}

  const Capabilities& capabilities() const override { return fake_.capabilities(); }
  Pos length(SeqId seq) const override { return fake_.length(seq); }
  std::int32_t room(SeqId seq) const override { return fake_.room(seq); }
  void set_interrupt(const std::atomic<bool>* flag) override { fake_.set_interrupt(flag); }

  Status evaluate(std::span<const EvalItem> items) override {
    OUTRIDER_RETURN_IF_ERROR(fake_.evaluate(items));
    rows_.clear();
    items_.clear();
    facts_ = {
        .n_items = items.size(), .evaluation = fake_.evaluations(), .after_rollback = rolled_back_};
    for (const EvalItem& item : items) {
      const std::int32_t n_prefix = static_cast<std::int32_t>(item.prefix.size());
      const std::int32_t n_nodes = item.tree == nullptr ? 0 : item.tree->size();
      facts_.batch += n_prefix + n_nodes;
      facts_.branches = facts_.branches || (item.tree != nullptr && !item.tree->is_chain());
      std::int32_t& longest = longest_prefix_[static_cast<std::size_t>(item.seq)];
      longest = std::max(longest, n_prefix);
      items_.push_back({item.seq, length(item.seq) + n_prefix, n_nodes});
      for (const Token token : item.prefix) least_token_ = std::min(least_token_, token);
      for (NodeId node = 0; node < n_nodes; ++node) {
        least_token_ = std::min(least_token_, item.tree->token(node));
      }
    }
    tokens_in_evaluations_.push_back(facts_.batch);
    clock_ms_ += ms_per_evaluation_;
    return Status();
  }

  std::span<const float> logits(std::size_t item, NodeId node) const override {
    const std::span<const float> row = fake_.logits(item, node);
    RowFacts facts = facts_;
    facts.pos = items_[item].first_pos + node;
    facts.longest_prefix = longest_prefix_[static_cast<std::size_t>(items_[item].seq)];
    if (!wrong_ || !wrong_(facts)) return row;
    rows_.emplace_back(row.begin(), row.end());
    float& value = rows_.back()[7];
    value = std::nextafter(value, std::numeric_limits<float>::infinity());
    return rows_.back();
  }

  Status commit(SeqId seq, std::span<const NodeId> path) override {
    for (const Item& item : items_) {
      if (item.seq != seq) continue;
      rolled_back_ = static_cast<std::int32_t>(path.size()) < item.n_nodes;
    }
    return fake_.commit(seq, path);
  }

  Status truncate(SeqId seq, Pos length) override {
    if (length == 0) longest_prefix_[static_cast<std::size_t>(seq)] = 0;
    rolled_back_ = false;
    return fake_.truncate(seq, length);
  }

  FakeModel& fake() { return fake_; }
  void set_ms_per_evaluation(double ms) { ms_per_evaluation_ = ms; }
  double clock_ms() const { return clock_ms_; }
  Token least_token() const { return least_token_; }
  const std::vector<std::int32_t>& tokens_in_evaluations() const { return tokens_in_evaluations_; }

 private:
  struct Item {
    SeqId seq;
    Pos first_pos;
    std::int32_t n_nodes;
  };

  FakeModel fake_;
  Wrong wrong_;
  RowFacts facts_;
  std::vector<Item> items_;
  std::vector<std::int32_t> longest_prefix_;  // [n_sequences]
  bool rolled_back_ = false;
  mutable std::deque<std::vector<float>> rows_;
  double ms_per_evaluation_ = 0.0;
  double clock_ms_ = 0.0;
  Token least_token_ = kVocab;
  std::vector<std::int32_t> tokens_in_evaluations_;
};

}  // namespace outrider::testing
