#include "api/model_params.h"

#include "base/list_of.h"

namespace outrider::api {
namespace {

using json::Json;

void read_options(JsonFields& fields, LoadRequest& request) {
  fields.require("path");
  fields.path("path", request.options.path, "the path of a GGUF file");
  read_fields(fields, model_fields(), request.options);
  if (!fields.ok()) return;
  const Status status = validate(request.options);
  if (!status.ok()) return fields.fail(status);
  if (request.role == ModelRole::kTarget) return;
  const std::string why = " is for a target; a draft model runs in this process";
  if (!request.options.workers.empty()) fields.fail("workers", "workers" + why);
  if (request.options.isolate) fields.fail("isolate", "isolate" + why);
  if (!request.options.head.empty()) {
    fields.fail("head", "head is for a target; a head itself is the path of a draft");
  }
  if (request.options.mtp != HeadChoice::kAuto) {
    fields.fail("mtp", "mtp is for a target; a draft model's prediction layers are not used");
  }
  if (request.options.exact != ExactMode::kAuto) {
    fields.fail("exact", "exact is for a target; what a draft model guesses changes no text");
  }
  if (fields.any("widest") != nullptr) {
    fields.fail("widest", "widest is for a target; a draft model is opened for any width");
  }
  if (fields.any("worker_timeout_s") != nullptr) {
    fields.fail("worker_timeout_s", "worker_timeout_s" + why);
  }
}

// "suffix, for a store of ..., or ngram-cache, for ...".
std::string drafter_help() {
  std::vector<std::string> each;
  for (const std::string_view name : kFileDrafters) {
    const LookupFiles& files = *find_lookup_kind(name)->files;
    each.push_back(std::string(name) + ", for " + std::string(files.one));
  }
  return "with the role drafter: " + list_of(each, ", or ");
}

// "static (default; ...) or dynamic (...); one file each".
std::string tier_help() {
  std::vector<std::string> each;
  for (const std::string_view name : kTieredDrafters) {
    const std::span<const FileOption> options = find_lookup_kind(name)->files->options;
    for (const FileOption& option : options) {
      const bool first = &option == &options.front();
      each.push_back(std::string(option.tier) + (first ? " (default; " : " (") +
                     std::string(option.tier_help) + ")");
    }
  }
  return "with the drafter " + list_of_names(kTieredDrafters, " or ") + ": " +
         list_of(each, " or ") + "; one file each";
}

const Parameter kOwnParameters[] = {
    {"role", "string",
     "target (whose text you want), draft (a model that guesses ahead) or drafter (a file for a "
     "drafter without a model; takes drafter, path and tier only)"},
    {"path", "string", "a GGUF file; for a drafter, a store"},
    {"drafter", "string", drafter_help()},
    {"tier", "string", tier_help()},
};

}  // namespace

Result<LoadRequest> read_load_request(const Json& params) {
  LoadRequest request;
  JsonFields fields(params);
  const Json* role = fields.any("role");
  fields.require("role");
  if (role != nullptr && is_text(*role, "draft")) {
    request.role = ModelRole::kDraft;
  } else if (role != nullptr && !is_text(*role, "target")) {
    fields.refuse("role", *role, "'target', 'draft' or 'drafter'");
  }
  for (const char* name : {"drafter", "tier"}) {
    if (fields.any(name) == nullptr) continue;
    fields.fail(name, std::string(name) +
                          " goes with the role 'drafter', for a file of one; a model has none");
  }
  read_options(fields, request);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return request;
}

Result<LoadRequest> read_load_request(const Json& object, ModelRole role, const std::string& path) {
  LoadRequest request{.role = role};
  JsonFields fields(object, path);
  read_options(fields, request);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return request;
}

bool about_drafter_file(const Json& params) {
  return params.is_object() && params.contains("role") && is_text(params["role"], "drafter");
}

Result<DrafterFile> read_drafter_file(const Json& params, bool needs_path) {
  DrafterFile file;
  JsonFields fields(params);
  (void)fields.any("role");
  fields.require("drafter");
  const Json* drafter = fields.any("drafter");
  if (drafter != nullptr && !drafter->is_string()) {
    fields.refuse("drafter", *drafter, "the name of a drafter that takes files");
  }
  fields.text("drafter", file.drafter);
  // Twice: whether it takes files at all is said before what is wrong with the tier.
  if (fields.ok()) fields.fail(check_file_drafter(file));
  fields.choice("tier", file.tier, kFileTiers);
  if (fields.ok()) fields.fail(check_file_drafter(file));
  if (needs_path) fields.require("path");
  fields.path("path", file.path, "the path of a file");
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return file;
}

std::span<const Parameter> model_parameters() {
  static const std::vector<Parameter> kParameters = [] {
    std::vector<Parameter> list(std::begin(kOwnParameters), std::end(kOwnParameters));
    for (Parameter& parameter : parameters_of(model_fields())) list.push_back(std::move(parameter));
    return list;
  }();
  return kParameters;
}

}  // namespace outrider::api
