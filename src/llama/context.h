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

  std::int32_t n_tokens = 0;        // in the batch
  std::vector<llama_token> tokens;  // [n_batch], as all below
  std::vector<llama_pos> positions;
  std::vector<llama_seq_id> ids;
  std::vector<llama_seq_id*> id_lists;  // id_lists[i] = &ids[i]
  std::vector<std::int32_t> n_ids;      // all 1
  std::vector<std::int8_t> outputs;

  void reserve(std::size_t n_batch) {
    tokens.resize(n_batch);
    positions.resize(n_batch);
    ids.resize(n_batch);
    id_lists.resize(n_batch);
    for (std::size_t i = 0; i < n_batch; ++i) id_lists[i] = &ids[i];
    n_ids.assign(n_batch, 1);
    outputs.resize(n_batch);
  }

  llama_batch batch() {
    return {.n_tokens = n_tokens,
            .token = tokens.data(),
            .embd = nullptr,
            .pos = positions.data(),
            .n_seq_id = n_ids.data(),
            .seq_id = id_lists.data(),
            .logits = outputs.data()};
  }
};

}  // namespace outrider::llama
