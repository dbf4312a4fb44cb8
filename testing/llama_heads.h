// llama.cpp's own guesses with a trained head, by its common_speculative: what a drafter of ours
// for the same head must give at temperature 0, position by position.
//
// Idea. The calls are those of llama-server, with one sequence: the target evaluates a batch,
// `process` gives the head what it needs of it, `draft` guesses from the last token on, the head's
// cells of the guess are removed, the target verifies, `accept` says how many guesses were right.
// Guesses are the head's most likely tokens (of its best ten by llama.cpp's sampler; of equals the
// one that std::partial_sort leaves first, so give the head no ties).
//
// What llama.cpp v0.5.0 does with a head that does not fit, as gguf_head_damage.h writes them and
// its test holds:
// - It refuses, with null from load or context or by an exception: missing tensors and keys, other
//   than 3 taps for EAGLE-3, an MTP context of a model without MTP blocks.
// - It aborts at load: nextn_predict_layers above block_count.
// - It aborts when the head's context is made: another width than the target's, whose embedding it
//   uses; d2t without an output of its own, or not of I64; hy_v3 whose first MTP block lacks
//   eh_proj (it loads as "trunk only") or the feed-forward part, or where all blocks are MTP
//   blocks.
// - It aborts when the head is set up: a tap below 0 or above n_layer.
// - It aborts at the target's first batch: a tap of an architecture without taps, such as hy_v3,
//   and for DFlash a tap of layer n_layer.
// - It aborts at the head's first batch: an id in d2t that is no token of the vocabulary.
// - It goes on silently: an EAGLE-3 tap of layer n_layer where the architecture has no nextn rows
//   (stale rows are read); an EAGLE-3 head with embedding and output of its own whose
//   target_hidden_size is not the target's width (it reads past the rows); a DFlash head without a
//   mask token or with a block_size below 2 (no guesses).
//
// Tested by tiny_gguf_heads_test.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "llama.h"

namespace outrider::testing {

enum class LlamaHeadKind { kMtp, kEagle3, kDflash };

struct LlamaHeadsOptions {
  LlamaHeadKind kind = LlamaHeadKind::kMtp;
  std::string target_path;
  std::string head_path;   // of the head; empty for kMtp: the target's own file
  int n_draft = 4;         // guesses at a time; fewer where the head cannot do so many
  int n_ctx = 512;         // of target and head; a text with its guesses must fit
  int n_prompt_batch = 0;  // tokens of a prompt evaluated at once; 0: all
  int n_threads = 1;
  ggml_type kv_type = GGML_TYPE_F16;  // of the target; the head's is F16
};

// One step of decoding with speculation.
struct LlamaHeadsStep {
  std::vector<Token> guesses;
  int n_accepted = 0;
};

struct LlamaHeadsRun {
  std::vector<Token> text;  // what follows the prompt
  std::vector<LlamaHeadsStep> steps;
};

// Not thread-safe. Logs of llama.cpp are dropped.
class LlamaHeads {
 public:
  // kInternal, naming the file, when llama.cpp will not load one or make a context for it;
  // kUnsupported with its reason when it refuses the head.
  static Result<LlamaHeads> load(const LlamaHeadsOptions& options);
  LlamaHeads(LlamaHeads&&) noexcept;
  ~LlamaHeads();

  const llama_model* target() const;

  // The guesses behind each token of `text` from index `first` on: result[i] are those behind
  // text[0 .. first + i], so they guess text[first + i + 1] and on. What was guessed before does
  // not matter: the target reads `text` token by token. Starts anew. [text.size() - first]
  // `logits`: what the head gave for the last of each guesses, [text.size() - first, n_vocab],
  // -infinity for tokens that it does not know.
  // REQUIRES: 1 <= first < text.size(); no token is out of range.
  Result<std::vector<std::vector<Token>>> guesses(
      const std::vector<Token>& text, int first, std::vector<std::vector<float>>* logits = nullptr);

  // Greedy text of `n_tokens` or a few more, decoded with speculation. Starts anew.
  // REQUIRES: prompt.size() >= 2.
  Result<LlamaHeadsRun> run(const std::vector<Token>& prompt, int n_tokens);

 private:
  struct State;
  explicit LlamaHeads(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace outrider::testing
