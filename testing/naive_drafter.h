// The drafter that others are measured against.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "draft/base/drafter.h"

namespace outrider::testing {

// The simplest drafter from text alone, to compare with: the last 12 tokens, or as many as occurred
// before, down to 1, and what followed their most recent occurrence. One sequence.
class NaiveLongestMatch : public Drafter {
 public:
  std::string_view name() const override { return "naive"; }
  Status begin(SeqId, std::size_t) override { return Status(); }
  Status draft(std::span<DraftRequest> requests) override;
  void accept(SeqId, std::span<const Token>) override {}
  void end(SeqId) override {}
  void set_interrupt(const std::atomic<bool>*) override {}
  std::string limit_reason(SeqId) const override { return ""; }

  static constexpr std::size_t kLongest = 12;

 private:
  std::size_t n_seen_ = 0;                                 // ends that last_end_ knows, plus one
  std::unordered_map<std::string, std::size_t> last_end_;  // n-gram, as bytes -> where it ended
};

}  // namespace outrider::testing
