// What a target's passes take, measured once and kept in a file: "<folder>/costs/<hash>.txt", by
// model, machine, build and settings. A file that cannot be read or is damaged is as if it were not
// there. What is known is looked at again, with a few passes (costs_hold(), model/measure_costs.h):
// times that were taken while another program had the processor are measured anew.
#pragma once

#include <filesystem>
#include <string>

#include "base/cost_point.h"
#include "base/status.h"
#include "model/language_model.h"
#include "model/model_options.h"

namespace outrider {

// All that the times of a model's passes and what it says depend on, in a line: files, adapters,
// machine, build and settings. `capabilities`: of what was opened with `options`. Empty: the files
// cannot be read.
std::string times_key(const Capabilities& capabilities, const ModelOptions& options);

// All that a saved state of the model depends on (Target::state_identity): `key`, which is its
// times_key(), with size and time of change of each of its files, adapters as well. A fingerprint
// looks at samples, and the text of a state must be that of the very weights; a copy of the files
// has other times and reads its prompts again. Empty: `key` is, or a file cannot be looked at.
std::string state_key(const std::string& key, const ModelOptions& options);

// Sequence 0 of `model` is empty. `key`: times_key(). `folder`: where the file lies; empty: nothing
// is kept. `refresh`: what is known is not used, and replaced. Measuring anew tells hooks.progress.
// Empty where measuring failed, which the log tells: it can be learned while running. Errors:
// kCancelled.
Result<PassCosts> target_costs(LanguageModel& model, const std::string& key,
                               const std::filesystem::path& folder, bool refresh,
                               const LoadHooks& hooks);

}  // namespace outrider
