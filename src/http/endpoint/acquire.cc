#include "http/endpoint/acquire.h"

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "http/exchange/error_reply.h"
#include "http/exchange/file_names.h"

namespace outrider::http {

namespace {

// Why `model`, whose name is right, is not there to answer. What is wrong with its files is the
// server's fault, and no status of a request's may say so: a file that is missing would be a model
// that nobody has heard of (404). llama-server says 500, too.
Status could_not_open(const CatalogStatus& model, const Status& failure) {
  const std::string message = without_folders(failure.message());
  switch (failure.code()) {
    case StatusCode::kOk:
    case StatusCode::kResourceExhausted:  // there may be room when others are done
    case StatusCode::kCancelled:
    case StatusCode::kInternal:
      return Status(failure.code(), message);
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kUnsupported:
    case StatusCode::kDataLoss:
      break;
  }
  const std::string who = "model '" + model.name + "' ";
  if (message.starts_with(who)) return internal_error(message);
  return internal_error(who + "cannot be opened: " + message);
}

Result<LeasedModel> with_target(std::shared_ptr<Runtime> runtime) {
  std::shared_ptr<const Target> target = runtime->target();
  if (target == nullptr) return cancelled("the model was taken away just now; ask again");
  return LeasedModel{.runtime = std::move(runtime), .target = std::move(target)};
}

}  // namespace

Result<std::shared_ptr<Runtime>> acquire_model(ServerState& server, const HttpRequest& request,
                                               std::string_view name) {
  const Stopwatch waited;
  Result<std::shared_ptr<Runtime>> runtime = server.catalog().acquire(
      name, [&] { return server.stopping() || (request.gone && request.gone()); });
  request.record->model_ms += waited.elapsed_ms();  // some endpoints ask twice
  if (runtime.ok()) return runtime;
  const std::optional<CatalogStatus> model = server.catalog().status_of(name);
  if (!model) return runtime;  // the error repeats the name as the client sent it
  return could_not_open(*model, runtime.status());
}

Result<std::shared_ptr<Runtime>> find_open_model(ServerState& server, std::string_view name) {
  const std::optional<CatalogStatus> model = server.catalog().status_of(name);
  if (!model) {
    return not_found("there is no model '" + std::string(name) + "'; /v1/models lists them");
  }
  std::shared_ptr<Runtime> runtime = server.catalog().find_open(model->name);
  if (runtime != nullptr) return runtime;
  if (model->state == ModelState::kLoading) {  // as llama-server says it, a 503
    return cancelled("Loading model '" + model->name + "'; ask again");
  }
  if (!model->error.ok()) return could_not_open(*model, model->error);
  return not_found("model '" + model->name + "' is not open; a completion of it opens it");
}

Result<LeasedModel> open_model(ServerState& server, const HttpRequest& request,
                               std::string_view name) {
  OUTRIDER_ASSIGN_OR_RETURN(std::shared_ptr<Runtime> runtime, acquire_model(server, request, name));
  return with_target(std::move(runtime));
}

Result<LeasedModel> find_open_target(ServerState& server, std::string_view name) {
  OUTRIDER_ASSIGN_OR_RETURN(std::shared_ptr<Runtime> runtime, find_open_model(server, name));
  return with_target(std::move(runtime));
}

HttpReply no_such_model(std::string_view name) {
  return error_reply(404, "there is no model '" + std::string(name) + "'; /v1/models lists them",
                     "model");
}

HttpReply model_error_reply(const Status& status) {
  const bool unknown = status.code() == StatusCode::kNotFound;
  return error_reply(status.about(unknown ? "model" : ""));
}

std::string_view model_of(const json::Json& body) {
  const json::Json::const_iterator found = body.find("model");
  if (found == body.end() || !found->is_string()) return {};
  return found->get_ref<const std::string&>();
}

}  // namespace outrider::http
