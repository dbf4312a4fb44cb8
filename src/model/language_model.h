// LanguageModel: what the engine needs of a model, target or draft.
//
// A model holds the state of `n_sequences` sequences. A sequence's state is a text of length(seq)
// tokens that the model has seen. Evaluation puts tentative tokens behind it; commit keeps one path
// of them and forgets the others.
//
//      state of seq:      t0 t1 ... t(n-1)
//      evaluate:                          p0 p1 | root -> tree     prefix, then the tree's nodes
//      evaluate:                                    tree -> more   the tree has grown (optional)
//      commit(path):      t0 t1 ... t(n-1) p0 p1 root a b          the path stays, nothing else
//
// Sequences are independent of each other: some may wait for their commit while others are
// evaluated. A tree that grows level by level (a draft model's) is never run twice:
//
//      evaluate {tree: the, first_new: 0}               logits of `the` propose cat, dog
//      evaluate {tree: the, cat, dog, first_new: 1}     logits of cat and dog propose further nodes
//      commit(path)
//
// Models that cannot drop a part of their state (recurrent layers) may keep less than the path:
// length() then tells what is left, and the caller evaluates the rest again as a prefix.
//
// Trained heads (docs/glossary.md) guess from the target's hidden states. A target that hands them
// out gives one row with each token that it evaluates; the model of a head takes one row with each
// token: the target's, or, behind tokens that it has guessed itself, its own.
//
// A model that runs elsewhere can be gone for good (its process has died). From then on every call
// fails with kInternal and the same message, which says what happened, and all lengths are 0.
//
// Implementations: llama/model/llama_model.h (llama.cpp), remote/remote_model.h (any of the others,
// in a child process), testing/fake_model.h (hand-written numbers). A model is used by one thread
// at a time; set_interrupt's flag may be raised from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "tree/token_tree.h"

namespace outrider {

// How a model can forget tentative tokens.
enum class Rollback {
  kAny,       // any suffix, at no cost (attention caches)
  kSnapshot,  // commit keeps any path of chains; nothing that was committed can be taken back
  kSaved,     // commit keeps a whole chain, or only what stood before its root
  kNone,      // not at all: no speculation
};

struct Capabilities {
  std::int32_t n_vocab = 0;
  std::int32_t n_ctx = 0;        // most tokens of one sequence
  std::int32_t n_batch = 0;      // most tokens of one evaluate(), all sequences together
  std::int32_t n_sequences = 0;  // SeqIds are 0 <= id < n_sequences
  Rollback rollback = Rollback::kAny;
  std::int32_t max_leaves = 1;  // of one tree; 1: chains only
  std::int32_t max_width = 0;   // most nodes of one tree (exactness may limit it)
  std::string rollback_reason;  // why not kAny, or empty
  std::string branches_reason;  // why max_leaves is 1, or empty
  bool can_share = false;       // share() works

  // Floats of the row that hidden() gives for each token; 0: it gives none, and hidden_reason says
  // why where that was asked for.
  std::int32_t n_hidden = 0;
  std::string hidden_reason;
  // Floats of the row that each token comes with (EvalItem::hidden); 0: tokens come alone.
  std::int32_t n_hidden_in = 0;
  // Floats of a target's row where encode() makes n_hidden_in of them first; 0: the target's rows
  // are taken as they are.
  std::int32_t n_encoded = 0;

  // Most tokens of one sequence in an evaluate() of its tree alone: the widest pass that can be
  // measured or probed. What a step may have: engine/step_width.h.
  std::int32_t widest_pass() const { return std::min(max_width, n_batch); }
};

// One sequence's part of an evaluation.
struct EvalItem {
  SeqId seq = 0;
  std::span<const Token> prefix;    // decided tokens before the root that the model has not seen
  const TokenTree* tree = nullptr;  // logits are computed for each new node; null: prefix only

  // 0: a new tree. Else the tree of this sequence's earlier evaluations, which has grown: the nodes
  // below first_new are the tentative ones, at the same ids, and the others are run. The prefix is
  // empty then.
  NodeId first_new = 0;

  // [prefix, then new nodes; n_hidden_in] what a head reads with each token: the hidden state of
  // the token before it. Zeros where there is none. Empty for models that take none.
  std::span<const float> hidden = {};
};

// Where memory runs out half-way a call may throw std::bad_alloc. Nothing is left of any sequence
// then; truncate() to 0 still works.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  // Constant for the life of the model. Any thread.
  virtual const Capabilities& capabilities() const = 0;

  // Tokens of `seq` that are committed. REQUIRES: a valid id, here and below.
  virtual Pos length(SeqId seq) const = 0;

  // Tokens that could still be evaluated for `seq` now, prefix and nodes together (besides
  // tentative ones): bounded by n_ctx and by what the cache has left. May be less than n_batch.
  virtual std::int32_t room(SeqId seq) const = 0;

  // Whether `more` could be evaluated now behind the text of `seq`, as far as room() can tell.
  // Another answer than room()'s where a token of the caller is several of the model's (or none).
  // REQUIRES: seq does not wait for a commit; tokens of the vocabulary.
  virtual bool has_room_for(SeqId seq, std::span<const Token> more) {
    return more.size() <= static_cast<std::size_t>(room(seq));
  }

  // Runs all items (each of another sequence) as one batch. Afterwards logits() may be read and
  // each item's sequence waits for commit(). Errors: kInvalidArgument for a token outside the
  // vocabulary, a tree that max_leaves or max_width forbid (all of its nodes count), or a grown
  // tree that has nothing new or is not the tentative one; kUnsupported for a grown tree when
  // rollback is not kAny; kResourceExhausted when cells run out (fewer tokens may do); kCancelled
  // when interrupted; kInternal. On any error every sequence is as before the call: what was
  // tentative still is. Except that with a rollback other than kAny a sequence may have lost more,
  // or have committed a beginning of the prefix: length() tells. REQUIRES: a sequence that waits
  // for a commit comes only with a grown tree (first_new > 0), and no other does; at least one
  // token in all.
  virtual Status evaluate(std::span<const EvalItem> items) = 0;

  // The row for `node` of the item at index `item` of the last evaluate(): [n_vocab] logits of the
  // token that follows the node. Valid until the next evaluate(). Owned by the model.
  // REQUIRES: that evaluate() succeeded; the item's first_new <= node < size of its tree.
  virtual std::span<const float> logits(std::size_t item, NodeId node) const = 0;

  // The hidden state of a token of the item at index `item` of the last evaluate(): [n_hidden].
  // `token` counts the item's prefix, then its new nodes. Valid until the next evaluate(). Owned by
  // the model. REQUIRES: that evaluate() succeeded; n_hidden > 0; the item has so many tokens.
  virtual std::span<const float> hidden(std::size_t /*item*/, std::size_t /*token*/) const {
    return {};
  }

  // What a head reads of the target's rows, [rows, n_encoded] one behind the other: appends
  // [rows, n_hidden_in] to `encoded`. Voids what logits() and hidden() gave. On error nothing is
  // appended: kCancelled when interrupted; kResourceExhausted; kInternal.
  // REQUIRES: n_encoded > 0.
  virtual Status encode(std::span<const float> /*rows*/, std::vector<float>* /*encoded*/) {
    return unsupported("this model encodes nothing");
  }

  // Keeps the prefix and `path` (from the root down, each node the child of the one before; empty:
  // the prefix only) of the tentative tokens of `seq`, forgets the others.
  // When rollback is not kAny, less may be kept: a beginning of the text, down to nothing. It is
  // never less when the path holds all nodes, nor with kSnapshot when it holds the root.
  // On error the sequence is as before its first evaluate(), or shorter: length() tells.
  // REQUIRES: seq waits for a commit.
  virtual Status commit(SeqId seq, std::span<const NodeId> path) = 0;

  // Forgets all but the first `length` tokens of `seq`. 0 always works, and also forgets what is
  // tentative, unless the model is gone for good (above); others need Rollback::kAny.
  // REQUIRES: 0 <= length <= this->length(seq), and that seq does not wait for a commit unless
  // length is 0.
  virtual Status truncate(SeqId seq, Pos length) = 0;

  // `to` begins anew with the first `length` tokens of `from`, without computing them: what it held
  // is gone. `from` stays as it is, also what is tentative. From then on the two are independent,
  // whatever becomes of the other. Takes little time and next to no memory, and room() may tell of
  // more than the lengths would leave. Errors: kUnsupported without can_share; kInternal; `to` is
  // empty then. REQUIRES: from != to; 0 <= length <= length(from).
  virtual Status share(SeqId /*from*/, SeqId to, Pos /*length*/) {
    const Status cleared = truncate(to, 0);
    return cleared.ok() ? unsupported("this model's sequences cannot share a text") : cleared;
  }

  // What `seq` holds, as bytes for restore() of this model, or of one of the same file, options and
  // build. Errors: kUnsupported where the model cannot give it; kResourceExhausted; kInternal.
  // REQUIRES: seq does not wait for a commit.
  virtual Result<std::vector<std::uint8_t>> save(SeqId /*seq*/) {
    return unsupported("the model's state cannot be saved");
  }

  // How many bytes save() would give; nothing is copied. 0: not known.
  virtual std::uint64_t saved_bytes(SeqId /*seq*/) const { return 0; }

  // `seq` holds what was saved, a text of `length` tokens; what it held is gone. Errors:
  // kUnsupported; kInvalidArgument for bytes that save() of such a model cannot have given;
  // kResourceExhausted when cells run out; kInternal; `seq` is empty then. REQUIRES: the bytes are
  // as save() gave them (whoever keeps them checks that); no sequence waits for a commit.
  virtual Status restore(SeqId seq, std::span<const std::uint8_t> /*bytes*/, Pos /*length*/) {
    const Status cleared = truncate(seq, 0);
    return cleared.ok() ? unsupported("the model's state cannot be restored") : cleared;
  }

  // Not ok when the model is gone for good (a process of its own that died): every call fails from
  // then on. The status says what happened.
  virtual Status health() const { return Status(); }

  // While *flag is true, evaluate() ends early with kCancelled. Null: never. The flag must outlive
  // the model or be replaced first.
  virtual void set_interrupt(const std::atomic<bool>* flag) = 0;
};

}  // namespace outrider
