// Sequence: one request on its way through the steps.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "dist/draws.h"
#include "engine/output.h"
#include "engine/request.h"
#include "tree/token_tree.h"
#include "verify/walk.h"

namespace outrider {

struct Sequence {
  Sequence(RequestId request_id, SeqId seq_id, Request r, std::int64_t n_ctx);

  // Decided tokens: the prompt, then what the target said.
  std::vector<Token> text;

  RequestId id;
  SeqId seq;
  Request request;
  std::int64_t n_prompt;
  Output output;
  std::vector<TokenLogprob> logprobs;  // [tokens said] when asked for
  Status error;                        // set: the request failed
  bool answered = false;               // the first token is there

  // This step's trees. `proposed` keeps what the drafters said, `sent` what the target checks.
  std::optional<TokenTree> proposed;
  std::optional<TokenTree> sent;
  Draws draws;  // what the drafted tokens of `proposed` were drawn from, for rules that need it

  Stopwatch age;           // since add()
  Stopwatch since_first;   // since the first token
  double waited_ms = 0.0;  // in the queue, before its first step
  bool started = false;
  Timings timings;
  SpeculationStats stats;

  // Tokens of the text that a model holding `length` of them has not seen. At least 1.
  std::span<const Token> unseen(Pos length) const {
    return std::span<const Token>(text).subspan(static_cast<std::size_t>(length));
  }
  bool wants_drafts() const { return stats.enabled; }
  bool over() const { return output.finished() || !error.ok(); }
};

}  // namespace outrider
