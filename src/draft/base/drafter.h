// Drafter: guesses how texts go on.
//
// The engine calls, for each sequence: begin once, then draft and accept in turn, then end. Several
// sequences are drafted for in one call, so that a drafter with a model of its own can batch them.
// A drafter never decides anything: a wrong guess costs time, never output.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/field.h"
#include "base/status.h"
#include "base/types.h"
#include "dist/draws.h"
#include "model/sampler.h"
#include "tree/token_tree.h"

namespace outrider {

// DraftShape::branches, where whoever asks leaves it to the width (request/draft_defaults.h).
// Drafters never see it.
inline constexpr std::int32_t kBranchesByWidth = 0;

// How broadly to draft, and where to stop. Decided from the draft's distributions alone, never from
// what was drawn from them (dist/draws.h). Probabilities are those behind the sampler chain; at
// temperature 0, which leaves one token, those of the whole vocabulary in front of it.
struct DraftShape {
  // Leaves of each drafter's guesses at most, >= 1; 1: a chain. Merged drafters may still disagree.
  std::int32_t branches = 1;
  // The same for drafters whose branches cost passes of a model; 0: as `branches`.
  std::int32_t model_branches = 0;
  // A node gets a k-th child where the k-th likeliest token is at least this likely; in [0, 1].
  float split_p = 0.1f;
  // Nothing is drafted behind a node whose likeliest next token is less likely than this; in [0,
  // 1].
  float p_min = 0.0f;
  // Nor where it is less than this many times as likely as the runner-up; 0: no such stop.
  float p_ratio = 0.0f;
};

// What a request may say of it, each with its name, range and help. Static storage.
std::span<const Field<DraftShape>> shape_fields();

// Errors: kInvalidArgument, about the field.
Status validate(const DraftShape& shape);

// What the engine's planner tells a drafter that could guess more or less.
class DraftGuide {
 public:
  virtual ~DraftGuide() = default;

  // The chance that a guess is accepted, given that the one before it is: at this depth of the
  // tree, by a drafter that is this sure of it (0 to 1).
  virtual float chance(std::int32_t depth, float confidence) const = 0;

  // Whether one more pass pays, for guesses behind a node of this chance at this depth. Asked
  // before every pass but a draft's first one; the request's tree holds all that is proposed so
  // far.
  virtual bool another_pass(float tip_chance, std::int32_t tip_depth) = 0;

  // The draft ends otherwise than by that: there is nothing to guess behind, or no room.
  virtual void ended() {}
};

// One sequence's wish for a draft.
struct DraftRequest {
  SeqId seq = 0;
  std::span<const Token> text;  // everything decided; the last token is the tree's root
  std::uint64_t seed = 0;       // of the request's noise (dist/gumbel.h)
  Sampler* sampler = nullptr;   // the request's own, its state the text's; not null. To be copied
                                // before accept(), so that it stays as it is
  std::int32_t max_nodes = 0;   // most nodes to add; 0: none wanted now
  DraftShape shape;
  // Null: guesses are made up to max_nodes, and their chances are a fixed prior.
  DraftGuide* guide = nullptr;
  // Where to note what tokens were drawn from, and that they are to be drawn with noise of their
  // own. Null: the coupled rule, which picks with the target's noise and needs no note.
  Draws* draws = nullptr;
  DrafterMask mask = 0;       // marks this drafter's nodes
  TokenTree* tree = nullptr;  // in: the root, and what others proposed; out: with ours
  // Whose earlier texts may be looked at (draft/suffix/suffix_memory.h); empty: nobody's.
  std::string_view name_space = {};
  // Out: why this sequence got no guesses, or no more of them, where that concerns it alone.
  Status failure = {};
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  // The name in options and statistics, e.g. "draft-model". Static storage.
  virtual std::string_view name() const = 0;

  // A new text begins in `seq`. Its first `kept` tokens are those of the text that `seq` had before
  // (as far as this drafter was told of it), so what is known of them may stay; the rest is void.
  // On error nothing is known of `seq`.
  virtual Status begin(SeqId seq, std::size_t kept) = 0;

  // The same where the first `kept` tokens are those of the text that `from` has, another sequence,
  // whose text goes on. What is known of them may be shared. Where reading takes next to nothing,
  // they are read again.
  virtual Status begin_like(SeqId seq, SeqId /*from*/, std::size_t /*kept*/) {
    return begin(seq, 0);
  }

  // False: it knows too little of `text` to guess in this step, and is not asked. `text` as
  // DraftRequest has it.
  virtual bool can_guess(SeqId /*seq*/, std::span<const Token> /*text*/) const { return true; }

  // All guesses of a draft come out of its first pass: a further one takes no time.
  virtual bool guesses_at_once() const { return false; }

  // Extends each request's tree. Finding nothing is fine. What fails for one sequence is noted in
  // its request (DraftRequest::failure), and the others get their guesses; an error that is
  // returned concerns all. Either way some trees may have been extended (what is there is usable).
  // After kResourceExhausted and kCancelled it may be asked again for the same texts; after
  // another error the engine goes on without it and says why.
  virtual Status draft(std::span<DraftRequest> requests) = 0;

  // `text` is everything decided so far in `seq`, after a step; tokens up to the previous call's
  // have not changed. Cheap: work that can wait is left to draft().
  virtual void accept(SeqId seq, std::span<const Token> text) = 0;

  // The target's raw logits of the token that follows `token`, which was the text's last one or a
  // drafted guess, on its own path: [n_vocab]. Called for every node that a step checked, before
  // accept(), when wants_rows() says so. Cheap: it delays the next step.
  virtual bool wants_rows() const { return false; }
  virtual void observe(SeqId /*seq*/, Token /*token*/, std::span<const float> /*row*/) {}

  // The target's hidden state of text[position], which is `token`, on the text's own path:
  // [n_hidden]. Called for every token that the target has evaluated and that the text keeps, in
  // their order, before accept(), when wants_hidden() says so; never for rejected guesses. Tokens
  // that the target took from an earlier text or another sequence do not come again. Cheap.
  virtual bool wants_hidden() const { return false; }
  virtual void see_hidden(SeqId /*seq*/, std::size_t /*position*/, Token /*token*/,
                          std::span<const float> /*row*/) {}

  // What is known of the text of `seq`, as bytes for restore() of the same drafter in another
  // process, and how many of its tokens that is about. `seq` is idle between two texts.
  // kUnsupported where reading them again takes next to nothing.
  virtual Result<std::vector<std::uint8_t>> save(SeqId /*seq*/, std::size_t* n_tokens) {
    *n_tokens = 0;
    return unsupported("it keeps nothing");
  }
  // That is what is known of `seq` from now on. On error nothing is. REQUIRES: as
  // LanguageModel::restore
  virtual Status restore(SeqId /*seq*/, std::span<const std::uint8_t> /*bytes*/,
                         std::size_t /*n_tokens*/) {
    return unsupported("it keeps nothing");
  }

  // The text of `seq` has ended, and begin() or begin_like() may go on from it later. What is held
  // of guesses may be given back; `text` as accept() has it.
  virtual void rest(SeqId /*seq*/, std::span<const Token> /*text*/) {}

  // Nothing of the text will be needed again; its memory may be given back.
  virtual void end(SeqId seq) = 0;

  // While *flag is true, draft() ends early with kCancelled. Null: never. See LanguageModel.
  virtual void set_interrupt(const std::atomic<bool>* flag) = 0;

  // How many tokens of `text`, everything decided in `seq`, it need not read any more: those of a
  // cached prompt, and its own guesses that came true. 0 where reading takes next to nothing.
  virtual std::int64_t known(SeqId /*seq*/, std::span<const Token> /*text*/) const { return 0; }

  // Whether a draft for `text` would find room for it, as far as can be told before: else it would
  // be refused, with a limit_reason(). `text` as DraftRequest has it. REQUIRES: can_guess()
  virtual bool has_room(SeqId seq, std::span<const Token> /*text*/) const {
    return limit_reason(seq).empty();
  }

  // Whether read() can read less than all that a draft would: then a long text need not hold up the
  // others in one step.
  virtual bool reads_in_pieces() const { return false; }
  // Reads the next `n` tokens of `text` that it does not know, all but the last one at most, and
  // guesses nothing: known() tells how far it came, which is nowhere for want of room
  // (limit_reason()). What is drafted later is the same. Errors: as DraftRequest::failure, of this
  // text alone; kCancelled. REQUIRES: reads_in_pieces(); `text` as DraftRequest has it; n > 0
  virtual Status read(SeqId /*seq*/, std::span<const Token> /*text*/, std::int64_t /*n*/) {
    return unsupported("it reads all at once");
  }

  // What it has learned that holds from run to run, as numbers of its own, and back, in place of
  // what it knows; numbers that it cannot have given are passed over.
  virtual std::vector<double> learned() const { return {}; }
  virtual void recall(std::span<const double> /*learned*/) {}

  // Why `seq` gets no drafts at all although they were asked for (a full context, ...); empty:
  // nothing stands in the way. Where it is not empty behind a draft(), that took no pass for `seq`
  // and is not counted against the drafter.
  virtual std::string limit_reason(SeqId seq) const = 0;

  // What a result says of the guesses that `seq` misses: limit_reason(), or what is gone of what it
  // still guesses from (a file, ...). Empty: nothing.
  virtual std::string note(SeqId seq) const { return limit_reason(seq); }
};

// draft() for one sequence: its failure, whichever way it was said.
Status draft_one(Drafter& drafter, DraftRequest& request);

}  // namespace outrider
