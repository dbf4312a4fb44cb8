// Token Recycling: guesses from what the target found likely and did not say.
//
// Idea. Every checked node gives a row of logits; its likeliest tokens that were not said are
// thrown away. Keep them: for each token the k likeliest successors of its last occurrence. From
// the text's last token on, these make a tree of guesses at no cost. They know one token of context
// only, so they are worth little each (a rank's chance of being right, below), but they are always
// there: a filler for places that a step checks at no extra cost.
//
// Example. "the" was last followed by {cat 0.4, dog 0.3, ...}, "cat" by {sat, ran, ...}:
//
//     the -> cat -> sat
//      |      +---> ran
//      +---> dog
//
// Chances. By rank alone, times the parent's: kRankChance, the share of positions at which the
// token of that rank was said next (SmolLM2-135M, temperature 1, see the .cc). Best first until the
// tree is full.
//
// Memory. n_vocab * kSuccessors ids for a sequence that drafts: 1.5 MiB for 49,152 tokens. A
// sequence's own: one user's text does not draft for another. Cost: a row takes one pass over the
// vocabulary (12 microseconds for 49,152).
//
// Source: Luo et al., Token Recycling (2408.08696). Tested by recycle_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "draft/base/lookup_drafter.h"

namespace outrider {

class RecycleDrafter : public LookupDrafter {
 public:
  static constexpr std::string_view kName = "recycle";
  static constexpr std::size_t kSuccessors = 8;

  // For ids below `n_vocab` and sequences below `n_sequences`.
  RecycleDrafter(std::int32_t n_vocab, std::int32_t n_sequences);

  std::string_view name() const override { return kName; }

  // What was learned stays when all of the old text is part of the new one.
  Status begin(SeqId seq, std::size_t kept) override;
  Status draft(std::span<DraftRequest> requests) override;
  void accept(SeqId seq, std::span<const Token> text) override;
  bool wants_rows() const override { return true; }
  void observe(SeqId seq, Token token, std::span<const float> row) override;
  void end(SeqId seq) override;
  void set_interrupt(const std::atomic<bool>*) override {}
  std::string limit_reason(SeqId) const override { return ""; }

  std::size_t memory_bytes() const override;  // all sequences

  // Empty, or what is wrong with the tables.
  std::string check_integrity() const;

 private:
  using Successors = std::array<Token, kSuccessors>;  // likeliest first; kNoToken behind the last

  struct Table {
    std::vector<Successors> of;  // [n_vocab], or empty: nothing learned
    std::size_t text_size = 0;   // of the text, as last told
  };

  void grow(const Table& table, DraftRequest& request) const;

  std::int32_t n_vocab_;
  std::vector<Table> tables_;  // [n_sequences]
};

std::unique_ptr<LookupDrafter> make_recycle_drafter(const LookupSettings& settings);

inline constexpr LookupKind kRecycleKind = {
    .name = RecycleDrafter::kName,
    .help = "what the target found likely after a token before",
    .from = GuessesFrom::kLogits,
    .shape = {.branches = true},
    .make = make_recycle_drafter};

}  // namespace outrider
