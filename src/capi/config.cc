#include "capi/config.h"

#include "api/read_fields.h"

namespace outrider::capi {
namespace {

using api::Answer;
using api::Error;
using json::Json;

void read_model(api::JsonFields& fields, const std::string& name, ModelRole role, Config& config) {
  const Json* object = fields.any(name);
  if (object == nullptr) return;
  Answer<api::LoadRequest> request = api::read_load_request(*object, role, name + ".");
  if (!request.ok()) return fields.fail(request.error().field, request.error().message);
  config.models.push_back(*std::move(request));
}

// The target is opened for the draft that comes with it.
void tell_target_of_draft(Config& config) {
  if (config.models.size() < 2) return;
  ModelOptions& target = config.models[0].options;
  if (target.head.empty()) target.head = config.models[1].options.path;
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
  if (config.files.size() > Runtime::kMaxDrafterFiles) {
    fields.fail(name, name + " holds " + std::to_string(paths.size()) + ", at most " +
                          std::to_string(Runtime::kMaxDrafterFiles) + " can be");
  }
}

void read_ngrams(api::JsonFields& fields, const std::string& tier, Config& config) {
  const std::string name = "ngram_" + tier;
  std::string path;
  fields.text(name, path);
  const Json* given = fields.any(name);
  if (given == nullptr) return;
  if (!api::is_path(*given)) return fields.refuse(name, *given, "a file");
  config.files.push_back({.drafter = "ngram-cache", .path = std::move(path), .tier = tier});
}

}  // namespace

Answer<Config> read_config(std::string_view text) {
  Config config;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return config;
  const json::Parsed parsed = json::parse(text);
  if (!parsed.ok()) return Error{.message = "the config: " + parsed.error, .field = ""};
  api::JsonFields fields(*parsed.value);
  api::read_fields(fields, runtime_fields(), config.runtime);
  read_model(fields, "model", ModelRole::kTarget, config);
  read_model(fields, "draft", ModelRole::kDraft, config);
  tell_target_of_draft(config);
  for (const std::string_view tier : kFileTiers) read_ngrams(fields, std::string(tier), config);
  read_stores(fields, "suffix_store", config);
  if (std::optional<Error> error = fields.finish()) return *std::move(error);
  return config;
}

}  // namespace outrider::capi
