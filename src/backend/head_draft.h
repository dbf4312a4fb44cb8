// A trained head in a file of its own, as a target's draft.
#pragma once

#include <memory>

#include "backend/loaded_target.h"
#include "base/status.h"
#include "llama/heads/head_file.h"
#include "serve/loader.h"

namespace outrider {

// One case for each kind of head. Errors: ModelLoader::load_draft's. REQUIRES: head.kind is not
// kNone.
Result<std::unique_ptr<Draft>> load_head(const llama::HeadFile& head, const ModelOptions& options,
                                         std::shared_ptr<const Target> target,
                                         const LoadHooks& hooks);

}  // namespace outrider
