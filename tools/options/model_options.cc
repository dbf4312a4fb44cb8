#include "tools/options/model_options.h"

#include "llama/download/hub_name.h"
#include "llama/files/gguf_header.h"
#include "llama/files/model_file.h"
#include "llama/workers/rpc_worker.h"
#include "tools/options/field_options.h"
#include "tools/options/options.h"
#include "tools/options/usage.h"

namespace outrider::tools {
namespace {

constexpr const char* kHowToGetOne =
    "give the target with -m FILE, a GGUF file, or download one: -hf "
    "ggml-org/gemma-3-1b-it-GGUF:Q4_K_M";

CLI::Option* add_of(OptionGroup& group, const char* field, ModelOptions& options,
                    const OptionTexts& texts = {}) {
  return add_field(group, field_named(model_fields(), field), options, texts);
}

// llama.cpp says which types there are.
void check_cache_types(CLI::Option* option) {
  check_choices(option, parts_of(llama::cache_type_names()));
}

void add_context_options(OptionGroup& group, ModelOptions& options) {
  add_of(group, "ctx", options);
  add_of(group, "gpu_layers", options);
  check_cache_types(add_of(group, "cache_type_k", options,
                           {.help = "type of the cached keys: " + llama::cache_type_names()}));
  check_cache_types(add_of(group, "cache_type_v", options));
  add_of(group, "kernels", options);
  add_of(group, "flash_attn", options);
}

void add_draft_context_options(OptionGroup& group, ModelOptions& options) {
  const std::string prefix = "draft_";
  add_of(group, "ctx", options,
         {.prefix = prefix,
          .help = "tokens of the draft model's context; where the text is longer, nothing more is "
                  "drafted"})
      ->default_str("as --ctx");
  add_of(group, "gpu_layers", options,
         {.prefix = prefix, .help = "layers of the draft model on GPUs; -1: all"});
  for (const char* field : {"cache_type_k", "cache_type_v"}) {
    CLI::Option* option = add_of(group, field, options,
                                 {.prefix = prefix,
                                  .help = std::string("type of the draft model's ") +
                                          (field[11] == 'k' ? "keys" : "values")});
    option->default_str("f16, the fastest");
    check_cache_types(option);
  }
}

void add_hub_target(OptionGroup& group, ModelArguments& a) {
  group.add_text("--hf-repo", a.hf_repo, "USER/REPO[:QUANT]",
                 "-hf for short: the target, downloaded from the hub that HF_ENDPOINT names, once: "
                 "later it is in the cache (LLAMA_CACHE, HF_HOME). HF_TOKEN is for private models. "
                 "Without QUANT: Q4_K_M, else Q8_0, else the first file");
}

void add_hub_options(OptionGroup& group, ModelArguments& a) {
  add_hub_target(group, a);
  group.add_text("--hf-repo-draft", a.hf_repo_draft, "USER/REPO[:QUANT]",
                 "-hfd for short: the draft model, likewise");
}

void check_hub_name(const std::string& option, const std::optional<std::string>& name,
                    const std::string& file_option, const std::optional<std::string>& file) {
  if (!name) return;
  if (file) {
    throw UsageError(file_option + " and " + option + " are both given",
                     "a model comes from a file or from the hub; leave one of them out");
  }
  require_ok(llama::parse_hub_name(*name).status().with_context(option));
}

void add_target(OptionGroup& group, ModelArguments& a) {
  group.add_text(
      "-m,--model", a.model, "FILE",
      "the target: the model whose text you want, a GGUF file (this or -hf is required)");
}

// How both run, wherever the target does.
void add_settings(OptionGroup& group, ModelArguments& a) {
  add_of(group, "threads", a.target);
  add_of(group, "batch", a.target);
  add_context_options(group, a.target);
  add_of(group, "threads", a.draft, {.prefix = "draft_", .help = "threads of the draft model"})
      ->default_str("as --threads");
  add_draft_context_options(group, a.draft);
}

void add_last(OptionGroup& group, ModelArguments& a) {
  add_of(group, "isolate", a.target);
  add_of(group, "mtp", a.target);
}

}  // namespace

void add_model_options(CLI::App& app, ModelArguments& a) {
  OptionGroup group(app, "Model");
  add_target(group, a);
  group.add_text(
      "-d,--draft-model", a.draft_model, "FILE",
      "a smaller model, best of the same family, which guesses ahead, or a trained head "
      "of the target (EAGLE-3, DFlash): a GGUF file; '': none, where a variable or a config file "
      "names one");
  add_hub_options(group, a);
  add_settings(group, a);
  add_of(group, "workers", a.target);
  add_of(group, "worker_timeout_s", a.target);
  add_last(group, a);
}

void add_lone_target_options(CLI::App& app, ModelArguments& a) {
  OptionGroup group(app, "Model");
  add_target(group, a);
  add_hub_target(group, a);
  add_settings(group, a);
  add_last(group, a);
}

void add_inspected_models(CLI::App& app, ModelArguments& a) {
  OptionGroup group(app, "Model");
  group.add_text("TARGET,-m,--model", a.model, "TARGET.gguf", "the model to look at (required)");
  group.add_text("DRAFT,-d,--draft-model", a.draft_model, "DRAFT.gguf",
                 "a draft model for it (how much of the vocabulary is the same?), or a trained "
                 "head (does it fit?)");
  add_hub_options(group, a);
  add_context_options(group, a.target);
  add_draft_context_options(group, a.draft);
}

void add_exact_option(CLI::App& app, const std::string& heading, ModelArguments& a) {
  OptionGroup group(app, heading);
  add_of(group, "exact", a.target);
}

bool has_target(const ModelArguments& a) { return a.model || a.hf_repo; }
bool has_draft(const ModelArguments& a) { return a.draft_model || a.hf_repo_draft; }

void add_model_files(std::vector<std::string>& files, const std::string& path) {
  const Result<std::vector<std::string>> all = llama::files_of_model(path);
  if (all.ok()) {
    files.insert(files.end(), all->begin(), all->end());
  } else {  // loading it will say why
    files.push_back(path);
  }
}

std::vector<std::string> model_files(const ModelArguments& a) {
  std::vector<std::string> files;
  if (a.model) add_model_files(files, *a.model);
  if (a.draft_model) add_model_files(files, *a.draft_model);
  return files;
}

void require_model(ModelArguments& a) {
  if (a.draft_model == "") a.draft_model.reset();
  if (!has_target(a)) throw UsageError("--model is missing", kHowToGetOne);
  check_hub_name("--hf-repo", a.hf_repo, "--model", a.model);
  check_hub_name("--hf-repo-draft", a.hf_repo_draft, "--draft-model", a.draft_model);
  if (a.model == "") throw UsageError("--model is '', but must be a GGUF file");
  if (a.target.workers.empty()) return;
  require_ok(llama::parse_worker_addresses(a.target.workers).status().with_context("--workers"));
}

ModelOptions target_options(const ModelArguments& a) {
  ModelOptions options = a.target;
  options.path = *a.model;
  return options;
}

ModelOptions draft_options(const ModelArguments& a) {
  ModelOptions options = a.target;
  options.path = *a.draft_model;
  if (a.draft.n_ctx >= 0) options.n_ctx = a.draft.n_ctx;
  if (a.draft.n_threads >= 0) options.n_threads = a.draft.n_threads;
  options.n_gpu_layers = a.draft.n_gpu_layers;
  options.cache_type_k = a.draft.cache_type_k;
  options.cache_type_v = a.draft.cache_type_v;
  options.workers.clear();  // a draft model is small, and close by
  options.isolate = false;
  return options;
}

}  // namespace outrider::tools
