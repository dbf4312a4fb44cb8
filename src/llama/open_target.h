// Opening a target (or a draft) with the settings of the exactness rule, and the probe's verdict.
//
//   kAuto  rule -> load -> context -> probe -> the verdict is reported
//   kOn    the same with the strict rule; where the probe still finds a difference, plain weight
//          buffers and an exact cache are tried, then widths are limited; else it refuses
//   kOff   the fastest settings; the probe reports within a shorter time
//
// With workers (ModelOptions::workers) the rule is the processor's: their buffers are plain ones,
// and `outrider worker` computes with the processor where it has no accelerator. The probe sees
// what they really do, and its verdict is not kept for the next time.
//
// Where the file has prediction layers, the model hands out the hidden states that they read,
// whether they are used or not, and in the probe, too. Likewise for a head in a file of its own
// (ModelOptions::head).
//
// Settings never depend on whether speculation is on. The probe is left out when every batch holds
// one token anyway (no speculation, one sequence), except with kOn, whose settings may depend on
// it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "llama/exactness/exactness_rule.h"
#include "llama/files/model_file.h"
#include "llama/model/llama_model.h"
#include "model/exactness.h"
#include "model/model_options.h"

namespace outrider::llama {

struct TargetOptions {
  // Most tokens of one sequence in a step, >= 1; above n_batch: n_batch.
  std::int32_t widest = kOpenedWidth;
  bool speculation = true;  // false: the caller will only take single steps

  // Of the probe; 0: $OUTRIDER_PROBE_BUDGET_MS, else 10 s, and 3 s with ExactMode::kOff.
  double probe_budget_ms = 0.0;

  // Where verdicts are kept; not given: default_cache_folder(); empty: nowhere.
  std::optional<std::filesystem::path> cache_folder;

  std::function<void(double fraction)> probe_progress;  // 0 to 1; from the calling thread
};

struct OpenedTarget {
  std::shared_ptr<ModelFile> file;
  std::unique_ptr<LlamaModel> model;
  // The file's prediction layers (ModelOptions::mtp), which read the model's hidden states. Empty
  // where there are none, or they cannot be used; no_prediction_reason says why, and notes do where
  // the file has any.
  std::vector<std::unique_ptr<LlamaModel>> prediction;
  std::string no_prediction_reason;
  Exactness exactness;
  ContextSettings settings;        // in effect: the model's
  bool extra_bufts = true;         // whether weights may lie in repacked buffers
  std::vector<std::string> notes;  // for the user: what his choices cost, what was replaced

  // Of the probe, for its tests alone.
  std::int32_t longest_piece = 0;  // prompt pieces up to this were seen to leave the same state
  bool probe_cached = false;       // the verdict was known
  double probe_seconds = 0.0;      // 0 when cached or left out
};

// `hooks` as for ModelFile::load; its flag also cancels the probe. A probe that fails does not keep
// a model from being opened, except with kOn: the verdict is then distributional, with the reason.
// Errors: ModelFile::load's and LlamaModel::create's; kCancelled; kUnsupported when kOn cannot be
// had, with the reason and what would be right; kInvalidArgument for a bad `widest` or a bad
// OUTRIDER_PROBE_BUDGET_MS.
Result<OpenedTarget> open_target(const ModelOptions& options, const LoadHooks& hooks,
                                 const TargetOptions& target);

// A draft model. Its numbers need not be exact, since the target's choice does not depend on them:
// the fastest settings, whatever options.exact says.
// Errors: ModelFile::load's and LlamaModel::create's.
Result<std::unique_ptr<LlamaModel>> open_draft(const ModelOptions& options, const LoadHooks& hooks);

}  // namespace outrider::llama
