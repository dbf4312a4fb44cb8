// PerturbedModel: the negative control of the tests that compare texts.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "model/language_model.h"

namespace outrider::testing {

// A target whose logits differ by a hair whenever more than one token is evaluated at once: what an
// inexact backend does.
class PerturbedModel : public LanguageModel {
 public:
  PerturbedModel(LanguageModel& inner, float size) : inner_(inner), size_(size) {}

  const Capabilities& capabilities() const override { return inner_.capabilities(); }
  Pos length(SeqId seq) const override { return inner_.length(seq); }
  std::int32_t room(SeqId seq) const override { return inner_.room(seq); }
  Status evaluate(std::span<const EvalItem> items) override {
    wide_ = items[0].tree != nullptr && items[0].tree->size() > 1;
    return inner_.evaluate(items);
  }
  std::span<const float> logits(std::size_t item, NodeId node) const override {
    const std::span<const float> row = inner_.logits(item, node);
    if (!wide_) return row;
    row_.assign(row.begin(), row.end());
    for (std::size_t i = 0; i < row_.size(); ++i) row_[i] += i % 2 == 0 ? size_ : -size_;
    return row_;
  }
  Status commit(SeqId seq, std::span<const NodeId> path) override {
    return inner_.commit(seq, path);
  }
  Status truncate(SeqId seq, Pos length) override { return inner_.truncate(seq, length); }
  Status share(SeqId from, SeqId to, Pos length) override { return inner_.share(from, to, length); }
  void set_interrupt(const std::atomic<bool>* flag) override { inner_.set_interrupt(flag); }

 private:
  LanguageModel& inner_;
  float size_;
  bool wide_ = false;
  mutable std::vector<float> row_;
};

}  // namespace outrider::testing
