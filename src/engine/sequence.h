// Sequence: a request that runs, from Engine::add until its completion is there.
//
// A model's sequence is a place for one text, numbered by SeqId. This is what the engine has of the
// request that holds such a place of the target: its text, where that stands, and the counts for
// its completion. Its neighbours: `Request` is what was asked for, `Completion` what comes of it. A
// `Job` (serve/job.h) is the same request in the runtime, where it may still wait for a place. A
// sequence of the target that no request has is an IdleTexts::Entry.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "dist/draws.h"
#include "engine/output.h"
#include "engine/request.h"
#include "plan/planner.h"
#include "plan/tree_chances.h"
#include "tree/token_tree.h"
#include "verify/walk.h"

namespace outrider {

struct Sequence {
  Sequence(RequestId request_id, SeqId seq_id, Request r, std::int64_t n_ctx);

  // Decided tokens: the prompt, then what the target said, less what a shift dropped.
  std::vector<Token> text;
  std::int64_t n_dropped = 0;
  std::int64_t shifts = 0;
  // Of the noise. The request's seed until a shift: positions come a second time then, and the
  // noise should not.
  std::uint64_t noise_seed;

  RequestId id;     // what Engine::add gave for it
  SeqId seq;        // the place that it holds in the target, and in its drafters
  Request request;  // as it was asked; its sampler's state is the text's
  std::int64_t n_prompt;
  Output output;
  std::vector<TokenLogprob> logprobs;  // [tokens said] when asked for
  std::size_t n_shown = 0;             // tokens said that an Update has carried
  std::int64_t cached_tokens = 0;      // of the prompt, that need not be read
  Status error;                        // set: the request failed
  bool answered = false;               // the first token is there

  // The older request that reads what both begin with; this one takes no part in steps meanwhile.
  struct Awaited {
    RequestId id = 0;
    std::size_t tokens = 0;
  };
  std::optional<Awaited> awaited;

  // This step's trees. `proposed` keeps what the drafters said, `sent` what the target checks.
  std::optional<TokenTree> proposed;
  std::optional<TokenTree> sent;
  bool planned = false;     // the planner chooses the width of this step
  std::int32_t width = 1;   // of this step at most, whoever chooses (engine/step_width.h)
  DrafterMask asked = 0;    // who was asked in this step, and could answer
  DrafterMask reading = 0;  // that read its text in pieces, and have begun to (engine/asking.h)
  TreeChances chances;      // of `proposed`, where the planner chooses
  RequestPlan plan;
  Draws draws;  // what the drafted tokens of `proposed` were drawn from, for rules that need it

  Stopwatch age;           // since add()
  Stopwatch since_first;   // since the first token
  double waited_ms = 0.0;  // in the queue, before its first step
  bool started = false;
  Timings timings;
  SpeculationStats stats;                        // .drafters: [engine's drafters when it was added]
  DrafterMask drafters = 0;                      // that may guess, as bits of their index
  std::vector<std::vector<std::size_t>> chains;  // their plan (DrafterPlan), in such indices

  // A drafter that found too little room for this text: how often one after the other, and after
  // how many steps of the text it is asked again.
  struct Shortage {
    std::int32_t count = 0;
    std::int64_t not_before = 0;
  };
  std::array<Shortage, kMaxDrafters> shortages = {};  // [engine's drafters]

  // Tokens of the text that a model holding `length` of them has not seen. At least 1.
  std::span<const Token> unseen(Pos length) const {
    return std::span<const Token>(text).subspan(static_cast<std::size_t>(length));
  }
  // The rest behind the `length` tokens that the target holds is read as a prompt is: one, or a
  // text of which a context shift or a cancelled pass left little. What a target that cannot drop a
  // part of its state reads again in a step is less.
  bool is_prompt(Pos length) const {
    constexpr std::size_t kAtOnce = 32;
    return !answered || unseen(length).size() > kAtOnce;
  }
  // Its prompt is to be read and kept, and nothing to be said. The last token of a prompt is never
  // read for that: whoever begins alike reads it again with the first step (engine/idle_texts.h).
  bool only_reads() const { return request.max_tokens == 0; }
  // Tokens that the text may still go on by.
  std::int64_t remaining() const;
  // The same in a context of `n_ctx` tokens, without a shift.
  std::int64_t context_left(std::int64_t n_ctx) const {
    return n_ctx - static_cast<std::int64_t>(text.size());
  }
  // Its tokens are drawn: its temperature is not 0.
  bool is_drawn() const { return request.sampler != nullptr && !request.sampler->greedy(); }
  bool wants_drafts() const { return stats.enabled; }
  bool asks(std::size_t drafter) const { return ((drafters >> drafter) & 1) != 0; }
  // This drafter guesses no more for it. Without any, speculation is off.
  void drop_drafter(std::size_t drafter, const std::string& reason);
  void drop_failed(std::size_t drafter, std::string_view name, const Status& why);
  bool over() const { return output.finished() || !error.ok(); }
};

}  // namespace outrider
