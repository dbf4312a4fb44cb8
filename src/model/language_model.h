// LanguageModel: what the engine needs of a model, target or draft.
//
// A model holds the state of `n_sequences` sequences. A sequence's state is a text of length(seq)
// tokens that the model has seen. Evaluation puts further tokens behind it, on trial; commit keeps
// one path of them for good.
//
//      state of seq:      t0 t1 ... t(n-1)
//      evaluate:                          p0 p1 | root -> tree     prefix, then the tree's nodes
//      commit(path):      t0 t1 ... t(n-1) p0 p1 root a b          the path stays, nothing else
//
// Implementations: llama/llama_model.h (llama.cpp), testing/fake_model.h (hand-written numbers).
// A model is used by one thread at a time; set_interrupt's flag may be raised from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "tree/token_tree.h"

namespace outrider {

// How a model can forget tokens that were on trial.
enum class Rollback {
  kAny,       // any suffix, at no cost (attention caches)
  kSnapshot,  // as far back as the last evaluate()
  kNone,      // not at all: no speculation
};

struct Capabilities {
  std::int32_t n_vocab = 0;
  std::int32_t n_ctx = 0;        // most tokens of one sequence
  std::int32_t n_batch = 0;      // most tokens of one evaluate(), all sequences together
  std::int32_t n_sequences = 0;  // SeqIds are 0 <= id < n_sequences
  Rollback rollback = Rollback::kAny;
  std::int32_t max_leaves = 1;   // of one tree; 1: chains only
  std::int32_t max_width = 0;    // most nodes of one tree (exactness may limit it)
  std::string rollback_reason;   // why not kAny, or empty
};

// One sequence's part of an evaluation.
struct EvalItem {
  SeqId seq = 0;
  std::span<const Token> prefix;    // decided tokens before the root that the model has not seen
  const TokenTree* tree = nullptr;  // logits are computed for each node; null: prefix only
};

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  // Constant for the life of the model. Any thread.
  virtual const Capabilities& capabilities() const = 0;

  // Tokens of `seq` that are in its state for good. REQUIRES: a valid id, here and below.
  virtual Pos length(SeqId seq) const = 0;

  // Tokens that could still be evaluated for `seq` now, prefix and nodes together: bounded by n_ctx
  // and by what the cache has left. May be less than n_batch.
  virtual std::int32_t room(SeqId seq) const = 0;

  // Runs all items (each of another sequence) as one batch. Afterwards logits() may be read and each
  // item's sequence waits for commit().
  // Errors: kInvalidArgument for a token outside the vocabulary or a tree that max_leaves or
  // max_width forbid; kResourceExhausted when cells run out (fewer tokens may do); kCancelled when
  // interrupted; kInternal. On any error every sequence is as before the call.
  // REQUIRES: no sequence waits for a commit; at least one token in all.
  virtual Status evaluate(std::span<const EvalItem> items) = 0;

  // The row for `node` of the item at index `item` of the last evaluate(): [n_vocab] logits of the
  // token that follows the node. Valid until the next evaluate(). Owned by the model.
  virtual std::span<const float> logits(std::size_t item, NodeId node) const = 0;

  // Keeps the prefix and `path` (from the root down, each node the child of the one before; empty:
  // the prefix only) of the item at index `item`, forgets its other nodes.
  // On error the sequence is as before evaluate(), so length() tells what is left.
  virtual Status commit(std::size_t item, std::span<const NodeId> path) = 0;

  // Forgets all but the first `length` tokens of `seq`. 0 always works; others need Rollback::kAny.
  // REQUIRES: 0 <= length <= this->length(seq), and that seq does not wait for a commit.
  virtual Status truncate(SeqId seq, Pos length) = 0;

  // While *flag is true, evaluate() ends early with kCancelled. Null: never. The flag must outlive
  // the model or be replaced first.
  virtual void set_interrupt(const std::atomic<bool>* flag) = 0;
};

}  // namespace outrider
