// A drafter that knows the text already, for comparing without a draft model.
//
// It proposes the tokens of an earlier run of the same request, and makes every fifth of its
// proposals wrong: steps then have the full width, and both acceptance and rejection happen.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "draft/base/lookup_drafter.h"

namespace outrider::lab {

class ReplayDrafter : public LookupDrafter {
 public:
  static constexpr std::string_view kName = "replay";

  // The text of the next request: `n_prompt` tokens, then `tokens`.
  void set_text(std::size_t n_prompt, std::vector<Token> tokens);

  std::string_view name() const override { return kName; }
  Status begin(SeqId seq, std::size_t kept) override;
  Status draft(std::span<DraftRequest> requests) override;
  void accept(SeqId, std::span<const Token>) override {}
  void end(SeqId) override {}
  void set_interrupt(const std::atomic<bool>*) override {}
  std::string limit_reason(SeqId) const override { return ""; }
  std::size_t memory_bytes() const override { return tokens_.capacity() * sizeof(Token); }

 private:
  std::size_t n_prompt_ = 0;
  std::vector<Token> tokens_;
  std::uint64_t proposed_ = 0;  // in this text
};

}  // namespace outrider::lab
