// FakeBlockModel: a BlockModel whose numbers are written by hand and which fails on command.
//
// Its states are FakeModel's: the row of a token names the last n_states tokens up to it. It keeps
// the tokens so named as its text, and aborts the test when a row does not go on from what it has,
// or when a REQUIRES is violated.
//
// The row at depth d is the row function's for the text, the root and d - 1 tokens that stand for
// what is not known, kUnknown each. A target whose function does not look at the last tokens
// (lagged_rows) is equalled by a head with the same function.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "model/block_model.h"
#include "testing/fake_model.h"

namespace outrider::testing {

inline constexpr Token kUnknown = 0;

// `rows` without the last `lag` - 1 tokens of a context (the first one stays): what follows is
// decided `lag` tokens ahead, whatever comes between.
RowFunction lagged_rows(RowFunction rows, std::size_t lag);

class FakeBlockModel : public BlockModel {
 public:
  FakeBlockModel(BlockCapabilities capabilities, RowFunction rows);

  const BlockCapabilities& capabilities() const override { return capabilities_; }
  Pos length(SeqId seq) const override { return static_cast<Pos>(text(seq).size()); }
  Status read(std::span<const BlockText> items) override;
  Status guess(std::span<const BlockRoot> items) override;
  std::span<const float> logits(std::size_t item, std::int32_t depth) const override;
  Status truncate(SeqId seq, Pos length) override;
  Status share(SeqId from, SeqId to, Pos length) override;
  void set_interrupt(const std::atomic<bool>* flag) override { interrupt_ = flag; }

  // The next calls of read() and guess(), together, end with these, in order; an ok Status lets one
  // pass.
  void fail(std::vector<Status> statuses) { failures_.assign(statuses.begin(), statuses.end()); }
  // Called when a guess() has succeeded, with the number of its tokens.
  void on_guess(std::function<void(std::int64_t)> hook) { after_ = std::move(hook); }

  std::int64_t tokens_read() const { return tokens_read_; }
  std::int64_t guesses() const { return guesses_; }  // calls of guess() that succeeded
  const std::vector<Token>& text(SeqId seq) const;

 private:
  Status begin_pass(std::size_t n_tokens);

  BlockCapabilities capabilities_;
  RowFunction rows_;
  std::vector<std::vector<Token>> texts_;              // [n_sequences]
  std::vector<std::vector<std::vector<float>>> last_;  // [items of the last guess()][depths]
  std::deque<Status> failures_;
  std::function<void(std::int64_t)> after_;
  const std::atomic<bool>* interrupt_ = nullptr;
  std::int64_t tokens_read_ = 0;
  std::int64_t guesses_ = 0;
};

}  // namespace outrider::testing
