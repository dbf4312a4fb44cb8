#include "backend/llama_loader.h"

#include <string>
#include <utility>

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
#include "llama/files/file_stamps.h"
#include "llama/files/gguf_family.h"
#include "llama/model/memory.h"
#include "llama/open_target.h"
#include "llama/vocabulary/vocab_match.h"
#include "llama/vocabulary/vocabulary.h"

namespace outrider {
namespace {

// A draft model's, in the order in which they need each other.
struct DraftModels {
  std::shared_ptr<const Target> target;  // owns the vocabulary that is drafted in
  std::unique_ptr<llama::LlamaModel> model;
  std::optional<VocabularyMap> map;  // between that and the model's own, where they differ
  std::optional<TranslatedModel> translated;
};

// The hooks of reading a file, with a call at the end of that.
LoadHooks then(LoadHooks hooks, const std::function<void()>& at_weights) {
  if (!at_weights) return hooks;
  hooks.progress = [inner = std::move(hooks.progress), &at_weights](double fraction) {
    if (fraction >= 1.0) at_weights();
    if (inner) inner(fraction);
  };
  return hooks;
}

LoadHooks with_log(LoadHooks hooks, const LogSink& log) {
  if (!hooks.log) hooks.log = log;
  return hooks;
}

// Whether the files that lie there are still those of `stamps`, which was asked before they were
// opened. Else what is known of them is another model's, which a note says.
bool are_same_files(const std::string& stamps, const ModelOptions& options,
                    std::vector<std::string>& notes) {
  if (llama::file_stamps(options.path, options.lora) == stamps) return true;
  notes.push_back("'" + options.path +
                  "' or a file of it was changed while it was loaded, so nothing is kept of it: "
                  "neither what it reads nor what is measured; load it again");
  return false;
}

Result<LoadedTarget::Parts> load_here(const ModelOptions& options, const LlamaLoaderOptions& how,
                                      const LoadHooks& hooks) {
  OUTRIDER_ASSIGN_OR_RETURN(
      llama::OpenedTarget opened,
      llama::open_target(options, hooks, target_options(how, options.widest)));
  ModelInfo info = opened.file->facts();
  return LoadedTarget::Parts{.model = std::move(opened.model),
                             .file = std::move(opened.file),
                             .exactness = std::move(opened.exactness),
                             .exact_mode = options.exact,
                             .info = std::move(info),
                             .notes = std::move(opened.notes),
                             .head = std::move(opened.prediction),
                             .no_head_reason = std::move(opened.no_prediction_reason)};
}

}  // namespace

Result<std::unique_ptr<Target>> LlamaLoader::load_target(const ModelOptions& options,
                                                         const LoadHooks& caller_hooks) {
  // Reading the file is one half of the way, the probe the other, or less where times are measured
  // behind both.
  const bool measures = options_.speculation && options_.measure_costs;
  const double half = measures ? 0.45 : 0.5;
  LlamaLoaderOptions how = options_;
  LoadHooks hooks = with_log(caller_hooks, options_.log);
  const bool is_one_bar = !how.probe_progress && caller_hooks.progress;
  if (is_one_bar) {
    hooks.progress = [&](double fraction) { caller_hooks.progress(half * fraction); };
    how.probe_progress = [&](double fraction) { caller_hooks.progress(half + half * fraction); };
  }
  hooks = then(hooks, options_.at_weights);
  const bool elsewhere = options.isolate || !options.workers.empty();
  const std::string stamps = llama::file_stamps(options.path, options.lora);
  OUTRIDER_ASSIGN_OR_RETURN(
      LoadedTarget::Parts target,
      elsewhere ? load_isolated_target(options, how, hooks) : load_here(options, how, hooks));
  std::string key = times_key(target.model->capabilities(), options);
  if (!elsewhere) target.state_identity = state_key(key, options);
  if (!are_same_files(stamps, options, target.notes)) {
    key.clear();
    target.state_identity.clear();
  }
  if (measures) {
    std::filesystem::path folder;  // empty: nothing is kept
    if (!key.empty()) folder = options_.cache_folder.value_or(llama::default_cache_folder());
    LoadHooks measuring = with_log(caller_hooks, options_.log);
    // A bar of its own for the probe comes behind that of reading, which is full by now.
    measuring.progress = nullptr;
    if (is_one_bar) {
      measuring.progress = [&](double fraction) { caller_hooks.progress(0.9 + 0.1 * fraction); };
    }
    OUTRIDER_ASSIGN_OR_RETURN(
        target.costs, target_costs(*target.model, key, folder, options_.refresh_costs, measuring));
    if (!folder.empty()) target.experiences = std::make_unique<ExperienceFiles>(folder, key);
  }
  return std::unique_ptr<Target>(std::make_unique<LoadedTarget>(std::move(target)));
}

Result<std::unique_ptr<Draft>> LlamaLoader::load_draft(const ModelOptions& options,
                                                       std::shared_ptr<const Target> target,
                                                       const LoadHooks& caller_hooks) {
  const LoadHooks hooks = with_log(caller_hooks, options_.log);
  if (options.isolate || !options.workers.empty()) {
    return invalid_argument("the draft model '" + options.path +
                            "' cannot be isolated or run on workers; only a target can");
  }
  const std::string stamps = llama::file_stamps(options.path, options.lora);
  OUTRIDER_ASSIGN_OR_RETURN(const llama::GgufHeader header, llama::read_gguf_header(options.path));
  OUTRIDER_ASSIGN_OR_RETURN(const llama::HeadFile head,
                            llama::read_head_file(options.path, header));
  if (head.kind != llama::HeadKind::kNone) {
    OUTRIDER_ASSIGN_OR_RETURN(
        std::unique_ptr<Draft> opened,
        load_head(head, options, std::move(target), then(hooks, options_.at_weights)));
    if (!are_same_files(stamps, options, opened->notes)) opened->identity.clear();
    return opened;
  }
  OUTRIDER_RETURN_IF_ERROR(llama::check_can_draft(options.path, header.architecture));
  const llama::LlamaVocabulary* vocabulary =
      dynamic_cast<const llama::LlamaVocabulary*>(&target->vocabulary());
  if (vocabulary == nullptr) {
    return unsupported("the draft model '" + options.path + "' cannot draft for '" +
                       target->info().path + "': that one was not opened by llama.cpp");
  }
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<llama::LlamaModel> model,
                            llama::open_draft(options, then(hooks, options_.at_weights)));
  if (model->capabilities().rollback != Rollback::kAny) {  // it would never draft
    return unsupported("'" + options.path +
                       "' cannot be a draft model: " + model->capabilities().rollback_reason);
  }
  const llama::LlamaVocabulary& own = model->file()->vocabulary();
  Draft parts{.info = model->file()->facts(), .notes = model->notes()};
  const std::shared_ptr<DraftModels> models = std::make_shared<DraftModels>();
  models->target = std::move(target);
  models->model = std::move(model);
  LanguageModel* drafts = models->model.get();
  if (!llama::match_vocabularies(*vocabulary, own).usable()) {
    Result<VocabularyMap> map = VocabularyMap::create(side_of(*vocabulary), side_of(own), {});
    if (!map.ok()) {
      return map.status().with_context("the draft model '" + options.path + "' cannot draft for '" +
                                       models->target->info().path + "'");
    }
    models->map = *std::move(map);
    drafts = &models->translated.emplace(*models->model, *models->map);
    parts.notes.push_back(
        "its vocabulary is not the target's, and only what both have is drafted: " +
        models->map->share().text());
  }
  parts.drafter =
      std::make_unique<DraftModelDrafter>(*drafts, vocabulary->size(), ends_of(*vocabulary));
  parts.identity = times_key(models->model->capabilities(), options);
  parts.state_identity = state_key(parts.identity, options);
  if (!are_same_files(stamps, options, parts.notes)) {
    parts.identity.clear();
    parts.state_identity.clear();
  }
  parts.models = models;
  return std::make_unique<Draft>(std::move(parts));
}

Result<std::uint64_t> LlamaLoader::estimate_memory(const ModelOptions& options) {
  if (!options.workers.empty()) return std::uint64_t{0};
  OUTRIDER_ASSIGN_OR_RETURN(const llama::GgufHeader header, llama::read_gguf_header(options.path));
  OUTRIDER_ASSIGN_OR_RETURN(const llama::HeadFile head,
                            llama::read_head_file(options.path, header));
  // Of one layer: its cache is next to nothing.
  if (head.kind != llama::HeadKind::kNone) {
    return llama::is_on_processor(options) ? head.file_bytes : std::uint64_t{0};
  }
  OUTRIDER_ASSIGN_OR_RETURN(const llama::RuleFacts facts, llama::read_rule_facts(options, header));
  if (!facts.on_cpu) return std::uint64_t{0};
  llama::LoadPlan plan = llama::settings_rule(facts, options);
  plan.context.max_width = options.widest;
  OUTRIDER_ASSIGN_OR_RETURN(const llama::MemoryEstimate bytes,
                            llama::estimate_memory_from_header(options, plan.context, header));
  return bytes.total() + (plan.extra_bufts ? facts.twice_bytes : 0);
}

}  // namespace outrider
