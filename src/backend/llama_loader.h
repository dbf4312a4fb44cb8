// LlamaLoader: opens models with llama.cpp, for the runtime and for the command.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "base/status.h"
#include "model/model_options.h"
#include "serve/loader.h"

namespace outrider {

// What does not belong to a model but to whoever opens it.
struct LlamaLoaderOptions {
  bool speculation = true;  // false: only single steps will be asked for, so that a lone sequence
                            // needs no probe

  // Of the probe; 0: $OUTRIDER_PROBE_BUDGET_MS, else 10 s, and 3 s with ExactMode::kOff.
  double probe_budget_ms = 0.0;

  // Whether to measure what passes take by their width (backend/target_costs.h).
  bool measure_costs = true;
  // Whether to measure them although they are known.
  bool refresh_costs = false;

  // Where verdicts and costs are kept; not given: the user's cache folder; empty: nowhere.
  std::optional<std::filesystem::path> cache_folder;

  // Whenever a model's weights have been read, from the loading thread. For base/process_end.h:
  // what ggml makes for weights, and computes with, is a static.
  std::function<void()> at_weights;

  // llama.cpp's own lines, where the hooks of a load have no sink for them; may be empty.
  LogSink log;

  // How far the probe is, 0 to 1, after the file has been read; from the loading thread. Empty: the
  // hooks' progress goes to 0.5 while the file is read, and from there to 1 with the probe.
  std::function<void(double fraction)> probe_progress;
};

// Keeps nothing between calls; all functions may run at once, from any thread.
class LlamaLoader : public ModelLoader {
 public:
  explicit LlamaLoader(LlamaLoaderOptions options = {}) : options_(std::move(options)) {}

  // The model runs in this process, or with options.isolate or options.workers in a child
  // (backend/loaded_target.h). Besides ModelLoader's errors: kUnsupported when ExactMode::kOn
  // cannot be had, with the reason and what would be right.
  Result<std::unique_ptr<Target>> load_target(const ModelOptions& options,
                                              const LoadHooks& hooks) override;

  // Always in this process: kInvalidArgument with options.isolate or options.workers. `target` must
  // come from a LlamaLoader.
  Result<std::unique_ptr<Draft>> load_draft(const ModelOptions& options,
                                            std::shared_ptr<const Target> target,
                                            const LoadHooks& hooks) override;

  // 0 also for a model on other devices than the processor, or on workers.
  Result<std::uint64_t> estimate_memory(const ModelOptions& options) override;

 private:
  LlamaLoaderOptions options_;
};

}  // namespace outrider
