// DraftChain: drafters for programs that have a decode loop of their own.
//
// Idea. Methods are in order of preference, and the first that has a guess drafts. The
// loop evaluates the draft with the target however it likes, takes the longest beginning of it that
// the target says too and one token more, which is the target's own, and reports how much held:
//
//     DraftChain chain({&suffix, &ngrams});
//     chain.begin(text);                                    // optional: draft() notices a new text
//     while (!done) {
//       const std::span<const Token> draft = *chain.draft(text, 8);
//       // ... evaluate text.back() and the draft in one batch, pick the target's tokens ...
//       (void)chain.accept(n_accepted);                     // of the draft, the target's own aside
//       // ... append those n_accepted tokens and the target's own one to text ...
//     }
//     std::puts(chain.statistics_text().c_str());
//
// How it counts (the rules; draft_chain_test.cc has a test for each):
//  (1) Each method that is tried counts a call, whether it has something or not.
//  (2) The first that has something wins; those behind it are not tried.
//  (3) The winner alone gets a draft, its tokens, and the credit for what is accepted of it.
//  (4) accept(0) reports nothing: no count changes.
//  (5) The target's own token of each step is never drafted and never accepted.
//
// The interface is that of llama.cpp's common/speculative.h (begin, draft, accept, print
// statistics), without its need of a llama.cpp context.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "draft/base/drafter.h"

namespace outrider {

struct DraftMethodStats {
  std::string name;                  // Drafter::name()
  std::int64_t calls = 0;            // drafts it was asked for
  std::int64_t drafts = 0;           // of these, how often it had something
  std::int64_t accepted_drafts = 0;  // of these, how often at least one token held
  std::int64_t drafted = 0;          // tokens it drafted
  std::int64_t accepted = 0;         // of these, how many held
  std::int64_t failures = 0;         // of the calls, how many ended with an error
  std::string last_failure;          // the latest error's message
  double begin_ms = 0.0;             // telling it of a new text
  double draft_ms = 0.0;
  double accept_ms = 0.0;  // telling it how the text went on
};

struct DraftChainOptions {
  SeqId seq = 0;  // the methods' sequence; give each of several chains over shared methods its own
  // For drafters with a model of their own, which draft what this chain of samplers would leave and
  // draw (draft/model/draft_model.h); text drafters need neither. Must outlive the chain.
  Sampler* sampler = nullptr;
  std::uint64_t seed = 0;
  DraftShape shape;  // of draft_tree()
};

// One text at a time; one thread at a time. Neither copied nor moved.
class DraftChain {
 public:
  // `methods`, best first, must outlive the chain. REQUIRES: none is null, and no other
  // chain uses one of them with the same options.seq.
  explicit DraftChain(std::vector<Drafter*> methods, const DraftChainOptions& options = {});
  ~DraftChain();  // the methods forget the text
  DraftChain(const DraftChain&) = delete;
  DraftChain& operator=(const DraftChain&) = delete;

  // A new text begins. What it shares with the one before the methods may keep. An outstanding
  // draft is void. Never fails: a method that cannot begin is left out until the next text, and its
  // statistics say why.
  void begin(std::span<const Token> text);

  // The likeliest continuation of `text`, which is everything decided so far, at most `max_tokens`
  // long; empty when no method has one. Valid until the next call. When `text` does not go on from
  // the text of the call before, begin(text) comes first. A method that fails counts as having
  // nothing. Errors: kInvalidArgument for an empty text or a negative id in its new part; the
  // chain is unchanged then.
  Result<std::span<const Token>> draft(std::span<const Token> text, std::int32_t max_tokens);

  // The same as a tree of at most `max_nodes` nodes beside the root, branching as options.shape
  // allows. Valid until the next call.
  Result<const TokenTree*> draft_tree(std::span<const Token> text, std::int32_t max_nodes);

  // Of the latest draft, the first `n_accepted` tokens (of some path from the tree's root) are what
  // the target says, too. Call it at most once a draft, and with 0 or not at all when nothing held.
  // Errors: kInvalidArgument when there is no outstanding draft of so many tokens; nothing has
  // changed then.
  Status accept(std::int32_t n_accepted);

  // For methods that learn from what the target found likely and did not say
  // (draft/recycle/recycle.h): the target's raw logits of the token after `token`, which was the
  // text's last one or a drafted one, on its own path: [n_vocab]. For every token of the batch,
  // before accept(); not calling it is fine, and pointless when nobody wants_rows().
  bool wants_rows() const;
  void observe(Token token, std::span<const float> row);

  // The method of the outstanding draft; empty when there is none.
  std::string_view drafted_by() const;

  // Forgets the text and the outstanding draft, and the methods give its memory back. The
  // statistics stay.
  void reset();

  const std::vector<DraftMethodStats>& statistics() const { return stats_; }  // [methods]
  void clear_statistics();
  // A table, a line a method, without a final newline.
  std::string statistics_text() const;

 private:
  Status follow(std::span<const Token> text);
  Status propose(std::span<const Token> text, std::int32_t max_nodes, const DraftShape& shape);
  void credit_draft(std::int32_t drafted, std::int32_t depth);

  std::vector<Drafter*> methods_;
  DraftChainOptions options_;
  std::vector<DraftMethodStats> stats_;  // [methods]
  std::vector<bool> ready_;              // [methods] has begun the text
  std::vector<Token> text_;              // what the methods were told
  std::optional<TokenTree> tree_;
  std::vector<Token> tokens_;     // of draft()
  std::size_t winner_ = 0;        // meaningful while outstanding_ > 0
  std::int32_t outstanding_ = 0;  // tokens that may be accepted of the latest draft
};

}  // namespace outrider
