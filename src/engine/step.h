// One step over many sequences, as a list of phases.
//
//   prepare   which texts the planner chooses for, and what each token more in the batch will cost
//   propose   drafters guess how each text goes on: those that the planner expects to pay
//   plan      of all proposed nodes, the ones worth checking
//   evaluate  one batch of the target: prompts' next chunks, decided tokens, drafted nodes
//   verify    walk each tree with its acceptance rule; every token passes the stop rules
//   commit    keep the accepted paths in the target's state; drafters learn the new text
//   learn     the planner learns: which guesses were right, what each drafter cost and gained
//   emit      what can be shown, and completions that are done
//
// Guarantees between the phases:
//   after propose   every ready sequence has a tree; its root is the text's last token
//   after plan      the trees fit the request's width, the model's room and batch together
//   after evaluate  each part either has logits for all its nodes, or its sequence failed; no more
//                   target work is done in this step
//   after commit    the target's state is the text without its last token, or all of it when the
//                   text ended with an accepted token; less on targets that cannot drop a part of
//                   their state: what is missing is the next step's prefix
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "draft/base/drafter.h"
#include "engine/prompt_share.h"
#include "engine/sequence.h"
#include "model/language_model.h"
#include "model/vocabulary.h"
#include "plan/planner.h"

namespace outrider {

// One sequence's part in a step.
struct Part {
  Sequence* sequence = nullptr;
  Pos seen = 0;                   // tokens that the target held before the step
  std::span<const Token> prefix;  // of the text, before the root or the chunk's end
  bool ready = false;             // the root is within reach: the part has a tree and gives tokens
  bool as_prompt = false;         // it got what texts that go on leave to prompts
  std::ptrdiff_t item = -1;       // index in the target's batch; -1: not evaluated
  std::optional<Walk> walk;

  // Of the batch, once the trees are planned.
  std::int32_t n_tokens() const {
    return static_cast<std::int32_t>(prefix.size()) + (ready ? sequence->sent->size() : 0);
  }
};

struct Step {
  LanguageModel& target;
  const Vocabulary& vocabulary;
  std::span<Drafter* const> drafters;  // null: nobody has that index now
  Planner& planner;
  const NowMs* clock;                                 // null: the machine's
  std::int32_t planned_width = CostCurve::kMaxWidth;  // of a sequence at most
  PromptShare* prompts = nullptr;  // what drafters may read beside texts; null: no limit
  // The ended text that was put longest ago gives way; false: there is none.
  std::function<bool()> forget_oldest = {};
  std::vector<Part> parts;
  std::vector<EvalItem> items;     // of the target's batch
  std::int32_t n_ready = 0;        // parts that will give tokens
  std::int32_t n_prefix = 0;       // tokens of all prefixes; both after prepare
  std::optional<StepCosts> costs;  // for these, after prepare
  bool interrupted = false;        // the target was told to stop; nothing was evaluated
  FallingChances chances;          // of all nodes proposed where the planner chooses
  double draft_ms = 0.0;
  std::vector<double> drafter_ms;  // [drafters], what each took
  double reading_ms = 0.0;         // that texts which go on waited for what drafters read
  double plan_ms = 0.0;
  double evaluate_ms = 0.0;
  std::int32_t n_prompt = 0;  // of the evaluated tokens: of texts that are read as prompts
  std::int32_t n_text = 0;    // and of those that go on
  // The tokens that took evaluate_ms: those of the batch as it was planned, without prompts; 0: it
  // was another one.
  std::int32_t timed_width = 0;
};

void prepare(Step& step);
void propose(Step& step);
void plan(Step& step);
void evaluate(Step& step);
void verify(Step& step);
void commit(Step& step);
void learn(Step& step);
void emit(Step& step, std::vector<Update>& updates);

// What can be shown of a sequence since the last call.
Update next_update(Sequence& sequence);

}  // namespace outrider
