#include "capi/config.h"

#include "api/model_params.h"
#include "api/read_fields.h"

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

void read_stores(api::JsonFields& fields, const std::string& name, Config& config) {
  std::vector<std::string> paths;
  fields.texts(name, paths);
  for (std::string& path : paths) {
    if (!api::is_path(path)) {
      return fields.refuse(name, Json(path), "a file, or an array of files");
    }
    config.files.push_back({.drafter = "suffix", .path = std::move(path)});
  }
  if (config.files.size() > kMaxDrafterFiles) {
    fields.fail(name, name + " and the n-gram files are " + std::to_string(config.files.size()) +
                          " together, at most " + std::to_string(kMaxDrafterFiles) + " can be");
  }
}

void read_ngrams(api::JsonFields& fields, const std::string& tier, Config& config) {
  const std::string name = "ngram_" + tier;
  std::string path;
  fields.path(name, path, "a file");
  if (!fields.ok() || fields.any(name) == nullptr) return;
  config.files.push_back({.drafter = "ngram-cache", .path = std::move(path), .tier = tier});
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
  for (const std::string_view tier : kFileTiers) read_ngrams(fields, std::string(tier), config);
  read_stores(fields, "suffix_store", config);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return config;
}

}  // namespace outrider::capi
