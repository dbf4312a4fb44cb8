// Engine: requests in, steps, updates out.
//
// One thread owns an engine and its models; only cancel() may be called from others. add() never
// computes; all work is done by step(). Drafters come and go between steps.
//
// The class is in two files: requests and steps in engine.cc; what sequences hold between requests,
// what a text begins with, and what gives way when they are full, in engine_contexts.cc. What a
// step does is in functions over its Step (engine/step.h), a file each.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "draft/base/drafter.h"
#include "engine/idle_texts.h"
#include "engine/prompt_division.h"
#include "engine/prompt_share.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "model/language_model.h"
#include "model/vocabulary.h"

namespace outrider {

// What Engine::add would say about a request, sequences taken aside. Any thread.
Status check_request(const Capabilities& target, const Request& request);

// The same about its prompt alone.
Status check_prompt(const Capabilities& target, std::span<const Token> prompt);

// What a prompt can use of another text.
IdleTexts::Use prefix_use(const Capabilities& target);

struct EngineOptions {
  // Prompt tokens of a step, all requests together, while other texts go on; >= 1.
  std::int32_t prompt_chunk = std::numeric_limits<std::int32_t>::max();
  // Of the time, what one prompt takes while other texts go on, in the long run: 0 < share <= 1; 1
  // is no limit (engine/prompt_share.h).
  double prompt_share = 1.0;
  // Whether an ended text's state is kept for prompts that begin alike, and a running one's is
  // shared with them (engine/idle_texts.h).
  bool reuse_prefix = false;
  // A request waits for a running one to read what both begin with, if that saves it at least as
  // many tokens. One more pass costs less than reading them (docs/decisions.md).
  std::int32_t least_awaited = 64;
  // Most tokens of a sequence in a step where the planner chooses (engine/step_width.h).
  std::int32_t planned_width = CostCurve::kMaxWidth;
  // What passes of the target take, as far as that was measured; the rest is measured while it
  // works.
  PassCosts costs;
  // By which the planner measures; empty: the machine's monotonic clock.
  NowMs now_ms;
};

struct Step;

class Engine {
 public:
  // All arguments must outlive the engine. `drafters` propose in this order (at most kMaxDrafters).
  Engine(LanguageModel& target, const Vocabulary& vocabulary, std::vector<Drafter*> drafters,
         const EngineOptions& options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Takes a request into a free sequence of the target.
  // Errors: kInvalidArgument (empty prompt, an id outside the vocabulary, a prompt that leaves no
  // room in the context, an empty stop string, width < 1, max_tokens < -1, no sampler);
  // kResourceExhausted when all sequences are taken. Nothing has changed then. May throw
  // std::bad_alloc; then no request was added, and an ended text may be gone.
  Result<RequestId> add(Request request);

  // `drafter`, which must outlive the engine or be detached, guesses for requests that are added
  // from now on. kResourceExhausted when there are kMaxDrafters already.
  static constexpr std::size_t kMaxDrafters = outrider::kMaxDrafters;
  Status attach(Drafter* drafter);

  // `drafter` is not used any more. Requests that it guessed for go on with the others, or plain,
  // and their results say why: `reason`. Unknown drafters are ignored.
  void detach(Drafter* drafter, const std::string& reason);

  // Those that are attached, in the order in which they are asked; null where one was detached, or
  // where the constructor was given a place for one.
  const std::vector<Drafter*>& drafters() const { return drafters_; }
  // The place among them of the one of this name; nothing: it is not attached.
  std::optional<std::size_t> find_drafter(std::string_view name) const;

  // Who guessed a piece (Piece::by): "target" or the drafter's name, also when it was detached
  // since and no other took its place. Static storage.
  std::string_view name_of(std::int32_t by) const;

  // Sequences that no request has, and what they hold.
  const IdleTexts& idle() const { return idle_; }
  // What one of them holds, as LanguageModel::save gives it.
  Result<std::vector<std::uint8_t>> save_idle(SeqId seq) { return target_.save(seq); }
  std::uint64_t saved_bytes(SeqId seq) const { return target_.saved_bytes(seq); }
  // An empty one holds `text` from now on, as if it had been put longest ago. Errors:
  // LanguageModel::restore's; kResourceExhausted when none is empty; kInvalidArgument for a text
  // that is no text of the target; kUnsupported without reuse_prefix.
  Result<SeqId> restore_idle(const std::vector<Token>& text, std::span<const std::uint8_t> bytes);
  // They hold nothing from now on, whatever the models were used for since the last step, which is
  // allowed before and behind this: drafters know of no text, and what interrupts the models is
  // the engine's own flag again. May throw std::bad_alloc; then some hold what they held.
  // REQUIRES: !busy()
  void forget_idle();

  // Of a running request's prompt, how much has been read, 0 to 1; 1 for unknown ids.
  double prompt_progress(RequestId id) const;

  // True while any request is running.
  bool busy() const { return !sequences_.empty(); }

  // One step for all running requests. Never blocks when idle. Whatever fails ends up in the
  // completion of the request that it concerns, as FinishReason::kError. At least one token for
  // each text that goes on, unless interrupted; prompts may have to wait (prompt_share), or for an
  // older request to read what both begin with.
  std::vector<Update> step();

  // The completion of a request whose Update said `finished`, once. kNotFound otherwise.
  Result<Completion> take(RequestId id);

  // Ends a request with what it has; it finishes in the step that is running, or in the next one.
  // Any thread. Unknown ids are ignored: the request may just have ended. add() has kept room for
  // it, so the first cancel of a request needs no memory: a request that cannot be ended would keep
  // its sequence.
  void cancel(RequestId id);

  // What is known of costs and drafters. Between steps.
  Planner& planner() { return planner_; }
  const Planner& planner() const { return planner_; }

  // Empty when the models' states are what the texts say, else what differs. Between steps.
  std::string check_integrity() const;

 private:
  void set_interrupt(const std::atomic<bool>* flag);
  std::size_t take_over(SeqId seq, std::size_t kept);
  std::size_t begin_like(SeqId seq, SeqId from, std::size_t kept);
  std::vector<IdleTexts::Running> running_texts() const;
  void wait_for(Sequence& sequence, const IdleTexts::Choice& choice) const;
  void share_awaited();
  void share_again(Sequence& sequence, std::size_t n_older);
  void go_on_from(Sequence& sequence, SeqId from, std::size_t held);
  void begin(Sequence& sequence, const IdleTexts::Choice& choice);
  void begin_drafters(Sequence& sequence, SeqId from, std::size_t kept);
  void begin_drafting(Sequence& sequence, SeqId from, std::size_t kept);
  Status begin_drafter(std::size_t drafter, SeqId seq, SeqId from, std::size_t kept);
  void apply_cancels();
  void note_prompts(const Step& step, double ms);
  void end_those_that_only_read();
  void shift_full_contexts();
  void shift(Sequence& sequence);
  void make_room();
  void forget(SeqId seq);
  bool forget_oldest();
  void forget_drafts();
  void retire(std::vector<Update>& updates);
  void rest(const Sequence& s, std::span<const Token> text);
  Completion complete(Sequence& sequence);

  LanguageModel& target_;
  const Vocabulary& vocabulary_;
  std::vector<Drafter*> drafters_;       // null: detached, the index is free
  std::vector<std::string_view> names_;  // [drafters_] of who has the index, or had it last
  EngineOptions options_;
  Planner planner_;
  PromptShare prompts_;
  PromptDivision division_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // requests that run, oldest first
  std::vector<Completion> done_;                      // finished, not taken
  IdleTexts idle_;                                    // sequences of the target not in use
  RequestId next_id_ = 1;

  std::mutex cancel_mutex_;  // guards cancels_
  std::vector<RequestId> cancels_;
  std::atomic<bool> interrupt_{false};  // raised with cancels_; read inside the target's evaluate
  // False while a step must come to its end, because the one before it was interrupted: however
  // many requests are cancelled, the others get on; and while others' texts would be lost.
  std::atomic<bool> may_interrupt_{true};
};

}  // namespace outrider
