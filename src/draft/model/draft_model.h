// The draft model: a smaller language model that writes ahead.
//
// Idea. The draft model continues the text, picking each token with the same noise and the same
// sampler chain as the target will (dist/gumbel.h), so that where the two models agree they pick
// the same token. At temperature 0 both take their argmax. Where it is unsure it may branch
// (draft/model/draft_choice.h). The tree grows level by level, best nodes first, one pass of the
// model a level.
//
// State. Between drafts the model holds a committed beginning of the text, and behind it
// the last draft's tree, tentative. The next draft keeps the path that the text took, forgets the
// rest, and evaluates what is missing together with the new root, in one pass. So rejections cost
// nothing, and after full acceptance the last drafted token, which the draft model has not seen,
// is part of that pass:
//
//      drafted: d1 d2 d3 (d3 never evaluated)      text goes on: d1 d2 d3 b
//      next draft's first pass evaluates: d3 b     and gives the token after b
//
// Trained heads. A head is a model whose tokens come with a hidden state (LanguageModel): decided
// tokens with the target's state of the token before, guessed ones with the head's own. So what it
// has run of its own guesses is void once they are decided, and is read again with the target's
// states, beside the next root. What has to be encoded of the target's rows (LanguageModel::encode)
// is so once, when it is first read. Of a text that it does not know it reads the last few hundred
// tokens (draft/model/hidden_rows.h): its text is then a window of the whole one.
//
//      text:        t0 ... t(start) ... t(n_seen-1) ... root
//      the head's:         0 ...        n_seen-1-start
//
// A long text may be read before, in pieces (read()): each is committed, and what is drafted behind
// them is the same.
//
// Cost: one draft pass per level of the tree (all sequences in one batch), plus one choice per
// node.
//
// Source: Leviathan et al. 2023, Chen et al. 2023 (drafting with a small model); trees: SpecInfer
// (2305.09781); coupling: Daliri et al. 2024. Tested by draft_model_test.cc and
// tests/same_output_test.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "draft/base/drafter.h"
#include "draft/base/drafter_kind.h"
#include "draft/model/draft_sharpness.h"
#include "draft/model/hidden_rows.h"
#include "model/language_model.h"

namespace outrider {

inline constexpr DrafterKind kDraftModelKind = {
    .name = kDraftModelName, .from = GuessesFrom::kModel, .model = NeededModel::kDraft};

// The prediction layers of the target's own file.
inline constexpr DrafterKind kMtpKind = {.name = "mtp",
                                         .help = "prediction layers of the target's own file",
                                         .from = GuessesFrom::kHidden,
                                         .model = NeededModel::kTarget};

inline constexpr DrafterKind kEagle3Kind = {
    .name = "eagle3", .from = GuessesFrom::kHidden, .model = NeededModel::kDraft};

// What makes a drafter of a trained head.
struct HeadOptions {
  std::string_view name;  // the drafter's; static storage

  // Most tokens of a text that are read before the first guess. Further back a head hardly looks,
  // and reading it costs a pass.
  std::size_t window = 512;

  // It reads a text's first token, with zeros for the state before it. Else it begins with the
  // second.
  bool reads_first = true;
};

class DraftModelDrafter : public Drafter {
 public:
  // `model` must outlive this; it has at least as many sequences as the engine, and nobody else may
  // use it. `n_target_vocab`: ids from there on (a padded draft vocabulary) are never proposed.
  // `is_end` tells tokens that end a text, after which nothing is drafted; empty: none do.
  // `learns`: how sharp guesses should be (draft/model/draft_sharpness.h); else they are as the
  // model is. `head`: the model is a trained head, and REQUIRES that its n_hidden_in and n_hidden
  // are the target's n_hidden.
  DraftModelDrafter(LanguageModel& model, std::int32_t n_target_vocab,
                    std::function<bool(Token)> is_end, bool learns = true,
                    std::optional<HeadOptions> head = std::nullopt);

  std::string_view name() const override { return head_ ? head_->name : kDraftModelName; }
  Status begin(SeqId seq, std::size_t kept) override;
  // Where the model's sequences can share a text, it is shared. The last draft of `from`, a few
  // tokens, is given up when tokens in front of it are wanted.
  Status begin_like(SeqId seq, SeqId from, std::size_t kept) override;
  // A head: once the target has shown the state before the text's last token.
  bool can_guess(SeqId seq, std::span<const Token> text) const override;
  // Requests whose text no longer fits the draft model's context are passed over; see
  // limit_reason().
  Status draft(std::span<DraftRequest> requests) override;
  void accept(SeqId seq, std::span<const Token> text) override;
  bool wants_hidden() const override { return head_.has_value(); }
  void see_hidden(SeqId seq, std::size_t position, Token token,
                  std::span<const float> row) override;
  // Heads keep nothing: it would be worth little without the target's hidden states.
  Result<std::vector<std::uint8_t>> save(SeqId seq, std::size_t* n_tokens) override;
  Status restore(SeqId seq, std::span<const std::uint8_t> bytes, std::size_t n_tokens) override;
  void rest(SeqId seq, std::span<const Token> text) override;
  void end(SeqId seq) override;

  void set_interrupt(const std::atomic<bool>* flag) override { model_.set_interrupt(flag); }
  std::int64_t known(SeqId seq, std::span<const Token> text) const override;
  bool has_room(SeqId seq, std::span<const Token> text) const override;
  std::string limit_reason(SeqId seq) const override;
  // Heads read a window at most, which moves on with the text.
  bool reads_in_pieces() const override { return !head_.has_value(); }
  Status read(SeqId seq, std::span<const Token> text, std::int64_t n) override;

  // How sharp its guesses should be.
  std::vector<double> learned() const override { return sharpness_.numbers(); }
  void recall(std::span<const double> learned) override { sharpness_.recall(learned); }

  // Empty when the model's state is what this drafter believes, else what differs.
  std::string check_integrity() const;

 private:
  struct SeqState {
    std::size_t start = 0;               // where the model's text begins; of heads, else 0
    std::size_t n_seen = 0;              // tokens of the text, the model holds [start, n_seen)
    std::optional<TokenTree> tentative;  // behind them; its root is text[n_seen + n_prefix]
    std::vector<DraftRivals> rivals;     // [tentative nodes that were run] what it said behind them
    std::size_t n_prefix = 0;            // tentative tokens in front of that root
    std::string limit_reason;
    std::vector<float> states;       // [tentative nodes that were run, n_hidden] of a head
    std::optional<HiddenRows> rows;  // the target's; of a head
  };
  struct Growing;

  SeqState& state_of(SeqId seq) { return sequences_[static_cast<std::size_t>(seq)]; }
  std::size_t seen_of(SeqId seq) const;
  void clear_state(SeqId seq);
  void forget_tentative(SeqId seq);
  void notice_loss(SeqId seq);
  Status keep_prefix(SeqId seq);
  static std::vector<NodeId> path_of(const SeqState& state, std::span<const Token> text);
  static bool has_left_tree(const SeqState& state, std::span<const Token> text);
  Status settle(SeqId seq, std::span<const Token> text);
  void settle_all(std::span<DraftRequest> requests);
  bool fits(const DraftRequest& request) const;
  std::span<const NodeId> kept_of(std::span<const NodeId> path) const;
  Status check_tokens(const DraftRequest& request) const;
  Status check_rollback() const;
  Status find_beginning(const DraftRequest& request);
  Status synchronise(const DraftRequest& request);
  Status catch_up(const DraftRequest& request);
  Status read_batch(const DraftRequest& request, std::size_t n);
  static bool continues(const SeqState& state, std::size_t n_seen);
  std::size_t window_start(const HiddenRows& rows) const;
  Status encode_rows(std::span<const SeqId> sequences);
  Status reach_window(const DraftRequest& request);
  void add_hidden(Growing& growing) const;
  void take_rows(std::size_t item, Growing& growing);
  Status extend(std::vector<Growing>& growing);
  std::int32_t share() const;
  bool wants_draft(const DraftRequest& request) const;

  LanguageModel& model_;
  std::int32_t n_target_vocab_;
  std::function<bool(Token)> is_end_;
  bool learns_;
  std::optional<HeadOptions> head_;
  std::vector<SeqState> sequences_;  // [n_sequences]
  DraftSharpness sharpness_;
};

}  // namespace outrider
