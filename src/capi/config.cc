#include "capi/config.h"

#include "api/model_params.h"
#include "api/read_fields.h"
#include "base/list_of.h"
#include "draft/drafter_table.h"

namespace outrider::capi {
namespace {

using json::Json;

void read_model(api::JsonFields& fields, const std::string& name, ModelRole role,
                std::optional<ModelOptions>& options) {
  const Json* object = fields.any(name);
  if (object == nullptr) return;
  Result<api::LoadRequest> request = api::read_load_request(*object, role, name + ".");
  if (!request.ok()) return fields.take(request.status());
  options = std::move(request->options);
}

// "the n-gram files": of all others that take files.
std::string files_of_others(std::string_view drafter) {
  std::vector<std::string> names;
  for (const std::string_view other : kFileDrafters) {
    if (other != drafter) names.emplace_back(find_lookup_kind(other)->files->many);
  }
  return "the " + list_of(names);
}

void read_files(api::JsonFields& fields, const FileOption& option, std::string_view drafter,
                Config& config) {
  const std::string name(option.name);
  std::vector<std::string> paths;
  fields.texts(name, paths);
  for (std::string& path : paths) {
    if (!api::is_path(path)) {
      return fields.refuse(name, Json(path), "a file, or an array of files");
    }
    config.files.push_back({.drafter = std::string(drafter), .path = std::move(path)});
  }
  if (config.files.size() > kMaxDrafterFiles) {
    fields.fail(name, name + " and " + files_of_others(drafter) + " are " +
                          std::to_string(config.files.size()) + " together, at most " +
                          std::to_string(kMaxDrafterFiles) + " can be");
  }
}

void read_file(api::JsonFields& fields, const FileOption& option, std::string_view drafter,
               Config& config) {
  const std::string name(option.name);
  std::string path;
  fields.path(name, path, "a file");
  if (!fields.ok() || fields.any(name) == nullptr) return;
  config.files.push_back(
      {.drafter = std::string(drafter), .path = std::move(path), .tier = std::string(option.tier)});
}

// Options with one file first, so that those with several know how many there can be.
void read_drafter_files(api::JsonFields& fields, Config& config) {
  for (const bool several : {false, true}) {
    for (const std::string_view drafter : kFileDrafters) {
      const LookupFiles& files = *find_lookup_kind(drafter)->files;
      if (files.has_tiers() == several) continue;
      for (const FileOption& option : files.options) {
        (several ? read_files : read_file)(fields, option, drafter, config);
      }
    }
  }
}

}  // namespace

Result<Config> read_config(std::string_view text) {
  Config config;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return config;
  const json::Parsed parsed = json::parse(text);
  if (!parsed.ok()) return invalid_argument("the config: " + parsed.error);
  api::JsonFields fields(*parsed.value);
  api::read_fields(fields, runtime_fields(), config.runtime);
  read_model(fields, "model", ModelRole::kTarget, config.target);
  read_model(fields, "draft", ModelRole::kDraft, config.draft);
  read_drafter_files(fields, config);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return config;
}

}  // namespace outrider::capi
