// LlamaModel's hold on llama.cpp. For its own files only.
#pragma once

#include <cstdint>
#include <vector>

#include "llama/handles.h"
#include "llama/llama_model.h"

namespace outrider::llama {

// The context, and a batch whose memory is taken once.
struct LlamaModel::Context {
  ContextHandle handle;
  llama_memory_t memory = nullptr;  // of the context

  // Cells that nobody reads are parked under this id; no batch ever names it. The highest one, so
  // that ids of leaves have room above the sequences'.
  llama_seq_id junk_id = 0;

  std::vector<llama_token> tokens;  // of the batch, as all below
  std::vector<llama_pos> positions;
  std::vector<std::int8_t> outputs;
  std::vector<std::int32_t> n_ids;  // of each token
  std::vector<llama_seq_id> ids;    // one token's after the other's
  std::vector<llama_seq_id*> id_lists;

  std::int32_t n_tokens() const { return static_cast<std::int32_t>(tokens.size()); }

  void reserve(std::size_t n_batch) {
    tokens.reserve(n_batch);
    positions.reserve(n_batch);
    outputs.reserve(n_batch);
    n_ids.reserve(n_batch);
    ids.reserve(n_batch);
    id_lists.reserve(n_batch);
  }

  void clear() {
    tokens.clear();
    positions.clear();
    outputs.clear();
    n_ids.clear();
    ids.clear();
  }

  // The ids are added by themselves: n_ids and ids.
  void add(Token token, Pos pos, bool output) {
    tokens.push_back(token);
    positions.push_back(pos);
    outputs.push_back(output ? 1 : 0);
  }

  // Valid until the next change.
  llama_batch batch() {
    id_lists.clear();
    std::size_t first = 0;
    for (const std::int32_t n : n_ids) {
      id_lists.push_back(&ids[first]);
      first += static_cast<std::size_t>(n);
    }
    return {.n_tokens = n_tokens(),
            .token = tokens.data(),
            .embd = nullptr,
            .pos = positions.data(),
            .n_seq_id = n_ids.data(),
            .seq_id = id_lists.data(),
            .logits = outputs.data()};
  }
};

}  // namespace outrider::llama
