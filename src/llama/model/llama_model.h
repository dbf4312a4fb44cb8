// LlamaModel: a LanguageModel that runs on llama.cpp.
//
// One context with one unified cache of cells, shared by all sequences. What keeps the results of a
// batch equal to those of single steps, bit for bit, is the order of cells: a sequence's cells only
// ever grow in index (llama/cells/cell_ledger.h decides, this class does it). Rejected cells that
// may not be freed are parked under a sequence id that nobody reads, and when the parked ones are
// many, the live sequences are saved, the cache cleared, and they are put back one after the other.
//
// Trees: one of llama.cpp's sequence ids per leaf, cells shared (llama/cells/tree_ids.h). There are
// 256 ids: one of each sequence, the junk id, and the others are divided among the sequences, which
// bounds the leaves of a tree. Chains use their sequence's id alone.
//
// Models with recurrent layers take chains only, by llama.cpp's snapshots of their state or by
// copies of it, or single tokens where neither works (llama/model/llama_rollback.cc). When an
// evaluation of theirs fails or is interrupted half way, a sequence cannot always be as before: it
// then has length 0, or keeps its prefix.
//
// Trained heads: a context can hand out hidden states (ContextSettings::hidden), or be that of a
// file's prediction layers or of a head's file, whose tokens come with such states
// (llama/heads/hidden_states.h). The prediction layers are in a cache of their own, which has no
// recurrent part. The head in a file of its own (EAGLE-3) makes logits of all rows of a batch or of
// none.
//
// The probe of exactness runs on a small one (ContextSettings::for_probe), whose cache can be made
// deep at no cost (llama/model/llama_deepen.cc).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/machine_memory.h"
#include "base/status.h"
#include "llama/cells/cell_ledger.h"
#include "llama/cells/tree_ids.h"
#include "llama/files/model_file.h"
#include "llama/heads/hidden_states.h"
#include "model/language_model.h"
#include "model/model_options.h"

struct llama_context;

namespace outrider::llama {

struct ContextSettings {
  bool flash_attention = true;
  // Flash attention where a device has it for this model's heads and cache types: llama.cpp looks,
  // and LlamaModel::settings() says. Else it is computed on the processor, to which the whole cache
  // is copied in each pass.
  bool flash_if_supported = false;
  std::string type_k = "bf16";             // "f32", "f16", "bf16", "q8_0", "q4_0", ...
  std::string type_v = "f16";              // a quantised one needs flash attention
  std::int32_t max_width = kMaxStepWidth;  // most nodes of one sequence in one evaluation, >= 1

  float rope_freq_base = 0.0f;  // as ModelOptions has them; 0: the file's
  float rope_freq_scale = 0.0f;

  // On how many cores it computes; see ComputeThreads.
  threads::Cores cores = threads::Cores::kAsked;

  // Cells of the cache; 0: n_ctx for each sequence, and some to spare for parked ones. Less than
  // that lets the sequences share what there is (room() tells).
  std::int32_t n_cells = 0;

  // False: rejected cells are given back at once, in any order. Saves cells, and loses the equality
  // of batches and single steps as soon as there are several sequences (llama/cells/cell_ledger.h).
  bool keep_cell_order = true;

  // What it hands out; batches then have at most kMostHiddenBatch tokens.
  HiddenStates hidden;
  // The file's prediction layers instead of the model itself. REQUIRES: a file that was loaded with
  // them.
  bool prediction = false;
  std::int32_t prediction_layer = 0;  // which of them runs
  // The file is a trained head of its own (EAGLE-3), for the target with this context, whose
  // embedding and output it uses where it has none. Must outlive the model.
  llama_context* head_of = nullptr;

  bool is_head() const { return prediction || head_of != nullptr; }

  // For the probe of exactness, on a model that was opened before: what it can take back is not
  // tried once more, the order of cells is not kept, and deepen() may be called.
  bool for_probe = false;
};

// Error: kInvalidArgument for a quantised cache for values without flash attention.
Status check_value_cache(const ContextSettings& settings);

struct ContextSizes;  // llama/model/context_params.h

class LlamaModel : public LanguageModel {
 public:
  // Of `options`, n_ctx, n_sequences, n_batch and n_threads are used; what the exactness rule
  // decides comes as `settings`.
  // Errors: kInvalidArgument for a value out of range, an unknown cache type or one that does not
  // fit the others; kUnsupported for a model that cannot generate text; kResourceExhausted when the
  // cache does not fit into memory; kInternal with llama.cpp's reason.
  // Hidden states that cannot be had are not handed out, and capabilities().hidden_reason says why.
  // A cache type whose blocks do not divide the heads becomes f16, and notes() says so. Takes up to
  // ten single steps, which show what the model can take back (capabilities().rollback,
  // max_leaves).
  static Result<std::unique_ptr<LlamaModel>> create(std::shared_ptr<ModelFile> file,
                                                    const ModelOptions& options,
                                                    const ContextSettings& settings);
  ~LlamaModel() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  Pos length(SeqId seq) const override;
  std::int32_t room(SeqId seq) const override;
  Status evaluate(std::span<const EvalItem> items) override;
  std::span<const float> logits(std::size_t item, NodeId node) const override;
  std::span<const float> hidden(std::size_t item, std::size_t token) const override;
  Status encode(std::span<const float> rows, std::vector<float>* encoded) override;
  Status commit(SeqId seq, std::span<const NodeId> path) override;

  // Besides what LanguageModel says: a model with a sliding window whose cache has been compacted
  // has lost what lay before the window, so lengths below the one at that time are kUnsupported.
  Status truncate(SeqId seq, Pos length) override;

  // The same cells get another id: nothing is copied, and they are given back when the last
  // sequence that reads them is gone. For models whose whole state is in the cache of cells, and
  // without a sliding window, whose cells are lost when the cache is rebuilt.
  Status share(SeqId from, SeqId to, Pos length) override;
  Result<std::vector<std::uint8_t>> save(SeqId seq) override;
  std::uint64_t saved_bytes(SeqId seq) const override;
  Status restore(SeqId seq, std::span<const std::uint8_t> bytes, Pos length) override;
  void set_interrupt(const std::atomic<bool>* flag) override;

  const std::shared_ptr<ModelFile>& file() const { return file_; }
  const ContextSettings& settings() const { return settings_; }  // in effect, n_cells filled in
  void compute_on(threads::Cores cores) { settings_.cores = cores; }  // from now on
  std::int32_t n_threads() const { return n_threads_; }
  // Keys and values of all cells, and the states of recurrent layers.
  std::uint64_t cache_bytes() const { return cache_bytes_; }
  const std::vector<std::string>& notes() const {
    return notes_;
  }                                                          // where it departs from the wish
  std::int64_t compactions() const { return compactions_; }  // so far

  // Saves the live sequences, clears the cache and puts them back in order, exactly; needs memory
  // for a copy of their cells meanwhile (1 ms for 300 tokens of SmolLM2-135M). evaluate() calls it
  // when cells run low or many are parked (of a model with a sliding window in the first case only,
  // since its texts cannot be cut any more behind it); public for tests.
  // REQUIRES: no sequence waits for a commit, and none is deepened.
  // Errors: kResourceExhausted where less memory is free than that copy takes, with nothing
  // changed; kInternal, and the sequences that could not be put back then have length 0.
  Status compact();
  // Where that is due before `n` more tokens. One that is only advisable, and finds no memory, is
  // left for later: the tokens fit without it.
  Status compact_for(std::int32_t n);
  // Instead of what the machine has left (base/machine_memory.h), for tests.
  void ask_for_memory(std::function<std::uint64_t()> free_bytes) {
    free_memory_ = std::move(free_bytes);
  }

  // Copies cells of sequence 0 until `cells` are in use, which it then reads as well. Its length
  // stays; until it is emptied, and the copies go with it, it cannot be cut below that. No effect
  // when as many are in use. 500 cells take 2 ms.
  // REQUIRES: settings().for_probe; sequence 0 is not empty, the others are, and nothing waits for
  // a commit. Errors: kUnsupported when llama.cpp cannot copy this model's state, or it was
  // deepened before to fewer cells; sequence 0 may then read some copies, as above.
  Status deepen(std::int32_t cells);

  // Empty when the ledger and llama.cpp agree on every sequence (and the ledger with itself), else
  // what is wrong. Asserted after every change in debug builds.
  std::string check_integrity() const;

  const CellLedger& ledger() const { return ledger_; }
  llama_context* handle() const;  // for this layer, and for tests

 private:
  struct Context;     // llama.cpp's context and the batch
  class LostOnThrow;  // what changes the cache is whole, or nothing is left of any sequence

  // One item of the last evaluate().
  struct Evaluated {
    SeqId seq = 0;
    NodeId first_new = 0;
    NodeId end = 0;                // of the tree
    std::size_t first_row = 0;     // of its new nodes in the logits (n_rows_)
    std::size_t first_hidden = 0;  // of its tokens' rows in hidden_
  };

  // The recurrent part of a sequence's state, copied when the sequence had this length; -1: none.
  struct Saved {
    std::vector<std::uint8_t> data;
    Pos length = -1;
  };

  LlamaModel();

  // llama_context.cc: making the context, and what changes the cache as a whole.
  Status choose_cache_types();
  Status choose_sizes(const ModelOptions& options);
  Status make_context(const ContextSizes& sizes);
  void set_hidden();
  bool has_recurrent_part() const;

  struct SavedCells;
  std::uint64_t bytes_to_save() const;
  Status check_memory_to_compact() const;
  bool save_cells(SavedCells& saved);
  void share_again(const SavedCells& saved);
  bool put_back(const SavedCells& saved);

  // llama_rollback.cc: taking back without dropping cells. (What can be, rollback_check.h finds;
  // save() and restore() are in llama_save.cc.)
  Status evaluate_saving(std::span<const EvalItem> items);
  Status save_state(SeqId seq);
  bool restore_state(SeqId seq);
  void join_hidden(std::span<const EvalItem> items, std::span<const EvalItem> prefixes,
                   const std::vector<float>& of_prefixes);
  Status commit_state(SeqId seq, std::span<const NodeId> path);

  // llama_deepen.cc: the probe's mode.
  SeqId copies() const { return capabilities_.n_sequences; }  // what the ledger calls them
  Status copy_cells(std::span<const std::uint8_t> state, std::int32_t n);
  void drop_copies(SeqId seq);

  // llama_model.cc: the step.
  Status run(std::span<const EvalItem> items);
  Status validate(std::span<const EvalItem> items) const;
  Status validate_item(const EvalItem& item) const;
  Status validate_growth(const EvalItem& item) const;
  Status validate_tokens(const EvalItem& item) const;
  Status prepare_batch(std::span<const EvalItem> items, std::int32_t n_tokens);
  void add_to_batch(const EvalItem& item, bool all_rows);
  Status decode(bool* out_of_cells);
  Status take_hidden();
  Status encode_piece(std::span<const float> rows, std::vector<float>* encoded);
  bool interrupted() const;
  bool any_open() const;
  TreeIds& tree_ids(SeqId seq) { return tree_ids_[static_cast<std::size_t>(seq)]; }
  const TreeIds& tree_ids(SeqId seq) const { return tree_ids_[static_cast<std::size_t>(seq)]; }

  // llama_commit.cc: its end.
  Status undo_evaluate(const Status& why);
  Status check_path(SeqId seq, std::span<const NodeId> path) const;
  Status settle(SeqId seq, bool kept, std::span<const NodeId> path);
  Status drop_suffix(SeqId seq, Pos length);
  Status take(const std::vector<TreeIds::Removal>& removed);
  void copy(const TreeIds::Copy& copy);
  void clear_cache();
  void forget(SeqId seq);
  void lose_all();

  std::shared_ptr<ModelFile> file_;
  ContextSettings settings_;
  Capabilities capabilities_;
  std::int32_t n_threads_ = 0;
  std::int32_t n_outputs_max_ = 0;  // most rows of one evaluation
  std::uint64_t cache_bytes_ = 0;
  std::vector<std::string> notes_;
  const std::atomic<bool>* interrupt_ = nullptr;
  LogSink decode_log_;  // the file's; silent while interrupted, which llama.cpp calls an error

  std::unique_ptr<Context> context_;
  CellLedger ledger_;              // with the tentative tokens
  std::vector<Pos> lengths_;       // [n_sequences] without them
  std::vector<Pos> shortest_;      // [n_sequences] see truncate() and sliding windows
  std::vector<TreeIds> tree_ids_;  // [n_sequences]
  std::vector<Saved> saved_;       // [n_sequences]
  std::int32_t n_snapshots_ = 0;   // tokens that llama.cpp can take back in a recurrent state
  bool state_touched_ = false;     // by the last decode(), if it failed
  std::vector<Evaluated> evaluated_;
  std::vector<TreeIds::Copy> copies_;  // these three: kept for their memory
  std::vector<std::int32_t> cells_;
  std::vector<std::int32_t> offsets_;
  const float* rows_ = nullptr;  // [n_rows_, n_vocab]
  std::vector<float> hidden_;    // [tokens of the last evaluate(), n_hidden]
  std::size_t n_rows_ = 0;
  std::int64_t compactions_ = 0;
  std::function<std::uint64_t()> free_memory_ = [] { return free_memory(); };
};

}  // namespace outrider::llama
