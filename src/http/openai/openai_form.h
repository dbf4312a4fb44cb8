// What OpenAI's two completions (chat_form.h, text_form.h) write alike, and what we add to the
// answers of every API.
//
// Tested by chat_form_test.cc, text_form_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "http/completion/answer_form.h"
#include "http/completion/timings.h"
#include "http/openai/openai_body.h"
#include "json/json.h"

namespace outrider::http {

class OpenAiForm : public AnswerForm {
 public:
  // `prefix` begins the answer's id; `object` and `chunk` are what a whole answer and a streamed
  // piece say that they are, literals.
  OpenAiForm(std::string_view prefix, const char* object, const char* chunk,
             const AnswerWishes& wishes);

  // The usage, where it was asked for, and [DONE].
  void finish(const std::vector<Answer>& answers, std::string& out) override;
  void fail(const Status& error, std::string& out) override;
  // The outcome and the tokens are the first answer's; of several, each choice has its own as well.
  json::Json whole(const std::vector<Answer>& answers) override;

 protected:
  const AnswerWishes& wishes() const { return wishes_; }

  // Whether a chunk for it would hold nothing that the client wants to know.
  bool tells_nothing(const AnswerDelta& delta) const;
  // Of a streamed piece, where the client asked for token_sources: those of its tokens, and
  // "speculation": {"drafted","accepted"} of the answer so far.
  void add_sources(const AnswerDelta& delta, json::Json& chunk) const;
  // "tokens": [{"id","text","by"}], where the client asked for token_sources.
  void add_sources(const std::vector<SaidToken>& tokens, json::Json& object) const;
  // For add_timings(), of every delta of answer i, also of one that tells nothing.
  void count(std::size_t i, const AnswerDelta& delta);
  // Of a streamed piece of answer i, where the client asked for timings_per_token: "timings" so
  // far.
  void add_timings(std::size_t i, json::Json& chunk) const;
  double since_begin_ms() const { return since_begin_.elapsed_ms(); }
  // A chunk with this one choice.
  json::Json chunk_with(json::Json choice) const;
  // The last chunk of an answer: why it ended, and its outcome. `chunk`: one with nothing new.
  void append_end(const Answer& answer, json::Json chunk, std::string& out) const;

 private:
  // What a whole answer's choice has beside its index and why it ended.
  virtual json::Json choice(const Answer& answer) const = 0;

  // {"id","object": kind,"created","model","system_fingerprint"}
  json::Json head(const char* kind) const;
  // The finish_reason of an answer that calls.
  const char* called() const { return wishes_.older_calls ? "function_call" : "tool_calls"; }

  const AnswerWishes wishes_;
  const std::string id_;
  const char* const object_;
  const char* const chunk_;
  const std::int64_t created_;  // seconds since 1970
  const Stopwatch since_begin_;
  std::vector<SaidSoFar> said_;  // of each answer that has said something
};

// {"prompt_tokens","completion_tokens","total_tokens","prompt_tokens_details":{"cached_tokens"}},
// of all answers; each `n` of them, one behind the other, are to the same prompt, which counts
// once. REQUIRES: they are complete
json::Json openai_usage(const std::vector<Answer>& answers, std::int32_t n);

// The log-probabilities that are told of tokens: an array, which may be empty.
json::Json logprobs_json(const std::vector<SaidToken>& tokens);

// What we add to the end of every answer: "timings", "speculation", whose reason names files
// without their folders, and "seed". REQUIRES: complete
void add_outcome(const Answer& answer, json::Json& object);

}  // namespace outrider::http
