// TranslatedModel: a draft model as a model over the target's vocabulary.
//
// Idea. Whoever drafts with it speaks the target's tokens and gets rows over the target's ids, so
// the sampler chain, the noise (keyed by the target's ids) and the trees stay as they are:
//
//      decided text   the target's tokens -> the draft's own tokenisation (translated_text.h)
//      drafted nodes  shared tokens (vocabulary_map.h), one to one, at the same node ids
//      rows           the draft's logits of shared tokens at the target's ids, else minus infinity:
//                     behind a softmax, its distribution restricted to them and renormalised
//
// State. What counts is the target's text that was committed: length(), commit() and truncate() are
// about its tokens. What the draft model holds is a copy that follows. At each evaluation the text
// is translated, what the draft holds otherwise is dropped, and the rest is read with the new root:
//
//      the draft holds   " the" " light" "house"      (drafted and accepted as two tokens)
//      the text is now   " the lighthouse kee"        in the draft's tokens " the" " lighthouse"
//                                                     " kee": two are dropped, two are read
//
// So an error or an interruption in the middle leaves the text as it was, and the draft model with
// a beginning of it or more, which the next evaluation puts right.
//
// Cost. Per row one copy of the shared logits; per evaluation one call of the draft's tokenizer.
// Figures: docs/benchmarks-counts.md.
//
// Tested by translated_model_test.cc (fresh evaluations after every step, faults), and
// tests/other_vocabulary_test.cc (the text stays plain decoding's).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "draft/translated/translated_text.h"
#include "draft/translated/vocabulary_map.h"
#include "model/language_model.h"

namespace outrider {

class TranslatedModel : public LanguageModel {
 public:
  // Both must outlive this, and nobody else may use `draft`. `window`: TranslatedText's.
  TranslatedModel(LanguageModel& draft, const VocabularyMap& map,
                  std::size_t window = TranslatedText::kWindow);

  // The draft model's, over the target's vocabulary. n_ctx counts the draft's tokens.
  const Capabilities& capabilities() const override { return capabilities_; }

  Pos length(SeqId seq) const override { return static_cast<Pos>(state(seq).text.size()); }

  // In the draft's tokens, of which a drafted node is one; has_room_for() tells for a text.
  std::int32_t room(SeqId seq) const override { return model_.room(seq); }
  bool has_room_for(SeqId seq, std::span<const Token> more) override;

  // Besides LanguageModel's errors: kInvalidArgument for a tree with a node, other than the root,
  // that is not shared; kUnsupported when the draft model cannot drop any part of its state.
  Status evaluate(std::span<const EvalItem> items) override;
  std::span<const float> logits(std::size_t item, NodeId node) const override;
  Status commit(SeqId seq, std::span<const NodeId> path) override;
  Status truncate(SeqId seq, Pos length) override;
  Status share(SeqId from, SeqId to, Pos length) override;
  void set_interrupt(const std::atomic<bool>* flag) override { model_.set_interrupt(flag); }

  // Empty when the draft model holds what this believes, else what differs.
  std::string check_integrity() const;

 private:
  struct State {
    explicit State(const VocabularyMap& map, std::size_t window) : translation(map, window) {}

    std::vector<Token> text;     // committed, the target's tokens
    TranslatedText translation;  // of what was last asked for
    std::size_t n_agreed = 0;    // tokens of `text` that `translation` begins with
    std::vector<Token> held;     // committed in the draft model, its tokens

    bool waits = false;
    std::vector<Token> prefix;     // tentative, the target's
    std::vector<Token> read;       // tentative in the draft model, in front of the tree
    std::vector<TokenTree> trees;  // [0 or 1] tentative, the target's
    std::vector<TokenTree> own;    // [0 or 1] the same in the draft's tokens
  };
  // Where the rows of an item of the last evaluate() are.
  struct Rows {
    std::size_t first = 0;
    NodeId first_new = 0;
  };

  State& state(SeqId seq) { return states_[static_cast<std::size_t>(seq)]; }
  const State& state(SeqId seq) const { return states_[static_cast<std::size_t>(seq)]; }
  Status check_item(const EvalItem& item) const;
  Status check_grown(const EvalItem& item) const;
  Status translate(State& s, std::span<const Token> prefix, const TokenTree* tree);
  Status drop(SeqId seq, std::size_t keep);
  Status catch_up(SeqId seq, std::span<const Token> wanted, std::size_t most_left);
  Status prepare(const EvalItem& item, std::size_t most_left);
  void add_nodes(const EvalItem& item, TokenTree& own) const;
  void take_rows(std::span<const EvalItem> items, std::span<const std::size_t> own_index);

  LanguageModel& model_;
  const VocabularyMap& map_;
  Capabilities capabilities_;
  std::vector<State> states_;             // [n_sequences]
  std::vector<Rows> items_;               // [items of the last evaluate()]
  std::vector<std::vector<float>> rows_;  // [most rows so far][n_vocab]; ids that are not shared
                                          // are never written to and stay minus infinity
};

}  // namespace outrider
