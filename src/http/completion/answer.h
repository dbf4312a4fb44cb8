// Answer: one completion as HTTP clients see it: content, reasoning and calls of tools, told apart
// while they are said.
//
// Tested by answer_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/chat.h"
#include "serve/completion_result.h"

namespace outrider::http {

// More of a call; its id and name come whole, with its first delta.
struct ToolCallDelta {
  std::size_t index = 0;
  std::string id;
  std::string name;
  std::string arguments;
};

// The log-probability that is told of a token, if any was asked for; null: none. Not of one that a
// stop text took all of, which the answer does not have.
inline const TokenLogprob* told_logprob(const SaidToken& token) {
  return token.logprob && !token.cut ? &*token.logprob : nullptr;
}

// What is new since the last one.
struct AnswerDelta {
  std::string content;
  std::string reasoning;
  std::vector<ToolCallDelta> tool_calls;
  // That it was made of: markers of the template, and what was held back before, included.
  std::vector<SaidToken> tokens;
  Guesses guesses;  // of the answer so far, the tokens that wait for more text included

  // Nothing of it can be shown.
  bool silent() const { return content.empty() && reasoning.empty() && tool_calls.empty(); }
  // Nor is there a token of which no delta before it has told.
  bool empty() const { return silent() && tokens.empty(); }
};

// A reader reads the answer from its beginning each time, which takes the longer the longer the
// answer is (0.15 ms at 4,000 tokens). Where that is noticeable, tokens wait so that reading takes
// a twentieth of the time at most.
class Answer {
 public:
  // `reader`: of the conversation; null: all text is content. `clock` outlives this; null: the
  // machine's. `with_given`: what the message that goes on has of it (ChatReader::given()) is a
  // part of the answer, and of its first delta that says anything.
  explicit Answer(std::shared_ptr<const ChatReader> reader, const NowMs* clock = nullptr,
                  bool with_given = false)
      : reader_(std::move(reader)),
        clock_(clock),
        since_read_(clock),
        given_(with_given && reader_ != nullptr ? reader_->given() : ChatReply()) {}

  // More tokens, in order, whose joined texts are whole characters; `guesses`: with them.
  AnswerDelta add(std::vector<SaidToken> tokens, const Guesses& guesses = {});
  // The end, with what was held back until it was there. Once.
  AnswerDelta finish(std::shared_ptr<const CompletionResult> result);

  // So far.
  const ChatReply& reply() const { return reply_; }
  const std::vector<SaidToken>& tokens() const { return tokens_; }
  // Whether it has calls, and whether the last one was cut before its arguments, an object, ended:
  // then there is nothing to call yet.
  bool has_calls() const { return !reply_.tool_calls.empty(); }
  bool has_cut_call() const;
  // Of the tokens, those that came with more reasoning.
  std::int64_t reasoning_tokens() const { return reasoning_tokens_; }
  // Null before finish().
  const std::shared_ptr<const CompletionResult>& result() const { return result_; }

 private:
  AnswerDelta read(bool complete);

  std::shared_ptr<const ChatReader> reader_;
  const NowMs* clock_;
  Stopwatch since_read_;
  ChatReply given_;            // stands in front of what is read
  double next_read_ms_ = 0.0;  // behind the last one
  std::int64_t n_unread_ = 0;  // tokens
  std::string text_;
  std::vector<SaidToken> tokens_;
  std::vector<SaidToken> unshown_;  // the last of them, of which no delta has told
  ChatReply reply_;
  std::int64_t reasoning_tokens_ = 0;
  std::shared_ptr<const CompletionResult> result_;
};

}  // namespace outrider::http
