#include "run/harness.h"

#include <utility>

#include "serve/prompt.h"

namespace outrider {
namespace {

constexpr std::int64_t kLookMs = 50;  // between two looks at the watcher's interrupt

}  // namespace

Result<std::shared_ptr<const CompletionResult>> generate(
    const Harness& harness, CompletionRequest request,
    const std::function<bool(const std::vector<SaidToken>&)>& on_tokens,
    const std::function<void(const StartedCompletion&)>& on_start) {
  Runtime& runtime = harness.runtime;
  const Result<StartedCompletion> started = runtime.start(std::move(request));
  if (!started.ok()) return started.status();
  if (on_start) on_start(*started);
  bool reading = started->prompt.n_tokens > harness.target.capabilities().n_batch;
  bool ending = false;
  while (true) {
    Result<PolledCompletion> polled = runtime.poll(started->id, kLookMs);
    if (!polled.ok()) return polled.status();
    if (!polled->tokens.empty() || polled->finished) reading = false;
    if (reading) harness.watcher.update("reading the prompt", polled->prompt_progress);
    bool wanted = !harness.watcher.interrupted();
    if (!polled->tokens.empty() && on_tokens) wanted = on_tokens(polled->tokens) && wanted;
    if (polled->finished) return polled->result;
    if (wanted || ending) continue;
    (void)runtime.cancel(started->id);  // not found: it has ended
    ending = true;
  }
}

Result<Completion> complete(const Harness& harness, CompletionRequest request) {
  const Result<std::shared_ptr<const CompletionResult>> result =
      generate(harness, std::move(request));
  if (!result.ok()) return result.status();
  const Completion& completion = (*result)->completion;
  if (!completion.error.ok()) return completion.error;
  if (harness.watcher.interrupted()) return cancelled("interrupted");
  return completion;
}

void set_prompt(CompletionRequest& request, const FilePrompt& prompt, bool chat) {
  request.prompt.clear();
  request.messages = prompt.messages;
  if (!prompt.messages.empty()) return;
  if (chat) {
    request.messages = {{.role = "user", .content = prompt.text}};
  } else {
    request.prompt = {prompt.text};
  }
}

Result<std::vector<TokenPrompt>> tokenize(const Target& target, std::span<const FilePrompt> prompts,
                                          bool chat) {
  std::vector<TokenPrompt> all;
  for (const FilePrompt& prompt : prompts) {
    CompletionRequest request;
    set_prompt(request, prompt, chat);
    Result<Prompt> made = make_prompt(request, target);
    if (!made.ok()) return made.status().with_context("prompt " + prompt.id);
    all.push_back({prompt.id, prompt.category, std::move(made->tokens)});
  }
  return all;
}

}  // namespace outrider
