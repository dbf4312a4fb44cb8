#include "tools/catalog_options.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/machine_memory.h"
#include "tools/fetch_models.h"
#include "tools/options/config.h"
#include "tools/options/model_folder.h"
#include "tools/options/options.h"
#include "tools/options/usage.h"

namespace outrider::tools {
namespace {

CatalogEntry entry_of(std::string name, const ModelArguments& model) {
  CatalogEntry entry{.name = std::move(name), .target = target_options(model)};
  if (model.draft_model) entry.draft = draft_options(model);
  return entry;
}

void note_draft_beside(CatalogModels& models, ModelFamilies& families) {
  CatalogEntry& entry = models.entries.back();
  if (entry.draft || entry.target.isolate) return;  // of those its file is not read here
  const std::optional<std::string> draft = find_draft_beside(entry.target.path, families);
  if (!draft) return;
  entry.offered_draft = *draft;
  models.notes.push_back(draft_offer(entry.target.path, *draft));
}

// A model is opened when it is first asked for, which may be long after the file was mistyped.
void note_missing_files(const ModelTable& table, std::vector<std::string>& notes) {
  for (const std::optional<std::string>& file : {table.model.model, table.model.draft_model}) {
    std::error_code unknown;
    if (!file || std::filesystem::exists(*file, unknown)) continue;
    notes.push_back("[models." + table.name + "]: there is no file '" + *file +
                    "'; who asks for this model is told so");
  }
}

}  // namespace

void add_catalog_options(CLI::App& app, CatalogArguments& a) {
  OptionGroup group(app, "Model");
  group.add_text("--model-dir", a.model_dir, "DIR",
                 "serve every GGUF model in this folder and below, each by its file's name, opened "
                 "when it is first asked for");
  group.add_integer("--max-models", a.max_models, {0, 1024},
                    "models open at once, at most; 0: as many as memory holds");
  group.add_integer("--model-memory", a.model_memory, {0, 1 << 30},
                    "MiB of main memory for all models together; where that is short, those that "
                    "were used longest ago are closed. 0: what the machine has free");
}

void add_alias(CatalogEntry& entry, const std::string& alias) {
  const bool has =
      std::find(entry.aliases.begin(), entry.aliases.end(), alias) != entry.aliases.end();
  if (alias != entry.name && !has) entry.aliases.push_back(alias);
}

void add_aliases(CatalogEntry& entry, const std::string& names) {
  for (const std::string& alias : parts_of(names)) {
    if (!alias.empty()) add_alias(entry, alias);  // as llama-server takes "a,"
  }
}

void read_config_models(const CLI::App& app, const ModelArguments& defaults, CatalogArguments& a) {
  const CLI::Option* const config =
      app.get_parent() == nullptr ? nullptr : app.get_parent()->get_config_ptr();
  if (config == nullptr || config->count() == 0) return;
  a.tables = read_model_tables(config->as<std::string>(), config_text(*app.get_parent()), defaults);
}

std::vector<std::string> options_of_tables(const CatalogArguments& a) {
  std::vector<std::string> options;
  for (const ModelTable& table : a.tables) {
    if (has_draft(table.model)) options.emplace_back("draft-model");
    if (!table.model.target.workers.empty()) options.emplace_back("workers");
  }
  return options;
}

Result<CatalogModels> catalog_models(const ModelArguments& own,
                                     const std::vector<DrafterFile>& files, CatalogArguments& a,
                                     Terminal& terminal) {
  CatalogModels models;
  ModelFamilies families([&terminal] { return terminal.signals.raised(); }, a.read_family);
  std::set<std::string> names;
  std::vector<std::optional<std::string>> repos;  // [entries] where they come from
  if (own.model) {
    models.entries.push_back(entry_of(model_name(*own.model), own));
    models.entries.back().files = files;
    repos.push_back(own.hf_repo);
    note_draft_beside(models, families);
  }
  for (ModelTable& table : a.tables) {
    OUTRIDER_RETURN_IF_ERROR(
        download_models(table.model, terminal).with_context("[models." + table.name + "]"));
    note_missing_files(table, models.notes);
    models.entries.push_back(entry_of(table.name, table.model));
    models.entries.back().files = table.files;
    for (const std::string& alias : table.aliases) add_alias(models.entries.back(), alias);
    repos.push_back(table.model.hf_repo);
    note_draft_beside(models, families);
  }
  for (const CatalogEntry& entry : models.entries) {
    names.insert(entry.name);
    names.insert(entry.aliases.begin(), entry.aliases.end());
  }
  // The place in the hub is a name of the first model that comes from there, unless it is one of
  // another.
  for (std::size_t i = 0; i < repos.size(); ++i) {
    if (repos[i] && names.insert(*repos[i]).second) add_alias(models.entries[i], *repos[i]);
  }
  if (a.model_dir) {
    Result<ModelFolder> folder = read_model_folder(*a.model_dir, families);
    if (!folder.ok()) return folder.status().with_context("--model-dir");
    for (std::string& why : folder->left_out) models.notes.push_back(std::move(why));
    for (const FolderModel& found : folder->models) {
      if (!names.insert(found.name).second) {
        models.notes.push_back("'" + found.path + "' is left out: there is another model '" +
                               found.name + "'");
        continue;
      }
      ModelArguments model = own;
      model.model = found.path;
      model.draft_model = model.hf_repo = model.hf_repo_draft = std::nullopt;
      models.entries.push_back(entry_of(found.name, model));
      note_draft_beside(models, families);
    }
  }
  if (!models.entries.empty()) return models;
  return invalid_argument(
      a.model_dir ? "there is no model in '" + *a.model_dir +
                        "'; give another --model-dir, or -m "
                        "FILE"
                  : "there is no model to serve; give -m FILE, -hf USER/REPO, --model-dir DIR, or "
                    "[models.NAME] in a config file");
}

CatalogOptions catalog_options(const CatalogArguments& a) {
  CatalogOptions options;
  options.max_models = a.max_models;
  options.memory_bytes = static_cast<std::uint64_t>(a.model_memory) << 20;
  options.free_memory = [] { return free_memory(); };
  return options;
}

}  // namespace outrider::tools
