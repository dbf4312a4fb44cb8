#include "capi/instance.h"

#include "api/update_json.h"
#include "capi/instances.h"
#include "capi/log.h"

namespace outrider::capi {
namespace {

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
  if (closed_.load()) return;
  if (callback == nullptr) return runtime_->subscribe({});
  runtime_->subscribe([this, callback, user](const RuntimeEvent& event) {
    if (!closed_.load()) give_out(callback, user, event);
  });
}

void Instance::shut_down() {
  close();
  runtime_->shut_down();
}

void Instance::close() {
  closed_.store(true);
  service_->stop();
}

}  // namespace outrider::capi
