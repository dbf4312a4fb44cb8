// How large a context is and what it is made of: one place for the real one and for the estimate of
// its memory. For this layer's own files only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "llama.h"
#include "llama/base/handles.h"
#include "llama/model/llama_model.h"
#include "model/model_options.h"

namespace outrider::llama {

struct ContextSizes {
  std::int32_t n_ctx = 0;  // tokens of one sequence
  std::int32_t n_sequences = 0;
  std::int32_t n_cells = 0;     // of the cache; llama.cpp rounds it up to a multiple of 256
  std::int32_t n_batch = 0;     // tokens of one evaluation
  std::int32_t max_width = 0;   // nodes of one sequence in it
  std::int32_t max_leaves = 1;  // of its tree
  std::int32_t n_outputs = 0;   // rows of logits in it
  std::int32_t n_threads = 0;
};

// What of a model its context's sizes depend on.
struct SizedModel {
  std::int32_t n_ctx_train = 0;  // what it was trained with; 0: unknown
  bool position_table = false;   // GgufHeader's: a longer context is cut to n_ctx_train
  bool attention_only = true;    // false: recurrent layers, which take chains only and park nothing
};

// From what is wished for and what the model takes.
// Errors: kInvalidArgument for a value out of range; kResourceExhausted for more cells than can be
// numbered.
Result<ContextSizes> plan_sizes(const ModelOptions& options, const ContextSettings& settings,
                                const SizedModel& model);

// Errors: kUnsupported for a base of rotary positions that the architecture's graph would abort on.
Status check_rope_base(const std::string& architecture, const ContextSettings& settings);

// REQUIRES: the cache types of `settings` are known ones.
llama_context_params make_params(const ContextSizes& sizes, const ContextSettings& settings);

// llama.cpp's context of the file. `n_cells` is for the message. `no_flash` (may be null) gets
// whether llama.cpp does without flash attention, where `params` leave that to it. Errors:
// kResourceExhausted when it does not fit into memory, or leaves too little of a device's
// (device_memory.h); kInternal; both with llama.cpp's reason.
Result<ContextHandle> make_llama_context(const ModelFile& file, const llama_context_params& params,
                                         std::int32_t n_cells, bool* no_flash = nullptr);

// Whether a line of llama.cpp's log says that it does without flash attention: nothing else does.
bool says_no_flash(std::string_view line);

// REQUIRES: is_cache_type(name).
ggml_type cache_type_of(const std::string& name);

}  // namespace outrider::llama
