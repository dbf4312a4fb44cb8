// A sequence's state as bytes, and back.
#include <cassert>
#include <exception>
#include <new>
#include <string>

#include "llama/base/backend.h"
#include "llama/model/context.h"
#include "llama/model/llama_model.h"

namespace outrider::llama {

std::uint64_t LlamaModel::saved_bytes(SeqId seq) const {
  const LogCapture log(file_->log());
  return llama_state_seq_get_size(handle(), seq);
}

Result<std::vector<std::uint8_t>> LlamaModel::save(SeqId seq) {
  assert(seq >= 0 && seq < capabilities_.n_sequences && !tree_ids(seq).open());
  const LogCapture log(file_->log());
  std::vector<std::uint8_t> bytes;
  try {
    bytes.resize(llama_state_seq_get_size(handle(), seq));
    const std::size_t written = llama_state_seq_get_data(handle(), bytes.data(), bytes.size(), seq);
    if (!bytes.empty() && written == bytes.size()) return bytes;
  } catch (const std::bad_alloc&) {
    return resource_exhausted("not enough memory for a copy of a sequence's state");
  } catch (const std::exception& error) {
    return internal_error(std::string("llama.cpp cannot save a sequence: ") + error.what());
  }
  return internal_error("llama.cpp cannot save a sequence" + log.because());
}

// llama.cpp takes the cells that it would take for a batch, so the ledger knows which.
Status LlamaModel::restore(SeqId seq, std::span<const std::uint8_t> bytes, Pos length) {
  assert(seq >= 0 && seq < capabilities_.n_sequences && !any_open() && length >= 0);
  const LostOnThrow guard(*this);
  OUTRIDER_RETURN_IF_ERROR(truncate(seq, 0));
  if (length == 0) return Status();
  if (length > capabilities_.n_ctx) {
    return invalid_argument("a text of " + std::to_string(length) +
                            " tokens does not fit the context of " +
                            std::to_string(capabilities_.n_ctx));
  }
  OUTRIDER_RETURN_IF_ERROR(compact_for(length));
  if (length > ledger_.empty()) {
    return resource_exhausted("the cache has room for " + std::to_string(ledger_.empty()) +
                              " more tokens, and the text has " + std::to_string(length));
  }
  const LogCapture log(file_->log());
  std::size_t read = 0;
  std::string why;
  try {
    read = llama_state_seq_set_data(handle(), bytes.data(), bytes.size(), seq);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    why = std::string(": ") + error.what();
  }
  ledger_.append(seq, length);
  lengths_[static_cast<std::size_t>(seq)] = length;
  const bool whole =
      read == bytes.size() && llama_memory_seq_pos_max(context_->memory, seq) == length - 1;
  if (!whole) {
    forget(seq);
    return invalid_argument("llama.cpp cannot put back a text of " + std::to_string(length) +
                            " tokens" + (why.empty() ? log.because() : why));
  }
  if (llama_memory_seq_pos_min(context_->memory, seq) > 0) {
    shortest_[static_cast<std::size_t>(seq)] = length;
  }
  assert(check_integrity().empty());
  return Status();
}

}  // namespace outrider::llama
