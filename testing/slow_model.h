// A model whose passes take long on a made-up clock, and no longer than they do on the machine's.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "model/language_model.h"

namespace outrider::testing {

// A made-up clock, so that what pays does not depend on the machine: between two looks a tenth of a
// millisecond passes, which is what a draft's pass takes then. Any thread.
class PassClock {
 public:
  void spend(std::int64_t ms) { us_ += 1000 * ms; }
  NowMs now() {
    return [this] { return static_cast<double>(us_ += 100) / 1000.0; };
  }

 private:
  std::atomic<std::int64_t> us_{0};
};

// A target whose passes all take as long as if it were a large one.
class SlowModel : public LanguageModel {
 public:
  SlowModel(std::unique_ptr<LanguageModel> inner, std::int32_t pass_ms, PassClock& clock)
      : inner_(std::move(inner)), pass_ms_(pass_ms), clock_(clock) {}

  const Capabilities& capabilities() const override { return inner_->capabilities(); }
  Pos length(SeqId seq) const override { return inner_->length(seq); }
  std::int32_t room(SeqId seq) const override { return inner_->room(seq); }
  Status evaluate(std::span<const EvalItem> items) override {
    clock_.spend(pass_ms_);
    return inner_->evaluate(items);
  }
  std::span<const float> logits(std::size_t item, NodeId node) const override {
    return inner_->logits(item, node);
  }
  Status commit(SeqId seq, std::span<const NodeId> path) override {
    return inner_->commit(seq, path);
  }
  Status truncate(SeqId seq, Pos length) override { return inner_->truncate(seq, length); }
  Status share(SeqId from, SeqId to, Pos length) override {
    return inner_->share(from, to, length);
  }
  void set_interrupt(const std::atomic<bool>* flag) override { inner_->set_interrupt(flag); }

 private:
  std::unique_ptr<LanguageModel> inner_;
  std::int32_t pass_ms_;
  PassClock& clock_;
};

}  // namespace outrider::testing
