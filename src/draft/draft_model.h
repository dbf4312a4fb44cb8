// The draft model: a smaller language model that writes ahead.
//
// Idea. The draft model continues the text token by token, picking each with the same noise and the
// same sampler chain as the target will (dist/gumbel.h), so that where the two models agree they pick
// the same token. At temperature 0 both take their argmax.
//
// State. The draft model's own cache holds the decided text up to some point, then the tail of the
// last draft. The next draft finds where the text left that tail, truncates there, and evaluates
// what is missing together with the new root, in one pass. So rejections cost nothing, and after
// full acceptance the last drafted token, which the draft model has not seen, rides along:
//
//      drafted: d1 d2 d3 (d3 never evaluated)      text goes on: d1 d2 d3 b
//      next draft's first pass evaluates: d3 b     and gives the token after b
//
// Cost: one draft pass per drafted token (all sequences in one batch), plus one perturbed argmax.
//
// Source: Leviathan et al. 2023, Chen et al. 2023 (drafting with a small model); coupling: Daliri et
// al. 2024. Tested by draft_model_test.cc and tests/same_output_test.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "draft/drafter.h"
#include "model/language_model.h"

namespace outrider {

class DraftModelDrafter : public Drafter {
 public:
  // `model` must outlive this; it has at least as many sequences as the engine, and nobody else may
  // use it. `n_target_vocab`: ids from there on (a padded draft vocabulary) are never proposed.
  // `is_end` tells tokens that end a text, after which nothing is drafted; empty: none do.
  DraftModelDrafter(LanguageModel& model, std::int32_t n_target_vocab,
                    std::function<bool(Token)> is_end);

  std::string_view name() const override { return "draft-model"; }
  Status begin(SeqId seq) override;
  // Requests whose text no longer fits the draft model's context are passed over; see
  // limit_reason().
  Status draft(std::span<DraftRequest> requests) override;
  void accept(SeqId seq, std::span<const Token> text) override;
  void end(SeqId seq) override;

  void set_interrupt(const std::atomic<bool>* flag) override { model_.set_interrupt(flag); }
  std::string limit_reason(SeqId seq) const override;

  // Empty when the model's state is what this drafter believes, else what differs.
  std::string check_integrity() const;

 private:
  struct SeqState {
    std::vector<Token> seen;   // the tokens in the model's state
    std::size_t agreed = 0;    // seen[0..agreed) is known to equal the text
    std::string limit_reason;
  };
  // A request while its chain grows.
  struct Growing {
    DraftRequest* request;
    NodeId tip;                        // the node to extend
    std::unique_ptr<Sampler> chain;    // a copy, when the request's chain has state
    TokenTree input;                   // the one token whose logits are wanted
    std::span<const Token> prefix;     // decided tokens before it
    std::int32_t left;                 // nodes that may still be added
  };

  Status synchronise(const DraftRequest& request, std::size_t& start);
  Status catch_up(const DraftRequest& request, std::size_t& start);
  Status extend(std::vector<Growing>& growing);
  bool choose(Growing& item, std::size_t index);

  LanguageModel& model_;
  std::int32_t n_target_vocab_;
  std::function<bool(Token)> is_end_;
  std::vector<SeqState> sequences_;  // [n_sequences]
};

}  // namespace outrider
