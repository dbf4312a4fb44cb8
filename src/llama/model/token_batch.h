// TokenBatch: the tokens of one llama_decode call, in memory that is taken once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "llama.h"
#include "llama/cells/tree_ids.h"
#include "model/language_model.h"

namespace outrider::llama {

class TokenBatch {
 public:
  void reserve(std::size_t n_tokens);
  void clear();

  std::int32_t n_tokens() const { return static_cast<std::int32_t>(tokens_.size()); }

  // Adds the item's prefix, behind a text of `length` tokens, and the nodes of its tree from
  // first_new on, which have outputs (the prefix with `all_rows` only), and the hidden states that
  // they come with. `ids` has grown to that tree already.
  void add(const EvalItem& item, const TreeIds& ids, Pos length, bool all_rows);

  // Valid until the next change.
  llama_batch view();

 private:
  void add(Token token, Pos pos, bool output);  // its ids are added by themselves

  std::vector<llama_token> tokens_;
  std::vector<llama_pos> positions_;
  std::vector<std::int8_t> outputs_;
  std::vector<float> hidden_;        // [n_tokens, width] of a head; empty for others
  std::vector<std::int32_t> n_ids_;  // of each token
  std::vector<llama_seq_id> ids_;    // one token's after the other's
  std::vector<llama_seq_id*> id_lists_;
};

}  // namespace outrider::llama
