// BlockModel: what a drafter needs of a head that guesses a whole block of tokens in one pass.
//
// Such a head (DFlash) keeps of a text what it makes of the target's hidden states, a row for each
// token, and nothing of the tokens themselves. A pass takes the token behind that, the root, and
// gives the distributions of the tokens behind the root, each whatever the ones before it are:
//
//      read:   h0 h1 ... h(n-1)                      states of t0 ... t(n-1), kept
//      guess:                    root  ?  ?  ?       nothing of this is kept
//      logits:                         1  2  3       of the tokens at depth 1, 2, 3
//
// So a pass leaves nothing tentative, and there is nothing to commit. Sequences are independent of
// each other. Used by one thread at a time; set_interrupt's flag may be raised from any thread.
//
// Implementations: llama/model/llama_block_model.h, testing/fake_block_model.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/types.h"

namespace outrider {

struct BlockCapabilities {
  std::int32_t n_vocab = 0;
  std::int32_t n_ctx = 0;         // most tokens of one sequence, a block's included
  std::int32_t n_batch = 0;       // most tokens of one read() or guess(), all sequences together
  std::int32_t n_sequences = 0;   // SeqIds are 0 <= id < n_sequences
  std::int32_t n_states = 0;      // floats of a token's row of states
  std::int32_t most_guesses = 0;  // depths of one block, >= 1; a guess of n depths is n + 1 tokens
  bool can_share = false;         // share() works
};

// The states of the next tokens of a sequence's text.
struct BlockText {
  SeqId seq = 0;
  std::span<const float> states;  // [tokens, n_states]
};

// A block behind the text of a sequence.
struct BlockRoot {
  SeqId seq = 0;
  Token root = kNoToken;
  std::int32_t n_guesses = 1;  // 1 to most_guesses
};

class BlockModel {
 public:
  virtual ~BlockModel() = default;

  // Constant for the life of the model. Any thread.
  virtual const BlockCapabilities& capabilities() const = 0;

  // Tokens of `seq` whose states were read. REQUIRES: a valid id, here and below.
  virtual Pos length(SeqId seq) const = 0;

  // Each item's text, of another sequence, grows by its states, all in one pass. Errors:
  // kInvalidArgument for more tokens than n_batch; kResourceExhausted when they do not fit;
  // kCancelled when interrupted; kInternal. On any error the sequences are as before the call.
  virtual Status read(std::span<const BlockText> items) = 0;

  // Guesses behind all items' texts, each of another sequence, in one pass. Errors: read()'s;
  // kInvalidArgument also for a root outside the vocabulary, or a number of guesses out of range.
  // The texts stay as they are, whatever happens.
  virtual Status guess(std::span<const BlockRoot> items) = 0;

  // For the item at index `item` of the last guess(): [n_vocab] logits of the token at `depth`, 1
  // being the one behind the root. Valid until the next read() or guess(). Owned by the model.
  // REQUIRES: that guess() succeeded; 1 <= depth <= n_guesses.
  virtual std::span<const float> logits(std::size_t item, std::int32_t depth) const = 0;

  // Forgets all but the first `length` tokens of `seq`. REQUIRES: 0 <= length <= this->length(seq).
  virtual Status truncate(SeqId seq, Pos length) = 0;

  // `to` begins anew with the first `length` tokens of `from`, without computing them; from then on
  // the two are independent. On error `to` is empty. REQUIRES: can_share; from != to; 0 <= length
  // <= length(from).
  virtual Status share(SeqId from, SeqId to, Pos length) = 0;

  // While *flag is true, read() and guess() end early with kCancelled. Null: never.
  virtual void set_interrupt(const std::atomic<bool>* flag) = 0;
};

}  // namespace outrider
