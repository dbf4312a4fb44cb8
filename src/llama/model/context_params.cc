#include "llama/model/context_params.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <string>

#include "llama/base/backend.h"
#include "llama/files/gguf_checks.h"
#include "llama/files/gguf_states.h"
#include "llama/model/device_memory.h"

namespace outrider::llama {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kMaxLeaves = 64;
constexpr std::int32_t kMostHeadRows = 128;

// Beside n_ctx for each sequence: room for rejected tokens that are parked, so that full sequences
// do not need a rebuild every few steps. The same whatever the width, so that speculation does not
// change the cache. A single chain parks nothing.
std::int64_t spare_cells(std::int32_t n_sequences, bool attention_only) {
  if (n_sequences > 1) return 512;
  return attention_only ? 256 : 0;
}

// llama.cpp has 256 ids: the sequences', the junk id, and the extra leaves', shared out evenly.
// More than 64 leaves would be a tree without depth.
std::int32_t leaves_of(std::int32_t n_sequences, std::int32_t max_width) {
  const std::int32_t n_ids = static_cast<std::int32_t>(llama_max_parallel_sequences()) - 1;
  const std::int32_t leaves = 1 + (n_ids - n_sequences) / n_sequences;
  return std::max(1, std::min({leaves, kMaxLeaves, max_width - 1}));
}

Status check(const char* what, std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value >= min && value <= max) return Status();
  return invalid_argument(std::string(what) + " is " + std::to_string(value) +
                          ", but must be from " + std::to_string(min) + " to " +
                          std::to_string(max));
}

}  // namespace

Result<ContextSizes> plan_sizes(const ModelOptions& options, const ContextSettings& settings,
                                const SizedModel& model) {
  OUTRIDER_RETURN_IF_ERROR(check("the context size", options.n_ctx, 0, kMaxInt));
  OUTRIDER_RETURN_IF_ERROR(check("the number of sequences", options.n_sequences, 1, kMaxSequences));
  OUTRIDER_RETURN_IF_ERROR(check("the batch size", options.n_batch, 1, kMaxInt));
  // ggml aborts above its maximum.
  OUTRIDER_RETURN_IF_ERROR(
      check("the number of threads", options.n_threads, 0, GGML_MAX_N_THREADS));
  OUTRIDER_RETURN_IF_ERROR(check("the width", settings.max_width, 1, kMaxInt));
  OUTRIDER_RETURN_IF_ERROR(check("the cache size", settings.n_cells, 0, kMaxInt));

  ContextSizes sizes;
  sizes.n_ctx = options.n_ctx > 0 ? options.n_ctx : model.n_ctx_train;
  if (sizes.n_ctx < 1) {
    return invalid_argument("the model does not say how long its context is; give one (ctx)");
  }
  if (model.position_table && model.n_ctx_train > 0) {
    sizes.n_ctx = std::min(sizes.n_ctx, model.n_ctx_train);
  }
  sizes.n_sequences = options.n_sequences;
  // llama.cpp aborts when a batch is smaller than its number of sequences.
  const std::int32_t wanted = std::max(options.n_batch, options.n_sequences);
  const bool in_one_piece = settings.hidden.any() || settings.is_head();
  std::int32_t n_batch = in_one_piece ? std::min(wanted, kMostHiddenBatch) : wanted;
  // A head of its own makes a row of logits of every token, and one more where it has fewer tokens
  // than the target: 128 of them take 130 MB for a vocabulary of 128,000.
  const bool all_rows = settings.head_of != nullptr;
  if (all_rows) n_batch = std::min(n_batch, std::max(kMostHeadRows, 4 * options.n_sequences));
  const std::int64_t n_cells = settings.n_cells > 0
                                   ? std::int64_t{settings.n_cells}
                                   : std::int64_t{sizes.n_ctx} * options.n_sequences +
                                         spare_cells(options.n_sequences, model.attention_only);
  if (n_cells > kMaxInt - 256) {
    return resource_exhausted("a context of " + std::to_string(sizes.n_ctx) + " tokens for " +
                              std::to_string(options.n_sequences) +
                              " sequences has more cells than can be numbered; take a smaller one "
                              "(ctx)");
  }
  sizes.n_cells = static_cast<std::int32_t>(n_cells);
  sizes.n_batch = std::min(n_batch, sizes.n_cells);
  sizes.max_width = std::min(settings.max_width, sizes.n_batch);
  sizes.max_leaves = model.attention_only ? leaves_of(options.n_sequences, sizes.max_width) : 1;
  sizes.n_outputs = static_cast<std::int32_t>(
      std::min<std::int64_t>(sizes.n_batch, std::int64_t{options.n_sequences} * sizes.max_width));
  if (all_rows) sizes.n_outputs = sizes.n_batch;
  sizes.n_threads = threads_of(options.n_threads);
  return sizes;
}

Status check_rope_base(const std::string& architecture, const ContextSettings& settings) {
  const float base = settings.rope_freq_base;
  if (base == 0.0f || takes_rope_base(architecture, base)) return Status();
  return refused(StatusCode::kUnsupported, "rope_freq_base",
                 "is " + std::to_string(base) + ", but a model of the architecture " +
                     architecture + " takes 10000 alone; leave it out");
}

llama_context_params make_params(const ContextSizes& sizes, const ContextSettings& settings) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(sizes.n_cells);
  params.n_batch = static_cast<std::uint32_t>(sizes.n_batch);
  params.n_ubatch = static_cast<std::uint32_t>(std::min(sizes.n_batch, kMostHiddenBatch));
  params.n_seq_max = static_cast<std::uint32_t>(sizes.n_sequences);
  // Memory for as many rows as the batch has tokens would be 0.5 GB for 512 tokens of a vocabulary
  // of 262,144.
  params.n_outputs_max = static_cast<std::uint32_t>(sizes.n_outputs);
  params.n_threads = sizes.n_threads;
  params.n_threads_batch = sizes.n_threads;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  if (settings.flash_attention) {
    params.flash_attn_type =
        settings.flash_if_supported ? LLAMA_FLASH_ATTN_TYPE_AUTO : LLAMA_FLASH_ATTN_TYPE_ENABLED;
  }
  params.type_k = cache_type_of(settings.type_k);
  params.type_v = cache_type_of(settings.type_v);
  params.rope_freq_base = settings.rope_freq_base;
  params.rope_freq_scale = settings.rope_freq_scale;
  params.n_rs_seq = settings.is_head() ? 0 : static_cast<std::uint32_t>(kSnapshots);
  if (settings.prediction) params.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
  params.ctx_other = settings.head_of;
  params.kv_unified = true;
  params.swa_full = true;  // otherwise cells leave the window, and no rollback reaches behind it
  return params;
}

Result<ContextHandle> make_llama_context(const ModelFile& file, const llama_context_params& params,
                                         std::int32_t n_cells, bool* no_flash) {
  if (no_flash != nullptr) *no_flash = false;
  const LogSink listening = [&file, no_flash](LogLevel level, std::string_view line) {
    if (no_flash != nullptr && says_no_flash(line)) *no_flash = true;
    if (file.log()) file.log()(level, line);
  };
  const LogCapture log(listening);
  ContextHandle context;
  try {
    context.reset(llama_init_from_model(file.handle(), params));
  } catch (const std::exception& error) {
    return internal_error(std::string("llama.cpp cannot make a context: ") + error.what());
  }
  if (context) {
    OUTRIDER_RETURN_IF_ERROR(check_device_memory(devices_of(context.get())));
    return context;
  }
  const std::string because = log.because();
  return Status(
      is_want_of_memory(because) ? StatusCode::kResourceExhausted : StatusCode::kInternal,
      "llama.cpp cannot make a context of " + std::to_string(n_cells) + " cells" + because);
}

bool says_no_flash(std::string_view line) {
  return line.find("Flash Attention not supported") != std::string_view::npos;
}

ggml_type cache_type_of(const std::string& name) {
  for (std::int32_t i = 0; i < GGML_TYPE_COUNT; ++i) {
    const ggml_type type = static_cast<ggml_type>(i);
    const char* known = ggml_type_name(type);
    if (known != nullptr && name == known) return type;
  }
  return GGML_TYPE_COUNT;
}

}  // namespace outrider::llama
