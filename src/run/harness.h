// The harness: what runs requests one by one, be it for a command, an experiment or a test. An
// experiment (lab/bench_run.h, compare_run.h, calibrate_run.h, replay_run.h) takes a plan, runs,
// and gives what it measured; an interrupted one gives what it had until then. It knows no options
// and no terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/watcher.h"
#include "input/prompt_file.h"
#include "serve/runtime.h"

namespace outrider {

struct Harness {
  Runtime& runtime;
  const Target& target;  // the runtime's
  Watcher watcher = {};
};

// Runs one request to its end. `on_tokens` (may be empty) gets what is said and returns false to
// end it; so does the watcher's interrupt. While a prompt of several batches is read, the watcher
// hears how far. `on_start` (may be empty) gets what it reads with. Errors: Runtime::start's. A
// failure on the way is in the completion.
Result<std::shared_ptr<const CompletionResult>> generate(
    const Harness& harness, CompletionRequest request,
    const std::function<bool(const std::vector<SaidToken>&)>& on_tokens = {},
    const std::function<void(const StartedCompletion&)>& on_start = {});

// The same for those who want all of the text or none: a failure on the way is an error, and so is
// an interruption (kCancelled).
Result<Completion> complete(const Harness& harness, CompletionRequest request);

// A prompt of a file, as a request has it: with `chat` a text is a user's message.
void set_prompt(CompletionRequest& request, const FilePrompt& prompt, bool chat);

// A prompt as tokens.
struct TokenPrompt {
  std::string id;
  std::string category;
  std::vector<Token> tokens;
};

// All prompts as tokens, so that a mistake in the last one is found before the first is run.
// Errors: make_prompt()'s, each naming the prompt.
Result<std::vector<TokenPrompt>> tokenize(const Target& target, std::span<const FilePrompt> prompts,
                                          bool chat);

}  // namespace outrider
