// Trained heads in files of their own (EAGLE-3, DFlash): what their target hands out for them, and
// opening them beside it.
//
// What a target hands out is settled before its context is made, so that the probe sees it. So the
// head's header is read first (ModelOptions::head), and a head whose target was opened without it
// is refused. Tested by tests/eagle3_output_test.cc and tests/dflash_output_test.cc.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "llama/heads/head_file.h"
#include "llama/model/llama_block_model.h"
#include "llama/model/llama_model.h"
#include "model/model_options.h"

namespace outrider::llama {

// What the target of `options` hands out for the head in options.head. None where that is no head,
// does not fit, or is for a target in another process: opening it will say why.
HiddenStates states_for_head(const ModelOptions& options);

// Whether the head fits `target` (check_head), which hands out what it reads. Errors: check_head's;
// kUnsupported, with what to do, where the target does not.
Status check_beside(const HeadFile& head, const LlamaModel& target);

// The model of an EAGLE-3 head, in options.path. Its cache is f16 whatever `options` say, as a
// quantised one costs much of what a head gets right. `target` must outlive it. Errors:
// check_beside()'s, ModelFile::load's and LlamaModel::create's.
Result<std::unique_ptr<LlamaModel>> open_eagle3(const HeadFile& head, const ModelOptions& options,
                                                const LlamaModel& target, const LoadHooks& hooks);

// The model of a DFlash head, likewise. Errors: check_beside()'s, ModelFile::load's and
// LlamaBlockModel::create's.
Result<std::unique_ptr<LlamaBlockModel>> open_dflash(const HeadFile& head,
                                                     const ModelOptions& options,
                                                     const LlamaModel& target,
                                                     const LoadHooks& hooks);

}  // namespace outrider::llama
