// LocalRuntime: the runtime of one call of a command, with its models loaded and its drafters'
// files at work: what apps embed, so that the command exercises it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/llama_loader.h"
#include "base/status.h"
#include "run/harness.h"
#include "serve/runtime.h"
#include "tools/options/request_options.h"
#include "tools/terminal.h"

namespace outrider::tools {

struct LocalSetup {
  RuntimeOptions runtime{.slots = 1};
  LlamaLoaderOptions loader;
  std::optional<ModelOptions> target;
  std::optional<ModelOptions> draft;
  std::vector<DrafterFile> files;
  CompletionRequest request;  // must be one that the target can answer
};

// The drafters of the request, with what they read, and a target that is opened as wide as it asks.
LocalSetup setup_for(const RequestArguments& arguments, const ModelArguments& model);

class LocalRuntime {
 public:
  // Loads the target, then the draft model, then the files. Takes seconds; a signal ends it with
  // kCancelled. `created` is called before anything is loaded; may be empty. The terminal must
  // outlive it. Errors: the runtime's and the loader's, with the file's name; check_lone_head()'s.
  static Result<std::unique_ptr<LocalRuntime>> open(
      const LocalSetup& setup, Terminal& terminal,
      const std::function<void(Runtime&)>& created = {});

  Runtime& runtime() { return *runtime_; }
  // REQUIRES: a target was loaded
  const Target& target() const { return *target_; }
  // For experiments with them. REQUIRES: as target()
  Harness harness() {
    return {.runtime = *runtime_, .target = *target_, .watcher = terminal_.watcher()};
  }

  // Says what the user should know although it works: "the context is larger than ...", and that
  // steps hold fewer tokens than `request` asks for. REQUIRES: with a request, as target()
  void print_warnings(const std::optional<CompletionRequest>& request = std::nullopt) const;
  // That conversations are not in a format of the target's own, if so. REQUIRES: as target()
  void print_template_warning() const;

 private:
  LocalRuntime(const LocalSetup& setup, Terminal& terminal);
  Status load(const ModelOptions& target, const std::optional<ModelOptions>& draft);
  Status attach(const std::vector<DrafterFile>& files);

  Terminal& terminal_;
  LlamaLoader loader_;
  std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<const Target> target_;
  std::vector<std::string> warnings_;
};

}  // namespace outrider::tools
