// FaultyModel: a real model whose evaluations fail when they are told to, half done.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <set>
#include <span>
#include <utility>

#include "model/language_model.h"

namespace outrider::testing {

// How much of a failed evaluation is in the model for good, as far as the interface allows. With
// Rollback::kAny it is always nothing.
enum class HalfDone {
  kNothing,      // as before the call
  kPrefixes,     // chains' prefixes are kept; the chains were not begun
  kChainsUndone  // the chains ran, and the state before them is put back, where there is a copy;
                 // else all is lost
};

class FaultyModel : public LanguageModel {
 public:
  // `inner` must outlive it. The evaluations numbered `failing`, from 1 on, fail.
  FaultyModel(LanguageModel& inner, HalfDone half, std::set<std::int64_t> failing)
      : inner_(inner), half_(half), failing_(std::move(failing)) {}

  const Capabilities& capabilities() const override { return inner_.capabilities(); }
  Pos length(SeqId seq) const override { return inner_.length(seq); }
  std::int32_t room(SeqId seq) const override { return inner_.room(seq); }
  Status evaluate(std::span<const EvalItem> items) override {
    if (!failing_.contains(++calls_)) return inner_.evaluate(items);
    if (failures_++ == 0) {
      had_drafts_ = std::any_of(items.begin(), items.end(), [](const EvalItem& item) {
        return item.tree != nullptr && item.tree->size() > 1;
      });
    }
    if (half_ != HalfDone::kNothing && capabilities().rollback != Rollback::kAny) {
      const Status status = read_some(items);
      if (!status.ok()) return status.with_context("the fault itself failed");
    }
    return internal_error("broken on command");
  }
  std::span<const float> logits(std::size_t item, NodeId node) const override {
    return inner_.logits(item, node);
  }
  Status commit(SeqId seq, std::span<const NodeId> path) override {
    return inner_.commit(seq, path);
  }
  Status truncate(SeqId seq, Pos length) override { return inner_.truncate(seq, length); }
  Status share(SeqId from, SeqId to, Pos length) override { return inner_.share(from, to, length); }
  void set_interrupt(const std::atomic<bool>* flag) override { inner_.set_interrupt(flag); }

  int failures() const { return failures_; }
  bool had_drafts() const { return had_drafts_; }  // the first that failed
  int prefixes_kept() const { return prefixes_kept_; }

 private:
  // What LlamaModel does for saved states (llama_rollback.cc), up to the fault.
  Status read_some(std::span<const EvalItem> items) {
    for (const EvalItem& item : items) {
      if (item.tree == nullptr || item.tree->size() == 1) continue;
      if (!item.prefix.empty()) {
        const EvalItem prefix{.seq = item.seq, .prefix = item.prefix};
        OUTRIDER_RETURN_IF_ERROR(inner_.evaluate({&prefix, 1}));
        OUTRIDER_RETURN_IF_ERROR(inner_.commit(item.seq, {}));
        ++prefixes_kept_;
      }
      if (half_ != HalfDone::kChainsUndone) continue;
      const EvalItem chain{.seq = item.seq, .prefix = {}, .tree = item.tree};
      OUTRIDER_RETURN_IF_ERROR(inner_.evaluate({&chain, 1}));
      OUTRIDER_RETURN_IF_ERROR(inner_.commit(item.seq, {}));  // maybe all is lost
    }
    return Status();
  }

  LanguageModel& inner_;
  HalfDone half_;
  std::set<std::int64_t> failing_;
  std::int64_t calls_ = 0;
  int failures_ = 0;
  bool had_drafts_ = false;
  int prefixes_kept_ = 0;
};

}  // namespace outrider::testing
