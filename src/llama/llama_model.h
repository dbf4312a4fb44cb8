// LlamaModel: a LanguageModel that runs on llama.cpp.
//
// One context with one unified cache of cells, shared by all sequences. What keeps the results of a
// batch equal to those of single steps, bit for bit, is the order of cells: a sequence's cells only
// ever grow in index (llama/cell_ledger.h decides, this class does it). Rejected cells that may not
// be freed are parked under a sequence id that nobody reads, and when the parked ones are many, the
// live sequences are saved, the cache cleared, and they are put back one after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "llama/cell_ledger.h"
#include "llama/model_file.h"
#include "llama/options.h"
#include "model/language_model.h"

namespace outrider::llama {

struct ContextSettings {
  bool flash_attention = true;
  std::string type_k = "q8_0";  // "f32", "f16", "bf16", "q8_0", "q4_0", ...
  std::string type_v = "q8_0";  // a quantised one needs flash attention
  std::int32_t max_width = 64;  // most nodes of one sequence in one evaluation, >= 1

  // Cells of the cache; 0: n_ctx for each sequence, and some to spare for parked ones. Less than
  // that lets the sequences share what there is (room() tells).
  std::int32_t n_cells = 0;
};

class LlamaModel : public LanguageModel {
 public:
  // Of `options`, n_ctx, n_sequences, n_batch and n_threads are used; what the exactness rule
  // decides comes as `settings`.
  // Errors: kInvalidArgument for a value out of range, an unknown cache type or one that does not
  // fit the others; kUnsupported for a model that cannot generate text; kResourceExhausted when the
  // cache does not fit into memory; kInternal with llama.cpp's reason.
  // A cache type whose blocks do not divide the heads becomes f16, and notes() says so.
  static Result<std::unique_ptr<LlamaModel>> create(std::shared_ptr<ModelFile> file,
                                                    const ModelOptions& options,
                                                    const ContextSettings& settings);
  ~LlamaModel() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  Pos length(SeqId seq) const override;
  std::int32_t room(SeqId seq) const override;
  Status evaluate(std::span<const EvalItem> items) override;
  std::span<const float> logits(std::size_t item, NodeId node) const override;
  Status commit(std::size_t item, std::span<const NodeId> path) override;
  Status truncate(SeqId seq, Pos length) override;
  void set_interrupt(const std::atomic<bool>* flag) override;

  const std::shared_ptr<ModelFile>& file() const { return file_; }
  const ContextSettings& settings() const { return settings_; }  // in effect, n_cells filled in
  std::int32_t n_threads() const { return n_threads_; }
  std::uint64_t cache_bytes() const { return cache_bytes_; }  // keys and values, all cells
  const std::vector<std::string>& notes() const { return notes_; }  // what differs from the wish
  std::int64_t compactions() const { return compactions_; }         // so far

  // Saves the live sequences, clears the cache and puts them back in order, exactly. evaluate()
  // calls it when cells run low; public for tests. REQUIRES: no sequence waits for a commit.
  // Errors: kInternal; the sequences that could not be put back then have length 0.
  Status compact();

  // Empty when the ledger and llama.cpp agree on every sequence (and the ledger with itself), else
  // what is wrong. Asserted after every change in debug builds.
  std::string check_integrity() const;

 private:
  struct Context;  // llama.cpp's handles and the batch

  // One item of the last evaluate().
  struct Pending {
    SeqId seq = 0;
    std::int32_t n_prefix = 0;
    std::int32_t n_nodes = 0;
    std::size_t first_row = 0;      // of its nodes in the logits
    bool open = false;              // waits for commit()
    std::vector<NodeId> parents;    // [n_nodes]
  };

  LlamaModel();
  Status init(const ModelOptions& options);
  Status validate(std::span<const EvalItem> items) const;
  Status validate_item(const EvalItem& item) const;
  Status ensure_cells(std::int32_t n_tokens);
  void fill_batch(std::span<const EvalItem> items);
  Status decode();
  Status undo_evaluate(Status why);
  Status drop_suffix(SeqId seq, Pos length);
  bool interrupted() const;

  std::shared_ptr<ModelFile> file_;
  ContextSettings settings_;
  Capabilities capabilities_;
  std::unique_ptr<Context> context_;
  CellLedger ledger_;
  std::vector<Pending> pending_;
  std::size_t n_pending_ = 0;         // items of the last evaluate(); pending_ keeps its memory
  const float* rows_ = nullptr;       // [n_rows_, n_vocab]
  std::size_t n_rows_ = 0;
  std::vector<Pos> kept_from_;        // [n_sequences] see truncate()
  const std::atomic<bool>* interrupt_ = nullptr;
  std::int32_t n_threads_ = 0;
  std::int32_t n_outputs_max_ = 0;    // most rows of one evaluation
  std::uint64_t cache_bytes_ = 0;
  std::int64_t compactions_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace outrider::llama
