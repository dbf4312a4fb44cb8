#include "capi/instance.h"

#include <optional>
#include <vector>

#include "api/completion_json.h"
#include "api/model_params.h"
#include "api/read_fields.h"
#include "base/list_of.h"
#include "capi/instances.h"
#include "capi/log.h"
#include "draft/drafter_table.h"

namespace outrider::capi {
namespace {

using json::Json;

// The configuration of outrider_create: see include/outrider.h.
struct Config {
  RuntimeOptions runtime;
  std::optional<ModelOptions> target;  // to load at once, as is the draft
  std::optional<ModelOptions> draft;
  std::vector<DrafterFile> files;  // to attach once there is a target
};

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

// `text` is a JSON object; an empty text means the defaults.
Result<Config> read_config(std::string_view text) {
  Config config;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return config;
  const json::Parsed parsed = json::parse(text);
  if (!parsed.ok()) return invalid_argument("the config: " + parsed.error);
  if (!parsed.value->is_object()) {
    return wrong_value("the config", api::shown(*parsed.value), "an object");
  }
  api::JsonFields fields(*parsed.value);
  api::read_fields(fields, runtime_fields(), config.runtime);
  read_model(fields, "model", ModelRole::kTarget, config.target);
  read_model(fields, "draft", ModelRole::kDraft, config.draft);
  read_drafter_files(fields, config);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return config;
}

// Both allocate, and what the client's own code throws must not get any further.
void give_out(EventFunction callback, void* user, const RuntimeEvent& event) noexcept {
  const CallbackScope scope;
  std::string text;
  try {
    text = json::encode(api::event_json(event));
  } catch (...) {
  }
  try {
    callback(user, text.empty() ? R"({"event":"lost"})" : text.c_str());
  } catch (...) {
  }
}

}  // namespace

Result<std::unique_ptr<Instance>> Instance::create(std::string_view text,
                                                   std::unique_ptr<ModelLoader> loader) {
  OUTRIDER_ASSIGN_OR_RETURN(Config config, read_config(text));
  OUTRIDER_RETURN_IF_ERROR(prepare_folders(config.runtime));
  config.runtime.not_kept = [](const Status& why) {
    log_line(LogLevel::kWarning, "what was learned cannot be kept: " + why.message());
  };
  std::unique_ptr<Instance> instance(
      new Instance(std::make_unique<LoggingLoader>(std::move(loader))));
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime,
                            Runtime::create(config.runtime, *instance->loader_));
  instance->runtime_ = std::move(runtime);
  instance->service_ = std::make_unique<api::Service>(*instance->runtime_);
  add_living(instance.get());  // before anything is loaded
  if (config.target) {
    OUTRIDER_RETURN_IF_ERROR(
        instance->runtime_->load(ModelRole::kTarget, *config.target, config.draft));
  } else if (config.draft) {
    OUTRIDER_RETURN_IF_ERROR(instance->runtime_->load(ModelRole::kDraft, *config.draft));
  }
  for (const DrafterFile& file : config.files) {
    OUTRIDER_RETURN_IF_ERROR(instance->runtime_->attach(file));
  }
  return instance;
}

Instance::~Instance() {
  begin_destroying(this);
  if (service_ != nullptr) {
    close();
    runtime_->subscribe({});  // waits for a callback that is running; its calls are refused by now
    service_->wait_idle();
  }
  runtime_.reset();
  remove_living(this);
}

std::string Instance::call(std::string_view request) { return service_->call(request); }

void Instance::subscribe(EventFunction callback, void* user) {
  const api::Service::Use use(*service_);  // it may wait for a callback
  if (closed_.load()) return;
  // A callback must not wait for another instance's, which may be waiting for it.
  const bool wait = !in_callback();
  if (callback == nullptr) return runtime_->subscribe({}, wait);
  runtime_->subscribe(
      [this, callback, user](const RuntimeEvent& event) {
        if (!closed_.load()) give_out(callback, user, event);
      },
      wait);
}

void Instance::shut_down() {
  close();
  runtime_->shut_down();
}

void Instance::keep_learned() { runtime_->keep_learned(); }

void Instance::close() {
  closed_.store(true);
  service_->stop();
}

}  // namespace outrider::capi
