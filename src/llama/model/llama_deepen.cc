// The probe's mode: a cache that is deep at no cost.
//
// To see what happens beyond 512 cells the cache must hold 512 cells, and a model of 1.8B
// parameters needs half a minute for so long a prompt on two cores. Kernels are chosen by how many
// cells are in use, not by what is in them. So what sequence 0 has is copied: its state is saved,
// read back under the junk id (nothing is parked in this mode), and handed over. It then has
// several cells for one position, which attention does not mind. The ledger counts them as a
// sequence of their own behind the others, so that all else is as ever.
//
// Example: a text of 24 tokens; deepen(254) makes nine copies and a tenth of 14 tokens.
//
// Copies at positions of their own would be a longer text and no exception at all, but moving keys
// to other positions needs a rotation that ggml has for F32 and F16 only: BF16 keys, the usual
// ones, end the process. Tested by llama_deepen_test.cc: a deepened cache shows what a long text
// shows.
#include <algorithm>
#include <cassert>

#include "llama/base/backend.h"
#include "llama/model/context.h"
#include "llama/model/llama_model.h"

namespace outrider::llama {

Status LlamaModel::deepen(std::int32_t cells) {
  const Pos n_text = length(0);
  assert(settings_.for_probe && n_text > 0 && !any_open());
  if (n_text + ledger_.length(copies()) >= cells) return Status();
  if (ledger_.length(copies()) > 0) return unsupported("the cache was deepened before");
  const LogCapture log(file_->log());
  std::vector<std::uint8_t> state(llama_state_seq_get_size(handle(), 0));
  if (llama_state_seq_get_data(handle(), state.data(), state.size(), 0) != state.size()) {
    return unsupported("llama.cpp cannot save this model's state" + log.because());
  }
  // Ids of leaves that hold the text would not hold the copies.
  for (std::int32_t i = 1; i <= tree_ids(0).n_extra(); ++i) {
    llama_memory_seq_rm(context_->memory, tree_ids(0).id(i), -1, -1);
  }
  tree_ids(0).detach();
  shortest_[0] = n_text;
  while (n_text + ledger_.length(copies()) < cells) {
    const std::int32_t missing = cells - n_text - ledger_.length(copies());
    OUTRIDER_RETURN_IF_ERROR(copy_cells(state, std::min(n_text, missing)));
  }
  assert(check_integrity().empty());
  return Status();
}

// `n` more cells of sequence 0: the first `n` of what `state` holds, under the junk id first.
Status LlamaModel::copy_cells(std::span<const std::uint8_t> state, std::int32_t n) {
  const llama_seq_id junk = context_->junk_id;
  const bool read =
      llama_state_seq_set_data(handle(), state.data(), state.size(), junk) == state.size();
  const bool cut = read && llama_memory_seq_rm(context_->memory, junk, n, -1);
  if (cut) copy({.from = junk, .to = 0, .begin = 0, .end = n});
  llama_memory_seq_rm(context_->memory, junk, -1, -1);
  if (!cut || !ledger_.append(copies(), n)) {
    return unsupported("llama.cpp cannot copy this model's state");
  }
  return Status();
}

// The ledger's side of it: llama.cpp's copies go with sequence 0.
void LlamaModel::drop_copies(SeqId seq) {
  if (seq == 0 && settings_.for_probe) ledger_.cut(copies(), 0);
}

}  // namespace outrider::llama
