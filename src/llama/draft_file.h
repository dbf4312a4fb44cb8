// A draft's file and settings: of a draft model, and of a trained head in a file of its own.
#pragma once

#include <memory>

#include "base/status.h"
#include "llama/files/model_file.h"
#include "llama/model/llama_model.h"
#include "model/model_options.h"

namespace outrider::llama {

struct DraftFile {
  std::shared_ptr<ModelFile> file;
  ModelOptions options;     // with which it is to run
  ContextSettings context;  // likewise, as wide as drafts are
};

// How a draft's file is loaded. `target`: of a head its target's, else null.
FileOptions draft_file_options(const ModelOptions& options, bool extra_bufts,
                               const ModelFacts* target);

// Loads options.path with the fastest settings, whatever options.exact says: what a draft computes
// need not be exact, since the target's choice does not depend on it. `target`: as above.
// Errors: read_rule_facts()'s and ModelFile::load's.
Result<DraftFile> load_draft_file(const ModelOptions& options, const ModelFacts* target,
                                  const LoadHooks& hooks);

}  // namespace outrider::llama
