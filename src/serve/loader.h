// What serving needs of whoever opens models. Implementations: backend/llama_loader.h (llama.cpp,
// in this process or in a child), testing/fake_loader.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/cost_point.h"
#include "base/status.h"
#include "draft/base/drafter.h"
#include "model/exactness.h"
#include "model/language_model.h"
#include "model/model_info.h"
#include "model/model_options.h"
#include "model/sampler.h"
#include "model/vocabulary.h"

namespace outrider {

class ExperienceStore;

// A target that is open: its model, and what it takes to talk to it. The model is the decode
// thread's; everything else is immutable and for any thread.
class Target {
 public:
  virtual ~Target() = default;

  virtual LanguageModel& model() = 0;  // one thread at a time
  virtual const Capabilities& capabilities() const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
  virtual const Exactness& exactness() const = 0;
  // What it was opened with: kOn refuses rules that keep only the distribution.
  virtual ExactMode exact_mode() const = 0;
  virtual const ModelInfo& info() const = 0;

  // What its passes took when it was opened; no points: not measured.
  virtual PassCosts costs() const { return {}; }

  // What was learned of drafters for it is kept there; null: nowhere (serve/experiences.h).
  virtual ExperienceStore* experiences() { return nullptr; }

  // A drafter that came with the target, trained for its hidden states (the prediction layers of
  // its file); null: there is none. The decode thread's.
  virtual Drafter* head() { return nullptr; }
  // Why there is none.
  virtual std::string no_head_reason() const { return "the target has no prediction layers (MTP)"; }
  // What that takes, beyond the target's own.
  virtual std::uint64_t head_bytes() const { return 0; }

  // All that what the model holds depends on, a line: its files, build and settings. Empty: it
  // cannot be kept in a file (serve/prompt_cache.h).
  virtual std::string state_identity() const { return ""; }

  // For the user: what his choices cost, what was replaced.
  virtual const std::vector<std::string>& notes() const = 0;

  // A chain by the options; may take seconds for a large grammar. Lives no longer than this.
  // Errors: kInvalidArgument with the field (Status::field()); kResourceExhausted.
  virtual Result<std::unique_ptr<Sampler>> make_sampler(const SamplingOptions& options) const = 0;
};

// A draft model or a trained head that is open, as a drafter for one target.
struct Draft {
  std::shared_ptr<void> models;      // what the drafter uses; ends behind it
  std::unique_ptr<Drafter> drafter;  // the decode thread's
  // Which model it is, with all that its speed depends on, a line; empty: nobody can tell.
  std::string identity = {};
  // All that what its model holds depends on, as Target::state_identity; empty: it cannot be kept.
  std::string state_identity = {};
  ModelInfo info;
  std::vector<std::string> notes = {};
};

// Any thread; several calls may run at once. A call may take minutes; `hooks` tells how far it is
// and ends it.
class ModelLoader {
 public:
  virtual ~ModelLoader() = default;

  // Errors, each naming the file: kNotFound, kInvalidArgument, kUnsupported, kResourceExhausted,
  // kCancelled, kInternal.
  virtual Result<std::unique_ptr<Target>> load_target(const ModelOptions& options,
                                                      const LoadHooks& hooks) = 0;

  // `target` is kept as long as the draft lives: its vocabulary says which tokens may be drafted.
  // Errors: as load_target's; kUnsupported for a vocabulary that does not fit the target's.
  virtual Result<std::unique_ptr<Draft>> load_draft(const ModelOptions& options,
                                                    std::shared_ptr<const Target> target,
                                                    const LoadHooks& hooks) = 0;

  // Bytes of main memory that a target or a draft will take, about, with all sequences of
  // `options`; 0: not known. Reads a file's header at most, so it is quick. Errors: as a load's,
  // where the header shows that it would fail.
  virtual Result<std::uint64_t> estimate_memory(const ModelOptions& /*options*/) {
    return std::uint64_t{0};
  }
};

}  // namespace outrider
