// ProbeContext: a small llama.cpp context for the probe, which can be made deep at no cost.
//
// Why not LlamaModel. To see what happens beyond 512 cells the cache must hold 512 cells, and a
// model of 1.8B parameters needs half a minute for so long a prompt on two cores. Kernels are
// chosen by how many cells are in use, not by what is in them. So deepen() copies what the sequence
// has (saved state, read back under another id, handed over): 500 cells in 2 ms. The sequence then
// has several cells for one position, which attention does not mind and LlamaModel's ledger would.
//
// Example: a text of 24 tokens, deepen(254) makes nine copies and a tenth of 14 tokens.
//
// Context parameters that influence kernels are LlamaModel's: flash attention, cache types,
// threads, one unified cache, full windows. Small trees; cells are given back at once, so a text
// must not go on from a side branch. Not thread safe. Tested by probe_context_test.cc: rows equal
// LlamaModel's, and a deepened cache shows what a long text shows.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "llama/cells/tree_ids.h"
#include "llama/files/model_file.h"
#include "llama/model/llama_model.h"
#include "model/language_model.h"
#include "model/model_options.h"

namespace outrider::llama {

class ProbeContext : public LanguageModel {
 public:
  // Of `options`, n_sequences (up to 3), n_batch (up to 512) and n_threads are used. `settings` as
  // for LlamaModel, which also checks them: a cache type that does not fit the heads is an error
  // here. `n_cells`: of the cache, at least 64. `widest`: most nodes of one evaluation.
  static Result<std::unique_ptr<ProbeContext>> create(std::shared_ptr<ModelFile> file,
                                                      const ModelOptions& options,
                                                      const ContextSettings& settings,
                                                      std::int32_t n_cells, std::int32_t widest);
  ~ProbeContext() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  Pos length(SeqId seq) const override { return lengths_[static_cast<std::size_t>(seq)]; }
  std::int32_t room(SeqId seq) const override;
  Status evaluate(std::span<const EvalItem> items) override;
  std::span<const float> logits(std::size_t item, NodeId node) const override;
  Status commit(SeqId seq, std::span<const NodeId> path) override;
  Status truncate(SeqId seq, Pos length) override;
  void set_interrupt(const std::atomic<bool>* flag) override { interrupt_ = flag; }

  // Copies cells of sequence 0 until `cells` are in use. Its length stays; the copies go when it is
  // truncated below the length it has now. REQUIRES: sequence 0 is not empty, the others are, and
  // nothing waits for a commit. No effect when as many are in use.
  // Errors: kUnsupported when llama.cpp cannot copy this model's state.
  Status deepen(std::int32_t cells);

 private:
  struct Handles;
  struct Pending {
    SeqId seq = 0;
    std::int32_t first_output = 0;  // index in the batch of its root
  };

  ProbeContext();
  Status copy_cells(std::span<const std::uint8_t> state, std::int32_t n);
  void add_to_batch(const EvalItem& item);
  bool take(const std::vector<TreeIds::Removal>& removed);
  void drop_leaf_ids(SeqId seq);
  bool interrupted() const;

  std::shared_ptr<ModelFile> file_;
  Capabilities capabilities_;
  std::unique_ptr<Handles> handles_;
  std::vector<Pos> lengths_;      // [n_sequences] kept tokens
  std::vector<TreeIds> trials_;   // [n_sequences]
  std::int32_t copied_ = 0;       // cells of sequence 0 that are copies
  Pos copied_from_ = 0;           // its length when they were made
  std::vector<Pending> pending_;  // the items of the last evaluate()
  const std::atomic<bool>* interrupt_ = nullptr;
};

}  // namespace outrider::llama
