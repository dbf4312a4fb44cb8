// What LlamaModel has of llama.cpp. For its own files only.
#pragma once

#include <exception>

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

// The ledger, the ids and llama.cpp's cache change one after the other. Where an exception (want of
// memory) comes in between, they would differ from then on, and another sequence's cells could be
// cleared later: so all are emptied.
class LlamaModel::LostOnThrow {
 public:
  explicit LostOnThrow(LlamaModel& model)
      : model_(model), n_exceptions_(std::uncaught_exceptions()) {}
  ~LostOnThrow() {
    if (std::uncaught_exceptions() > n_exceptions_) model_.lose_all();
  }
  LostOnThrow(const LostOnThrow&) = delete;
  LostOnThrow& operator=(const LostOnThrow&) = delete;

 private:
  LlamaModel& model_;
  int n_exceptions_;
};

}  // namespace outrider::llama
