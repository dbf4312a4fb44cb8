// BlockDrafter: a trained head that guesses a block of tokens in one pass (DFlash).
//
// Idea. The head gets the target's hidden states of all tokens before the root and gives, in one
// pass, the distributions of the tokens behind it (model/block_model.h). Of these the best tree is
// made under the target's own noise (draft/model/block_growth.h). More guesses cost no further
// pass, so the request's guide is not asked whether they pay.
//
// State. The head's text is what it has read of states, a window of the whole text; nothing of it
// is ever tentative. A draft first reads the states that came since the last one, those of the
// accepted tokens:
//
//      text:        t0 ... t(start) ... t(n_seen-1) ... t(n-1) root
//      the head's:         0 ...        n_seen-1-start
//
// Of a text that it does not know it reads the last `window` tokens. It has missed too much when
// the states behind what it knows are no longer there; then it begins anew with the last ones.
//
// Cost: one pass to read, one to guess, all sequences in one batch as far as they fit. Source:
// DFlash (2602.06036). Tested by block_drafter_test.cc, engine/engine_blocks_test.cc and
// tests/dflash_output_test.cc.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "draft/base/drafter.h"
#include "draft/base/drafter_kind.h"
#include "draft/model/block_growth.h"
#include "draft/model/draft_sharpness.h"
#include "draft/model/hidden_rows.h"
#include "model/block_model.h"

namespace outrider {

inline constexpr DrafterKind kDflashKind = {.name = "dflash",
                                            .from = GuessesFrom::kHidden,
                                            .model = NeededModel::kDraft,
                                            .guesses_at_once = true};

class BlockDrafter : public Drafter {
 public:
  // `model` must outlive this; it has at least as many sequences as the engine, and nobody else may
  // use it. `n_target_vocab`: ids from there on are never proposed. `is_end` tells tokens that end
  // a text; empty: none do. `window`: see above, at least 1. REQUIRES: the model's n_states is the
  // target's n_hidden.
  BlockDrafter(BlockModel& model, std::int32_t n_target_vocab, std::function<bool(Token)> is_end,
               std::size_t window = 512);

  std::string_view name() const override { return kDflashKind.name; }
  Status begin(SeqId seq, std::size_t kept) override;
  // Where the model's sequences can share what they have read, it is shared.
  Status begin_like(SeqId seq, SeqId from, std::size_t kept) override;
  // Once the target has shown the states of all tokens before the text's last one, or of the last
  // of them.
  bool can_guess(SeqId seq, std::span<const Token> text) const override;
  bool guesses_at_once() const override { return true; }
  // Requests whose text no longer fits the model's context are passed over; see limit_reason().
  Status draft(std::span<DraftRequest> requests) override;
  void accept(SeqId seq, std::span<const Token> text) override;
  bool wants_hidden() const override { return true; }
  void see_hidden(SeqId seq, std::size_t position, Token token,
                  std::span<const float> row) override;
  void end(SeqId seq) override;

  void set_interrupt(const std::atomic<bool>* flag) override { model_.set_interrupt(flag); }
  std::int64_t known(SeqId seq, std::span<const Token> text) const override;
  bool has_room(SeqId seq, std::span<const Token> text) const override;
  std::string limit_reason(SeqId seq) const override;

  // How sharp its guesses should be.
  std::vector<double> learned() const override { return sharpness_.numbers(); }
  void recall(std::span<const double> learned) override { sharpness_.recall(learned); }

  // Empty when the model's state is what this drafter believes, else what differs.
  std::string check_integrity() const;

 private:
  struct SeqState {
    explicit SeqState(const HiddenRows& no_rows) : rows(no_rows) {}

    std::size_t start = 0;   // where the model's text begins
    std::size_t n_seen = 0;  // the model holds [start, n_seen)
    HiddenRows rows;         // the target's
    std::string limit_reason;
    std::optional<GrownBlock> last;  // the last draft
    std::size_t last_root = 0;       // where it stands in the text
  };

  SeqState& state_of(SeqId seq) { return sequences_[static_cast<std::size_t>(seq)]; }
  const SeqState& state_of(SeqId seq) const { return sequences_[static_cast<std::size_t>(seq)]; }
  static bool goes_on(const SeqState& state);
  Status cut(SeqId seq, std::size_t length);
  void learn_from(SeqState& state, std::span<const Token> text);
  Status reach_window(const DraftRequest& request);
  std::int32_t guesses_from(std::size_t start, std::span<const Token> text) const;
  std::int32_t n_guesses(const DraftRequest& request) const;
  Status read_all(std::span<DraftRequest* const> requests);
  Status guess(std::span<DraftRequest* const> requests);
  std::vector<DraftRequest*> ready_ones(std::span<DraftRequest> requests);

  BlockModel& model_;
  std::int32_t n_vocab_;
  std::function<bool(Token)> is_end_;
  std::vector<SeqState> sequences_;  // [n_sequences]
  DraftSharpness sharpness_;
};

}  // namespace outrider
