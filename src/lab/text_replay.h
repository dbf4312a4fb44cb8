// TextReplay: what a drafter would have drafted and had accepted, had a target said a given text.
//
// Idea. Under the coupled rule (and at temperature 0) a guess is accepted exactly when it is the
// token that the target says. So a text that was once said tells, without a model, what each step
// would have accepted: draft behind what is decided, walk the tree along the text, take one more
// token (the target's own), repeat.
//
// Example, width 4, text "a b c a b c d": behind "a b c a" the drafter says "b c a"; "b c" hold,
// the step gives "b c d": 3 tokens, 3 drafted, 2 accepted.
//
// A step's width is 1 + drafted nodes, as in the contract. The drafter does not know where the text
// ends, so a draft may reach beyond it: those nodes count as drafted.
//
// Several drafters go together as in the engine (draft/base/drafter_plan.h): chains are asked until
// one of them finds something, all chains' guesses are merged, and the likeliest nodes that fit the
// width are sent. How each did is counted as the engine counts it.
//
// The same as llama.cpp's examples/lookup/lookup-stats.cpp, for any drafter that needs no model.
// Tested by text_replay_test.cc, against the engine's own counts by
// engine_replay_test.cc, and beside llama.cpp's program by tests/peers_ngram_test.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "draft/base/drafter.h"
#include "draft/base/drafter_plan.h"

namespace outrider {

// One drafter's share. A node that two proposed counts for both.
struct ReplayDrafterStats {
  std::string name;
  std::int64_t calls = 0;
  std::int64_t drafts = 0;           // calls in which it proposed something
  std::int64_t accepted_drafts = 0;  // drafts of which a node that was sent was accepted
  std::int64_t drafted = 0;          // nodes sent that it proposed
  std::int64_t accepted = 0;         // of these
  std::int64_t foregone = 0;  // nodes that it proposed, that were not sent, and that the step said
};

struct ReplayStats {
  std::int64_t texts = 0;
  std::int64_t tokens = 0;  // that were "generated"
  std::int64_t steps = 0;
  std::int64_t drafted = 0;   // nodes
  std::int64_t accepted = 0;  // of these; tokens <= accepted + steps, less only at a text's end
  double begin_ms = 0.0;      // Drafter::begin(), and drafting for the first token: reading prompts
  double draft_ms = 0.0;
  double accept_ms = 0.0;
  std::vector<std::int64_t> steps_by_width;  // [width] steps that would have checked so many tokens
  std::vector<ReplayDrafterStats> drafters;  // [drafters]

  double tokens_per_step() const {
    return steps > 0 ? static_cast<double>(tokens) / static_cast<double>(steps) : 0.0;
  }
};

struct ReplayOptions {
  std::int32_t width = 16;  // most tokens of a step, the root included; >= 1
  DraftShape shape;
};

class TextReplay {
 public:
  // The drafters must outlive this; their sequence 0 is used. They must not need a sampler or the
  // target's rows. An empty plan merges all. REQUIRES: at most kMaxDrafters, with different names;
  // those that the plan mentions are among them
  TextReplay(std::vector<Drafter*> drafters, const DrafterPlan& plan, const ReplayOptions& options);
  TextReplay(Drafter& drafter, const ReplayOptions& options);

  // Goes through `text`, whose first `given` tokens (1 to text.size()) are decided beforehand, as a
  // prompt is. `keep`: the drafter may keep what this text shares with the one before, as with the
  // next turn of a conversation. Ends early with kCancelled when *interrupt is raised (may be
  // null). Errors of the drafter are passed on; the statistics hold what was done until then.
  // `on_progress` gets the number of tokens done so far, now and then.
  Status run(std::span<const Token> text, std::size_t given, bool keep,
             const std::atomic<bool>* interrupt,
             const std::function<void(std::size_t)>& on_progress = {});

  const ReplayStats& stats() const { return stats_; }

 private:
  Status propose(std::span<const Token> text, TokenTree& tree);
  Status step(std::span<const Token> text, std::size_t& decided, bool first);

  std::vector<Drafter*> drafters_;
  std::vector<std::vector<std::size_t>> chains_;  // indices in drafters_
  ReplayOptions options_;
  std::vector<Token> before_;  // the text of the run before
  ReplayStats stats_;
};

}  // namespace outrider
