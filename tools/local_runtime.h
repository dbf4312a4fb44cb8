// LocalRuntime: the runtime of one call of a command, with its models loaded and its drafters'
// files at work: what apps embed, so that the command exercises it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/llama_loader.h"
#include "base/log.h"
#include "base/status.h"
#include "lab/prompt_file.h"
#include "serve/runtime.h"
#include "tools/progress.h"
#include "tools/request_options.h"
#include "tools/signals.h"

namespace outrider::tools {

struct LocalSetup {
  RuntimeOptions runtime{.slots = 1};
  LlamaLoaderOptions loader;
  std::optional<ModelOptions> target;
  std::optional<ModelOptions> draft;
  std::vector<DrafterFile> files;
};

// The drafters of the request, with what they read, and a target that is opened as wide as it asks.
LocalSetup setup_for(const RequestArguments& arguments, const ModelArguments& model);

// What loading needs of its caller.
struct LocalHooks {
  ProgressBar& progress;
  const SignalWatch& signals;             // a signal ends the loading with kCancelled
  LogSink log;                            // llama.cpp's own lines; may be empty
  std::function<void(Runtime&)> created;  // before anything is loaded; may be empty
};

class LocalRuntime {
 public:
  // Loads the target, then the draft model, then the files. Takes seconds. Errors: the runtime's
  // and the loader's, with the file's name.
  static Result<std::unique_ptr<LocalRuntime>> open(const LocalSetup& setup,
                                                    const LocalHooks& hooks);

  Runtime& runtime() { return *runtime_; }
  const Runtime& runtime() const { return *runtime_; }
  // REQUIRES: a target was loaded
  const Target& target() const { return *target_; }
  const std::optional<ModelInfo>& draft_info() const { return draft_info_; }

  // Says what the user should know although it works: "the context is larger than ...", and that
  // steps hold fewer tokens than `request` asks for.
  void print_warnings(const CompletionRequest& request) const;
  // The same without a request.
  void print_warnings() const;

 private:
  LocalRuntime(const LocalSetup& setup, const LocalHooks& hooks);
  Status load(ModelRole role, const ModelOptions& options, const LocalHooks& hooks);
  Status attach(const std::vector<DrafterFile>& files);

  LlamaLoader loader_;
  std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<const Target> target_;
  std::optional<ModelInfo> draft_info_;
  std::vector<std::string> warnings_;
};

// A prompt of a file, as a request has it: with `chat` a text is a user's message.
void set_prompt(CompletionRequest& request, const lab::Prompt& prompt, bool chat);

// All prompts as tokens, so that a mistake in the last one is found before the first is run.
// Errors: make_prompt()'s, each naming the prompt.
Result<std::vector<std::vector<Token>>> tokenize(const Target& target,
                                                 std::span<const lab::Prompt> prompts, bool chat);

// Runs one request to its end. `on_tokens` (may be empty) gets what is said and returns false to
// end it; a signal ends it too. While a prompt of several batches is read, `progress` shows how
// far. Errors: Runtime::start's. A failure on the way is in the completion.
Result<std::shared_ptr<const CompletionResult>> generate(
    LocalRuntime& local, CompletionRequest request, SignalWatch& signals, ProgressBar& progress,
    const std::function<bool(const std::vector<SaidToken>&)>& on_tokens);

}  // namespace outrider::tools
