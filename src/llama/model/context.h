// What LlamaModel has of llama.cpp. For its own files only.
#pragma once

#include "llama/base/handles.h"
#include "llama/model/llama_model.h"
#include "llama/model/token_batch.h"

namespace outrider::llama {

// The context, and a batch whose memory is taken once.
struct LlamaModel::Context {
  ContextHandle handle;
  llama_memory_t memory = nullptr;  // of the context

  // Cells that nobody reads are parked under this id; no batch ever names it. The highest one, so
  // that ids of leaves have room above the sequences'.
  llama_seq_id junk_id = 0;

  TokenBatch batch;
};

}  // namespace outrider::llama
