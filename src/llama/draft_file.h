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

// Loads options.path with the fastest settings, whatever options.exact says: what a draft computes
// need not be exact, since the target's choice does not depend on it. `is_head`: FileOptions::head.
// Errors: read_rule_facts()'s and ModelFile::load's.
Result<DraftFile> load_draft_file(const ModelOptions& options, bool is_head,
                                  const LoadHooks& hooks);

}  // namespace outrider::llama
