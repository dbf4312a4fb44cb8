// LlamaBlockModel: a DFlash head as a BlockModel, on llama.cpp.
//
// One context of the head's file, beside the target's, whose embedding and output it may use. A
// batch of states fills cells with keys and values; a batch of the root and of mask tokens gives
// the logits of a block, attends to itself in both directions, and leaves cells that nobody needs:
// they are given back at once. What the head makes of a text need not be exact, since the target's
// choice does not depend on it; so cells are taken and given back in any order.
//
// The cache is f16 whatever the target's is: a quantised one costs much of what a head gets right.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "llama/base/handles.h"
#include "llama/files/model_file.h"
#include "llama/heads/head_file.h"
#include "llama/model/llama_model.h"
#include "model/block_model.h"
#include "model/model_options.h"

namespace outrider::llama {

class LlamaBlockModel : public BlockModel {
 public:
  // Of `options`, n_ctx, n_sequences and n_threads are used. `target` must outlive the model.
  // REQUIRES: `file` is a DFlash head that fits the target, which hands out the states that the
  // head reads (llama/heads/head_file.h). Errors: kInvalidArgument for a value out of range;
  // kResourceExhausted when the cache does not fit into memory; kInternal with llama.cpp's reason.
  static Result<std::unique_ptr<LlamaBlockModel>> create(std::shared_ptr<ModelFile> file,
                                                         const LlamaModel& target,
                                                         const ModelOptions& options,
                                                         const BlockShape& block);

  const BlockCapabilities& capabilities() const override { return capabilities_; }
  Pos length(SeqId seq) const override { return lengths_[static_cast<std::size_t>(seq)]; }
  Status read(std::span<const BlockText> items) override;
  Status guess(std::span<const BlockRoot> items) override;
  std::span<const float> logits(std::size_t item, std::int32_t depth) const override;
  Status truncate(SeqId seq, Pos length) override;
  Status share(SeqId from, SeqId to, Pos length) override;
  void set_interrupt(const std::atomic<bool>* flag) override { interrupt_ = flag; }

  const std::shared_ptr<ModelFile>& file() const { return file_; }
  std::uint64_t cache_bytes() const { return cache_bytes_; }

  // Empty when llama.cpp holds of each sequence what length() says, else what differs.
  std::string check_integrity() const;

 private:
  // A llama_decode call, in memory that is kept.
  struct Batch {
    std::vector<llama_token> tokens;
    std::vector<float> states;  // in place of tokens
    std::vector<llama_pos> positions;
    std::vector<std::int32_t> n_ids;
    std::vector<llama_seq_id> ids;
    std::vector<llama_seq_id*> id_lists;
    std::vector<std::int8_t> outputs;
  };

  LlamaBlockModel() = default;
  Status make_context(const LlamaModel& target, const ModelOptions& options);
  void begin_batch();
  void add(SeqId seq, Pos position, bool output);
  Status decode();
  bool drop_from(SeqId seq, Pos length);
  bool interrupted() const;

  std::shared_ptr<ModelFile> file_;
  BlockShape block_;
  BlockCapabilities capabilities_;
  ContextHandle context_;
  llama_memory_t memory_ = nullptr;  // of the context
  bool many_positions_ = false;      // a state comes with several (M-RoPE)
  std::uint64_t cache_bytes_ = 0;
  std::vector<Pos> lengths_;  // [n_sequences]
  Batch batch_;
  std::vector<std::size_t> first_rows_;  // [items of the last guess()]
  const float* rows_ = nullptr;          // [tokens of the last guess(), n_vocab]
  const std::atomic<bool>* interrupt_ = nullptr;
  LogSink decode_log_;  // the file's; silent while interrupted, which llama.cpp calls an error
};

}  // namespace outrider::llama
