// A target in a process of its own (ModelOptions::isolate, or workers).
#pragma once

#include <memory>

#include "backend/llama_loader.h"
#include "backend/loaded_target.h"
#include "base/status.h"
#include "model/model_options.h"

namespace outrider {

// The model runs in a child; the vocabulary, which the child has survived reading, is read again in
// this process. Workers are asked before the child is started.
// Errors: ModelLoader::load_target's; kNotFound for a worker that is not there and when the command
// outrider cannot be found (remote/host_program.h); kInternal when the child dies.
Result<std::unique_ptr<LoadedTarget>> load_isolated_target(const ModelOptions& options,
                                                           const LlamaLoaderOptions& how,
                                                           const LoadHooks& hooks);

}  // namespace outrider
