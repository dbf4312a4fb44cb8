#include "tools/model_options.h"

#include <vector>

#include "llama/files/model_file.h"
#include "llama/workers/rpc_worker.h"
#include "tools/options.h"
#include "tools/usage.h"

namespace outrider::tools {
namespace {

constexpr std::int64_t kMaxContext = 16 << 20;
constexpr std::int64_t kMaxThreads = 512;
constexpr std::int64_t kMaxBatch = 65536;
constexpr std::int64_t kMaxLayers = 10000;

// "f16, q8_0, ..." -> its parts
std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char c : list) {
    if (c == ',') {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<std::string> cache_types() { return parts_of(llama::cache_type_names()); }

void add_place_options(OptionGroup& group, ModelArguments& a) {
  group.add_text("--workers", a.workers, "HOST:PORT,...",
                 "spread the target's layers over these workers ('outrider worker' on other "
                 "machines), in proportion to their free memory; the target then runs in a process "
                 "of its own");
  group.add_switch("--isolate", a.isolate,
                   "run the target in a process of its own, so that its death is an error message: "
                   "for files that are not trusted");
}

FlashAttention flash_attention(const std::string& name) {
  if (name == "on") return FlashAttention::kOn;
  return name == "off" ? FlashAttention::kOff : FlashAttention::kAuto;
}

ExactMode exact_mode(const std::string& name) {
  if (name == "on") return ExactMode::kOn;
  return name == "off" ? ExactMode::kOff : ExactMode::kAuto;
}

constexpr const char* kContextHelp =
    "tokens of context, prompt and answer together; 0: what the model was trained with";
constexpr const char* kGpuLayersHelp = "layers on GPUs, where the build has any; -1: all";

void add_context_options(OptionGroup& group, ModelArguments& a) {
  group.add_integer("-c,--ctx", a.ctx, 0, kMaxContext, kContextHelp);
  group.add_integer("--gpu-layers", a.gpu_layers, -1, kMaxLayers, kGpuLayersHelp);
  group.add_choice(
      "--cache-type-k", a.cache_type_k, cache_types(),
      "type of the cached keys: " + llama::cache_type_names() + " [default: by --exact's rule]");
  group.add_choice("--cache-type-v", a.cache_type_v, cache_types(),
                   "type of the cached values, as --cache-type-k; a quantised one needs flash "
                   "attention [default: by --exact's rule]");
  group.add_choice("--kernels", a.kernels, {"auto", "stock"},
                   "what multiplies weights on the processor: auto (Outrider's own kernels, which "
                   "read each weight once for all tokens of a step, where they can be had; the "
                   "result says which) or stock (llama.cpp's)");
  group.add_choice("--flash-attn", a.flash_attn, {"auto", "on", "off"},
                   "flash attention: auto (by --exact's rule), on or off");
}

void add_draft_context_options(OptionGroup& group, ModelArguments& a) {
  group.add_integer(
      "--draft-ctx", a.draft_ctx, 0, kMaxContext, "as --ctx",
      "tokens of the draft model's context; where the text is longer, nothing more is "
      "drafted");
  group.add_integer("--draft-gpu-layers", a.draft_gpu_layers, -1, kMaxLayers,
                    "layers of the draft model on GPUs; -1: all");
  group.add_choice("--draft-cache-type-k", a.draft_cache_type_k, cache_types(),
                   "type of the draft model's keys [default: f16, the fastest]");
  group.add_choice("--draft-cache-type-v", a.draft_cache_type_v, cache_types(),
                   "type of the draft model's values [default: f16, the fastest]");
}

}  // namespace

void add_model_options(CLI::App& app, ModelArguments& a) {
  OptionGroup group(app, "Model");
  group.add_text("-m,--model", a.model, "FILE",
                 "the target: the model whose text you want, a GGUF file (required)");
  group.add_text("-d,--draft-model", a.draft_model, "FILE",
                 "a smaller model, best of the same family, which guesses ahead: a GGUF file");
  group.add_integer("-t,--threads", a.threads, 0, kMaxThreads,
                    "threads to compute with; 0: one for each physical core");
  group.add_integer("-b,--batch", a.batch, 1, kMaxBatch,
                    "tokens of one pass at most, while the prompt is read");
  add_context_options(group, a);
  group.add_integer("--draft-threads", a.draft_threads, 0, kMaxThreads, "as --threads",
                    "threads of the draft model");
  add_draft_context_options(group, a);
  add_place_options(group, a);
}

void add_inspected_models(CLI::App& app, ModelArguments& a) {
  OptionGroup group(app, "Model");
  group.add_text("TARGET,-m,--model", a.model, "TARGET.gguf", "the model to look at (required)");
  group.add_text("DRAFT,-d,--draft-model", a.draft_model, "DRAFT.gguf",
                 "a draft model for it: how much of the vocabulary is the same?");
  add_context_options(group, a);
  add_draft_context_options(group, a);
}

void add_exact_option(CLI::App& app, const std::string& heading, ModelArguments& a) {
  OptionGroup(app, heading)
      .add_choice(
          "--exact", a.exact, {"auto", "on", "off"},
          "whether a pass over several tokens must give the very bits of single steps, so "
          "that the text is the same with speculation on and off. auto: settings that are "
          "exact where the backend can be, and the result says whether it is; on: slower "
          "settings and narrower widths if need be, or an error that says why not; off: the "
          "fastest settings");
}

void require_model(const ModelArguments& a) {
  if (!a.model) throw UsageError("--model is missing", "give the target with -m FILE, a GGUF file");
  if (a.model->empty()) throw UsageError("--model is '', but must be a GGUF file");
  if (a.draft_model && a.draft_model->empty()) {
    throw UsageError("--draft-model is '', but must be a GGUF file");
  }
  if (!a.workers) return;
  const Status workers = llama::parse_worker_addresses(parts_of(*a.workers)).status();
  if (!workers.ok()) throw UsageError("--workers: " + workers.message());
}

ModelOptions target_options(const ModelArguments& a) {
  ModelOptions options;
  options.path = *a.model;
  options.n_ctx = a.ctx;
  options.n_batch = a.batch;
  options.n_threads = a.threads;
  options.n_gpu_layers = a.gpu_layers;
  options.cache_type_k = a.cache_type_k;
  options.cache_type_v = a.cache_type_v;
  options.flash_attention = flash_attention(a.flash_attn);
  options.exact = exact_mode(a.exact);
  if (a.kernels == "stock") options.kernels = KernelChoice::kStock;
  if (a.workers) options.workers = parts_of(*a.workers);
  options.isolate = a.isolate;
  return options;
}

ModelOptions draft_options(const ModelArguments& a) {
  ModelOptions options = target_options(a);
  options.path = *a.draft_model;
  options.n_ctx = a.draft_ctx.value_or(a.ctx);
  options.n_threads = a.draft_threads.value_or(a.threads);
  options.n_gpu_layers = a.draft_gpu_layers;
  options.cache_type_k = a.draft_cache_type_k;
  options.cache_type_v = a.draft_cache_type_v;
  options.workers.clear();  // a draft model is small, and close by
  options.isolate = false;
  return options;
}

}  // namespace outrider::tools
