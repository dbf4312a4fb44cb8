// What changes the logits of a few tokens: logit bias, tokens never to be said, penalties and DRY.
//
// Idea. llama.cpp runs these over a record for every token of the vocabulary, but they only touch
// tokens that are named or that occur in a window of the text, and each on its own. So its samplers
// are given those few candidates, and what comes out is put into a copy of the row. The bits are
// the same, and the scans of sampler_chain.h stay possible.
//
// Cost. A copy of the row (49,152 values: 5 microseconds) and a sort of the window.
//
// Tested by sampler_chain_test.cc and sampler_state_test.cc against llama.cpp's whole chain.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "llama/base/handles.h"
#include "model/sampler.h"

namespace outrider::llama {

class LlamaVocabulary;

class RowEdits {
 public:
  // `suppressed`: tokens never to be said. `vocabulary` (null: none) is needed for DRY's sequence
  // breakers, for ignore_eos and for !penalize_newline, and only looked at here. REQUIRES: valid
  // options. Errors: kInvalidArgument for a biased token that is not in the vocabulary of
  // `n_vocab`, or when a vocabulary is needed and there is none. Throws std::bad_alloc.
  static Result<RowEdits> create(const SamplingOptions& options, std::int32_t n_vocab,
                                 std::span<const Token> suppressed,
                                 const LlamaVocabulary* vocabulary);

  // `row` after the edits: itself when there are none, else a copy that lives until the next call.
  // Ids beyond its end are passed over.
  std::span<const float> apply(std::span<const float> row);

  void accept(Token token);

  // True when accept() changes what apply() does.
  bool has_history() const { return penalties_ != nullptr || dry_ != nullptr; }

  RowEdits clone() const;

 private:
  RowEdits() = default;
  void apply_history();

  std::vector<LogitBias> biases_;
  std::vector<Token> never_;
  Token unpenalized_ = kNoToken;  // the line's end, when penalties are to leave it alone
  SamplerHandle penalties_;       // null: off; likewise dry_
  SamplerHandle dry_;
  std::size_t window_ = 0;      // tokens that penalties_ or dry_ look at
  std::vector<Token> history_;  // the last ones accepted, at least window_, at most twice that
  std::vector<float> row_;
  std::vector<Token> in_window_;
  std::vector<llama_token_data> candidates_;
};

}  // namespace outrider::llama
