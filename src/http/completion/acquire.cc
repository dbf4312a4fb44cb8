#include "http/completion/acquire.h"

#include <utility>

#include "http/exchange/error_reply.h"
#include "http/exchange/file_names.h"

namespace outrider::http {

Result<std::shared_ptr<Runtime>> acquire_model(ServerState& server, const HttpRequest& request,
                                               std::string_view name) {
  Result<std::shared_ptr<Runtime>> runtime = server.catalog().acquire(
      name, [&] { return server.stopping() || (request.gone && request.gone()); });
  // What is wrong with a model's files names them; what is wrong with its name repeats that.
  if (runtime.ok() || !server.find_model(name)) return runtime;
  return Status(runtime.status().code(), without_folders(runtime.status().message()));
}

Result<OpenModel> open_model(ServerState& server, const HttpRequest& request,
                             std::string_view name) {
  OUTRIDER_ASSIGN_OR_RETURN(std::shared_ptr<Runtime> runtime, acquire_model(server, request, name));
  std::shared_ptr<const Target> target = runtime->target();
  if (target == nullptr) return not_found("the model was taken away just now; ask again");
  return OpenModel{.runtime = std::move(runtime), .target = std::move(target)};
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
