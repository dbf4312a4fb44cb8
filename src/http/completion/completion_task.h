// CompletionTask: what a client's body asks for, whichever API it speaks, and its answering.
//
//   body -> CompletionTask (chat_form.h, text_form.h, ...) -> answer_completion() -> HttpReply
//
// Tested by completion_task_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http/completion/answer_form.h"
#include "http/exchange/exchange.h"
#include "request/completion_request.h"
#include "serve/runtime.h"

namespace outrider::http {

class ServerState;

inline constexpr std::int32_t kPingSeconds = 15;
inline constexpr std::int32_t kMostPingSeconds = 3600;

// The requests of a body's answers. They share what they can, and are copied one at a time: with
// prompt, grammar and biases each may have megabytes.
struct AnswerRequests {
  CompletionRequest shared;  // of every answer, but for what follows
  // Where there are several prompts, in place of the shared one; else empty.
  std::vector<std::vector<PromptPart>> prompts;
  // Of each answer, 1 to kMaxPrompts; those of the first prompt's answers are in front, ...
  std::vector<std::int64_t> seeds;

  std::size_t size() const { return seeds.size(); }
  CompletionRequest of(std::size_t answer) const;
};

struct CompletionTask {
  AnswerRequests requests;
  std::string model;  // of the catalog; empty: the default
  bool stream = false;
  // Where a message goes on, the answer begins with what it has, not behind it.
  bool with_given = false;
  // A stream that says nothing for so many seconds gets a sign of life, which clients and proxies
  // that end silent connections need; 0 or less: it does not.
  std::int32_t ping_s = kPingSeconds;
  // The types of tools that were left out, which the reply says in kIgnoredToolsHeader.
  std::vector<std::string> ignored_tools;
  // What the client wishes of the answer that nothing comes of here, as the body spells it
  // ("text.verbosity"), which the reply says in kIgnoredHeader.
  std::vector<std::string> ignored;
  std::unique_ptr<AnswerForm> form;  // not null

  // `n` answers to each of `prompts`, or of none to the request's own: answer i to a prompt has the
  // seed of the request, plus i. llama-server's 4294967295 is a random seed, as -1 is.
  void set_requests(CompletionRequest request, std::int32_t n,
                    std::vector<std::vector<PromptPart>> prompts = {});
};

// To one prompt.
inline constexpr std::int32_t kMaxAnswers = 16;
// Of one body, and answers to all of them together.
inline constexpr std::int32_t kMaxPrompts = 128;

// "web_search, local_shell": a header, which no client stumbles over.
inline constexpr std::string_view kIgnoredToolsHeader = "x-outrider-ignored-tools";
inline constexpr std::string_view kIgnoredHeader = "x-outrider-ignored";

// An error where a body has `n` prompts, more than kMaxPrompts.
Status check_prompts(std::size_t n);
// An error where `n` answers to each of `prompts` prompts are more than kMaxPrompts.
Status check_answers(std::size_t prompts, std::int32_t n);

// Starts the completions and returns the whole answer, or a reply that streams it. They are
// cancelled as soon as the client goes (within two kGoneMs, and the time that its reset takes),
// more than kMostUnsent waits for it, or the reply is destroyed unsent.
HttpReply answer_completion(ServerState& server, const HttpRequest& request, CompletionTask task);

// How often the connection of a client that waits is looked at, in milliseconds.
inline constexpr std::int64_t kGoneMs = 100;

// Bytes of events that wait for a stream's client, at most: of one that is further behind while its
// text goes on, the completion is cancelled. 80,000 tokens with an event each, 10,000 with the
// probabilities of five others; a text that has ended is written to its end.
inline constexpr std::size_t kMostUnsent = 16 << 20;

}  // namespace outrider::http
