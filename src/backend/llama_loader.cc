#include "backend/llama_loader.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/experience_files.h"
#include "backend/head_draft.h"
#include "backend/loaded_target.h"
#include "backend/target_costs.h"
#include "backend/vocabulary_side.h"
#include "draft/model/draft_model.h"
#include "draft/translated/translated_model.h"
#include "draft/translated/vocabulary_map.h"
#include "llama/exactness/exactness_cache.h"
#include "llama/exactness/exactness_rule.h"
#include "llama/model/memory.h"
#include "llama/open_target.h"
#include "llama/vocabulary/vocab_match.h"
#include "llama/vocabulary/vocabulary.h"

namespace outrider {
namespace {

class LoadedDraft : public Draft {
 public:
  // `target` owns the vocabulary. `map`: between it and the model's own, where they differ.
  LoadedDraft(std::shared_ptr<const Target> target, const llama::LlamaVocabulary& vocabulary,
              std::unique_ptr<llama::LlamaModel> model, std::optional<VocabularyMap> map,
              std::string identity)
      : target_(std::move(target)),
        identity_(std::move(identity)),
        model_(std::move(model)),
        map_(std::move(map)),
        translated_(map_ ? std::make_unique<TranslatedModel>(*model_, *map_) : nullptr),
        info_(info_of(model_->file()->facts())),
        notes_(model_->notes()),
        drafter_(translated_ ? static_cast<LanguageModel&>(*translated_) : *model_,
                 vocabulary.size(),
                 [&vocabulary](Token token) { return vocabulary.is_end_of_generation(token); }) {
    if (map_) {
      notes_.push_back("its vocabulary is not the target's, and only what both have is drafted: " +
                       map_->share().text());
    }
  }

  Drafter& drafter() override { return drafter_; }
  std::string identity() const override { return identity_; }
  const ModelInfo& info() const override { return info_; }
  const std::vector<std::string>& notes() const override { return notes_; }

 private:
  std::shared_ptr<const Target> target_;
  std::string identity_;
  std::unique_ptr<llama::LlamaModel> model_;
  std::optional<VocabularyMap> map_;
  std::unique_ptr<TranslatedModel> translated_;  // null: the vocabularies are the same
  ModelInfo info_;
  std::vector<std::string> notes_;
  DraftModelDrafter drafter_;
};

// The hooks of reading a file, with a call at the end of that.
LoadHooks then(const LoadHooks& hooks, const std::function<void()>& at_weights) {
  if (!at_weights) return hooks;
  LoadHooks with_call = hooks;
  with_call.progress = [inner = hooks.progress, &at_weights](double fraction) {
    if (fraction >= 1.0) at_weights();
    if (inner) inner(fraction);
  };
  return with_call;
}

LoadHooks with_log(LoadHooks hooks, const LogSink& log) {
  if (!hooks.log) hooks.log = log;
  return hooks;
}

Result<LoadedTarget::Parts> load_here(const ModelOptions& options, const LlamaLoaderOptions& how,
                                      const LoadHooks& hooks) {
  Result<llama::OpenedTarget> opened =
      llama::open_target(options, hooks, target_options(how, options.widest));
  if (!opened.ok()) return opened.status();
  ModelInfo info = info_of(opened->file->facts());
  return LoadedTarget::Parts{.model = std::move(opened->model),
                             .file = std::move(opened->file),
                             .exactness = std::move(opened->exactness),
                             .info = std::move(info),
                             .notes = std::move(opened->notes),
                             .head = std::move(opened->prediction),
                             .no_head_reason = std::move(opened->no_prediction_reason)};
}

}  // namespace

Result<std::unique_ptr<Target>> LlamaLoader::load_target(const ModelOptions& options,
                                                         const LoadHooks& caller_hooks) {
  // Reading the file is the first half of the way, the probe the second.
  LlamaLoaderOptions how = options_;
  LoadHooks hooks = with_log(caller_hooks, options_.log);
  if (!how.probe_progress && caller_hooks.progress) {
    hooks.progress = [&](double fraction) { caller_hooks.progress(0.5 * fraction); };
    how.probe_progress = [&](double fraction) { caller_hooks.progress(0.5 + 0.5 * fraction); };
  }
  hooks = then(hooks, options_.at_weights);
  const bool elsewhere = options.isolate || !options.workers.empty();
  Result<LoadedTarget::Parts> target =
      elsewhere ? load_isolated_target(options, how, hooks) : load_here(options, how, hooks);
  if (!target.ok()) return target.status();
  const Result<std::string> key = times_key(*target->model, options);
  if (key.ok() && !elsewhere) target->state_identity = *key;
  if (options_.speculation && options_.measure_costs) {
    std::filesystem::path folder;  // empty: nothing is kept
    if (key.ok()) folder = options_.cache_folder.value_or(llama::default_cache_folder());
    const std::string name = key.ok() ? *key : "";
    Result<std::vector<CostPoint>> costs =
        target_costs(*target->model, name, folder, options_.refresh_costs, hooks);
    if (!costs.ok()) return costs.status();
    target->costs = std::move(*costs);
    if (!folder.empty()) target->experiences = std::make_unique<ExperienceFiles>(folder, name);
  }
  return std::unique_ptr<Target>(std::make_unique<LoadedTarget>(*std::move(target)));
}

Result<std::unique_ptr<Draft>> LlamaLoader::load_draft(const ModelOptions& options,
                                                       std::shared_ptr<const Target> target,
                                                       const LoadHooks& caller_hooks) {
  const LoadHooks hooks = with_log(caller_hooks, options_.log);
  if (options.isolate || !options.workers.empty()) {
    return invalid_argument("the draft model '" + options.path +
                            "' cannot be isolated or run on workers; only a target can");
  }
  const Result<llama::HeadFile> head = llama::read_head_file(options.path);
  if (!head.ok()) return head.status();
  if (head->kind != llama::HeadKind::kNone) {
    return load_head(*head, options, std::move(target), then(hooks, options_.at_weights));
  }
  const llama::LlamaVocabulary* vocabulary =
      dynamic_cast<const llama::LlamaVocabulary*>(&target->vocabulary());
  if (vocabulary == nullptr) {
    return unsupported("the draft model '" + options.path + "' cannot draft for '" +
                       target->info().path + "': that one was not opened by llama.cpp");
  }
  Result<std::unique_ptr<llama::LlamaModel>> model =
      llama::open_draft(options, then(hooks, options_.at_weights));
  if (!model.ok()) return model.status();
  const llama::LlamaVocabulary& own = (*model)->file()->vocabulary();
  const llama::VocabularyMatch match = llama::match_vocabularies(*vocabulary, own);
  std::optional<VocabularyMap> map;
  if (!match.usable()) {
    Result<VocabularyMap> shared = VocabularyMap::create(side_of(*vocabulary), side_of(own), {});
    if (!shared.ok()) {
      return shared.status().with_context("the draft model '" + options.path +
                                          "' cannot draft for '" + target->info().path + "'");
    }
    map = std::move(*shared);
  }
  const Result<std::string> identity = times_key(**model, options);
  return std::unique_ptr<Draft>(std::make_unique<LoadedDraft>(std::move(target), *vocabulary,
                                                              std::move(*model), std::move(map),
                                                              identity.ok() ? *identity : ""));
}

Result<std::uint64_t> LlamaLoader::estimate_memory(const ModelOptions& options) {
  if (!options.workers.empty()) return std::uint64_t{0};
  const Result<llama::HeadFile> head = llama::read_head_file(options.path);
  if (!head.ok()) return head.status();
  // Of one layer: its cache is next to nothing.
  if (head->kind != llama::HeadKind::kNone) return head->file_bytes;
  const Result<llama::RuleFacts> facts = llama::read_rule_facts(options);
  if (!facts.ok()) return facts.status();
  if (!facts->on_cpu) return std::uint64_t{0};
  llama::ContextSettings context = llama::settings_rule(*facts, options).context;
  context.max_width = options.widest;
  const Result<llama::MemoryEstimate> bytes = llama::estimate_memory_from_header(options, context);
  if (!bytes.ok()) return bytes.status();
  return bytes->total() + facts->twice_bytes;
}

}  // namespace outrider
