#include "model/model_options.h"

#include <array>

#include "base/types.h"

namespace outrider {
namespace {

using Options = ModelOptions;

// The names are in the order of the enums.
constexpr std::array<std::string_view, 3> kAutoOnOff = {"auto", "on", "off"};
constexpr std::array<std::string_view, 2> kKernels = {"auto", "stock"};
constexpr std::array<std::string_view, 2> kAutoOff = {"auto", "off"};

static_assert(static_cast<int>(FlashAttention::kOn) == 1 && static_cast<int>(ExactMode::kOn) == 1 &&
              static_cast<int>(KernelChoice::kStock) == 1 &&
              static_cast<int>(HeadChoice::kOff) == 1);

constexpr Field<Options> kFields[] = {
    {.name = "ctx",
     .help = "tokens of context, prompt and answer together; 0: what the model was trained with",
     .place = &Options::n_ctx,
     .range = {.min = 0.0, .max = 16 << 20},
     .letter = 'c'},
    {.name = "threads",
     .help = "threads to compute with; 0: one for each physical core",
     .place = &Options::n_threads,
     .range = {.min = 0.0, .max = 512.0},
     .letter = 't'},
    {.name = "batch",
     .help = "tokens of one pass at most, while the prompt is read",
     .place = &Options::n_batch,
     .range = {.min = 1.0, .max = 65536.0},
     .letter = 'b'},
    {.name = "gpu_layers",
     .help = "layers on GPUs, where the build has any; -1: all",
     .place = &Options::n_gpu_layers,
     .range = {.min = -1.0, .max = 10000.0}},
    {.name = "cache_type_k",
     .help = "type of the cached keys",
     .place = &Options::cache_type_k,
     .unit = "NAME",
     .otherwise = "by the rule of exact"},
    {.name = "cache_type_v",
     .help = "type of the cached values; a quantised one needs flash attention",
     .place = &Options::cache_type_v,
     .unit = "NAME",
     .otherwise = "by the rule of exact"},
    {.name = "flash_attn",
     .help = "flash attention: auto (by the rule of exact; on GPUs where they have it for the "
             "model), on or off",
     .place = choice<&Options::flash_attention>(kAutoOnOff)},
    {.name = "exact",
     .help =
         "whether a pass over several tokens must give the very bits of single steps, so that "
         "the text is the same with speculation on and off. auto: settings that are exact where "
         "the backend can be, and the result says whether it is; on: slower settings and "
         "narrower widths if need be, or an error that says why not; off: the fastest settings",
     .place = choice<&Options::exact>(kAutoOnOff)},
    {.name = "kernels",
     .help = "what multiplies weights on the processor: auto (Outrider's own kernels, which read "
             "each weight once for all tokens of a step, where they can be had; the result says "
             "which) or stock (llama.cpp's)",
     .place = choice<&Options::kernels>(kKernels)},
    {.name = "workers",
     .help = "spread the target's layers over these workers, host:port each ('outrider worker' on "
             "other machines), in proportion to their free memory; the target then runs in a "
             "process of its own",
     .place = &Options::workers,
     .unit = "HOST:PORT,...",
     .most = 16},
    {.name = "worker_timeout_s",
     .help =
         "with workers: seconds without an answer of theirs after which the target is given up; "
         "its requests end with an error, and it can be loaded again. Longer than what reading "
         "a batch of a prompt takes there",
     .place = &Options::worker_timeout_s,
     .range = {.min = 0.0, .max = 86400.0},
     .off = {.where = Off::Where::kAt, .value = 0.0}},
    {.name = "isolate",
     .help = "run the target in a process of its own, so that its death is an error message: for "
             "files that are not trusted",
     .place = &Options::isolate},
    {.name = "head",
     .help = "a target's: the file of a trained head (EAGLE-3, DFlash) that will be its draft, "
             "since what the head reads is settled when the target is opened. Left out, it is the "
             "draft's that is loaded or was asked for",
     .place = &Options::head,
     .unit = "FILE"},
    {.name = "mtp",
     .help = "prediction layers (MTP) of the target's own file: auto (where it has them they are "
             "loaded, and guess as the drafter mtp) or off",
     .place = choice<&Options::mtp>(kAutoOff)},
    {.name = "widest",
     .help = "widest step that a target is opened for",
     .place = &Options::widest,
     .range = {.min = 1.0, .max = kMaxStepWidth}},
};

}  // namespace

std::span<const Field<ModelOptions>> model_fields() { return kFields; }

Status validate(const ModelOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(check(model_fields(), options));
  for (std::size_t i = 0; i < options.workers.size(); ++i) {
    const std::string& worker = options.workers[i];
    const std::size_t colon = worker.rfind(':');
    if (colon != std::string::npos && colon > 0 && colon + 1 < worker.size()) continue;
    return wrong_value("workers[" + std::to_string(i) + "]", "'" + worker + "'", "host:port");
  }
  return Status();
}

}  // namespace outrider
