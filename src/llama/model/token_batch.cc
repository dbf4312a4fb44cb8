#include "llama/model/token_batch.h"

namespace outrider::llama {

void TokenBatch::reserve(std::size_t n_tokens) {
  tokens_.reserve(n_tokens);
  positions_.reserve(n_tokens);
  outputs_.reserve(n_tokens);
  n_ids_.reserve(n_tokens);
  ids_.reserve(n_tokens);
  id_lists_.reserve(n_tokens);
}

void TokenBatch::clear() {
  tokens_.clear();
  positions_.clear();
  outputs_.clear();
  hidden_.clear();
  n_ids_.clear();
  ids_.clear();
}

void TokenBatch::add(Token token, Pos pos, bool output) {
  tokens_.push_back(token);
  positions_.push_back(pos);
  outputs_.push_back(output ? 1 : 0);
}

void TokenBatch::add(const EvalItem& item, const TreeIds& ids, Pos length, bool all_rows) {
  hidden_.insert(hidden_.end(), item.hidden.begin(), item.hidden.end());
  Pos pos = length;
  for (const Token token : item.prefix) {
    add(token, pos++, /*output=*/all_rows);
    n_ids_.push_back(ids.n_ids());
    for (std::int32_t i = 0; i < ids.n_ids(); ++i) ids_.push_back(ids.id(i));
  }
  for (NodeId id = item.first_new; id < ids.n_nodes(); ++id) {
    const TokenTree::Node& node = item.tree->node(id);
    add(node.token, ids.base() + node.depth, /*output=*/true);
  }
  ids.list_ids(item.first_new, &ids_, &n_ids_);
}

llama_batch TokenBatch::view() {
  id_lists_.clear();
  std::size_t first = 0;
  for (const std::int32_t n : n_ids_) {
    id_lists_.push_back(&ids_[first]);
    first += static_cast<std::size_t>(n);
  }
  return {.n_tokens = n_tokens(),
          .token = tokens_.data(),
          .embd = hidden_.empty() ? nullptr : hidden_.data(),
          .pos = positions_.data(),
          .n_seq_id = n_ids_.data(),
          .seq_id = id_lists_.data(),
          .logits = outputs_.data()};
}

}  // namespace outrider::llama
