#include "api/service.h"

#include "api/spelling.h"

namespace outrider::api {

CallResult Service::dispatch(std::string_view name, const json::Json& params) {
  const Method* method = find_method(name);
  if (method == nullptr) return {};
  if (stopping_.load()) {
    return cancelled("everything is being ended; no further calls are taken");
  }
  if (method->for_operators && !for_operators_) {
    return unsupported(std::string(name) +
                       " is for operators, and this server's has not switched it on (allow_files)");
  }
  const MethodContext context{.runtime = runtime_, .gives_up = [this] {
                                return stopping_.load() || (gives_up_ && gives_up_());
                              }};
  Result<json::Json> result = method->call(context, params);
  if (!result.ok()) return spelled_as_in(result.status(), params);
  return result;
}

Service::Use::Use(Service& service) : service_(service) {
  const std::lock_guard<std::mutex> lock(service_.mutex_);
  ++service_.running_;
}

Service::Use::~Use() {
  // Told while the mutex is held: whoever waits may destroy the service as soon as it is free.
  const std::lock_guard<std::mutex> lock(service_.mutex_);
  if (--service_.running_ == 0) service_.idle_.notify_all();
}

std::string Service::call(std::string_view request) {
  const Use use(*this);
  return answer_json_rpc(request, [this](std::string_view method, const json::Json& params) {
    return dispatch(method, params);
  });
}

void Service::wait_idle() {
  std::unique_lock<std::mutex> lock(mutex_);
  idle_.wait(lock, [this] { return running_ == 0; });
}

}  // namespace outrider::api
