// HeadChain: several prediction layers as one head, a layer for each depth of a draft.
//
// The first layer guesses behind the root, the second behind a first guess, and so on; the last one
// goes on alone. Each layer is a model with a cache of its own. All read the decided tokens with
// the same hidden states. What is tentative a layer reads anew from the root when its depth comes,
// for it has no keys of what other layers read:
//
//      depth 0   layer 0 reads ..., r           guesses d1
//      depth 1   layer 1 reads ..., r, d1       guesses d2
//      depth 2   layer 2 reads ..., r, d1, d2   guesses d3
//
// Layers behind the first read decided tokens when their depth comes (until then they are kept with
// their states, the last `window` of them), so a draft of one token costs one layer.
//
// It is the model of a head's drafter (draft/model/draft_model.h), which begins each draft with the
// root alone and commits no more than that. Source: chained MTP heads as in llama.cpp's
// common_speculative (n_layer_nextn > 1). Tested by engine_chain_heads_test.cc and
// tests/mtp_output_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "model/language_model.h"

namespace outrider {

class HeadChain : public LanguageModel {
 public:
  // At least two; all alike, with Rollback::kAny and hidden states. They must outlive this, and
  // nobody else may use them.
  explicit HeadChain(std::vector<LanguageModel*> layers, std::size_t window = 512);

  const Capabilities& capabilities() const override { return layers_[0]->capabilities(); }
  Pos length(SeqId seq) const override { return layers_[0]->length(seq); }
  std::int32_t room(SeqId seq) const override;
  // REQUIRES: a new tree is its root alone.
  Status evaluate(std::span<const EvalItem> items) override;
  std::span<const float> logits(std::size_t item, NodeId node) const override;
  std::span<const float> hidden(std::size_t item, std::size_t token) const override;
  // REQUIRES: the path is empty or the root.
  Status commit(SeqId seq, std::span<const NodeId> path) override;
  Status truncate(SeqId seq, Pos length) override;
  Status share(SeqId from, SeqId to, Pos length) override;
  void set_interrupt(const std::atomic<bool>* flag) override;

  // Empty when every layer's text, with what it has yet to read, is a part of the first one's.
  std::string check_integrity() const;

 private:
  struct Decided {  // tokens, each with its state
    std::vector<Token> tokens;
    std::vector<float> states;  // [tokens, width]
  };
  // What a layer behind the first has of a sequence: its model's text begins at `start`; behind it
  // comes what is unread.
  struct Behind {
    Pos start = 0;
    Decided unread;
  };
  struct Tentative {
    std::size_t n_prefix = 0;  // which is among what is unread already
    std::optional<TokenTree> tree;
    std::vector<float> states;  // [nodes, width]
  };
  struct Part {  // of an item, what one layer computes
    std::size_t item;
    std::vector<NodeId> nodes;  // of the item's tree, in its order
    TokenTree tree{kNoToken};
    std::vector<float> hidden;  // [unread and nodes, width]
  };
  struct ItemRows {  // of an item of the last evaluate()
    NodeId first_new = 0;
    std::size_t n_prefix = 0;
    std::vector<std::vector<float>> logits;  // [new nodes]
    std::vector<std::vector<float>> hidden;  // [new nodes]
  };

  std::size_t width() const { return static_cast<std::size_t>(capabilities().n_hidden_in); }
  std::size_t layer_of(std::int32_t depth) const;
  Behind& behind(std::size_t layer, SeqId seq) {
    return behind_[layer - 1][static_cast<std::size_t>(seq)];
  }
  void append(SeqId seq, std::span<const Token> tokens, std::span<const float> states);
  void forget_front(std::size_t layer, SeqId seq);
  Status begin(std::span<const EvalItem> items);
  // The new nodes whose depth is this layer's, each with its path from the root.
  std::vector<Part> parts_of(std::size_t layer, std::span<const EvalItem> items) const;
  Status grow(std::size_t layer, std::span<const EvalItem> items);
  Status catch_up(std::size_t layer, SeqId seq, std::size_t most);
  void cut_behind(std::size_t layer, SeqId seq, Pos length);

  std::vector<LanguageModel*> layers_;
  std::size_t window_;
  std::vector<std::vector<Behind>> behind_;  // [layers - 1][n_sequences]
  std::vector<Tentative> tentative_;         // [n_sequences]
  std::vector<ItemRows> results_;
};

}  // namespace outrider
