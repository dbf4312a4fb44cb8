// Replaying a text through a drafter, as if it were being generated: how many tokens a step would
// have given. Counted as everywhere: width = the root and the drafted nodes, a step's tokens = the
// accepted nodes and the target's own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "draft/drafter.h"

namespace outrider::testing {

struct TextReplay {
  std::int64_t tokens = 0;  // all but the first
  std::int64_t steps = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  double draft_ms = 0;  // in Drafter::draft

  double tokens_per_step() const {
    return static_cast<double>(tokens) / static_cast<double>(steps);
  }
};

// `drafter` in its sequence 0; up to `width` - 1 nodes a step with up to `branches` leaves.
TextReplay replay_text(Drafter& drafter, std::span<const Token> text, std::int32_t width,
                       std::int32_t branches, float split_p);

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
