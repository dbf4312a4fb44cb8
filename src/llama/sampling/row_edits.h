// What changes the logits of a few tokens: logit bias, tokens never to be said, penalties and DRY.
//
// Idea. llama.cpp runs these over a record for every token of the vocabulary, but they only touch
// tokens that are named or that occur in a window of the text, and each on its own. So its
// penalties, and DRY as it has it (llama/sampling/dry_penalty.h), are given those few candidates,
// and what comes out is put into a copy of the row. The bits are the same, and the scans of
// sampler_chain.h stay possible. What never changes is shared by all copies.
//
// Which tokens are in the window is kept in a list that each accepted token changes by at most two
// entries, so that a row asks for no sort of the window.
//
// Cost. A copy of the row (49,152 values: 5 microseconds) and a step for each token of the list.
// Each accepted token moves a part of the list, 8 bytes for each entry behind it.
//
// Tested by row_edits_test.cc, and by sampler_chain_test.cc and sampler_state_test.cc against
// llama.cpp's whole chain.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "llama/base/handles.h"
#include "llama/sampling/dry_penalty.h"
#include "model/sampler.h"

namespace outrider::llama {

class LlamaVocabulary;

struct TokenCount {
  Token token = kNoToken;
  std::int32_t count = 0;
};

class RowEdits {
 public:
  // `suppressed`: tokens never to be said. `vocabulary` (null: none) is needed for DRY's sequence
  // breakers, which it keeps, for ignore_eos and for !penalize_newline, and only looked at here.
  // REQUIRES: valid options. Errors: kInvalidArgument for a biased token that is not in the
  // vocabulary of `n_vocab`, or when a vocabulary is needed and there is none. Throws
  // std::bad_alloc.
  static Result<RowEdits> create(const SamplingOptions& options, std::int32_t n_vocab,
                                 std::span<const Token> suppressed,
                                 const LlamaVocabulary* vocabulary);

  // `row` after the edits: itself when there are none, else a copy that lives until the next call.
  // Ids beyond its end are passed over.
  std::span<const float> apply(std::span<const float> row);

  // As one after the other, at the cost of one sort of the window.
  void accept(std::span<const Token> tokens);
  void accept(Token token);

  // What penalties and DRY look at: the tokens that the window has, in the order of their ids, and
  // how often. Until the next call of accept().
  std::span<const TokenCount> in_window() const { return in_window_; }
  // Tokens that are held for that; at most twice the window.
  std::size_t n_kept() const { return history_.size(); }

  // True when accept() changes what apply() does.
  bool has_history() const { return penalties_ != nullptr || fixed_->dry.has_value(); }

  RowEdits clone() const;

 private:
  struct Fixed {
    std::vector<LogitBias> biases;
    std::vector<Token> never;
    Token unpenalized = kNoToken;   // the line's end, when penalties are to leave it alone
    std::optional<DryPenalty> dry;  // empty: off
  };

  RowEdits() = default;
  void keep(Token token);
  void count_window();
  void add(Token token);
  void remove(Token token);
  void apply_history();

  std::shared_ptr<const Fixed> fixed_;
  SamplerHandle penalties_;     // null: off
  std::size_t window_ = 0;      // tokens that penalties or DRY look at
  std::vector<Token> history_;  // the last ones accepted, at least window_, at most twice that
  std::vector<TokenCount> in_window_;  // of the last window_ of history_; no count is 0
  std::vector<float> row_;
  std::vector<llama_token_data> candidates_;
  DryPenalty::Scratch dry_scratch_;
};

}  // namespace outrider::llama
