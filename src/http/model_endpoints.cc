#include "http/model_endpoints.h"

#include <ctime>
#include <filesystem>

#include "api/service.h"
#include "http/acquire.h"
#include "http/error_reply.h"

namespace outrider::http {
namespace {

using json::Json;

// The name of a file without its folder, which is nobody's business; null: there is none.
Json name_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  return name.empty() ? Json() : Json(std::move(name));
}

Json model_json(const CatalogStatus& model, std::time_t started) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", started},
          {"owned_by", "outrider"},
          {"aliases", model.aliases},
          {"draft", name_of(model.draft_path)},
          {"offered_draft", name_of(model.offered_draft)},
          {"status",
           {{"state", std::string(model_state_name(model.state))},
            {"progress", model.progress},
            {"error", model.error.ok() ? Json() : Json(model.error.message())}}}};
}

}  // namespace

HttpReply list_models(Server& server, const HttpRequest& /*request*/) {
  static const std::time_t kStarted = std::time(nullptr);
  Json list = Json::array();
  for (const CatalogStatus& model : server.catalog().status()) {
    list.push_back(model_json(model, kStarted));
  }
  return json_reply({{"object", "list"}, {"data", std::move(list)}});
}

HttpReply health(Server& server, const HttpRequest& /*request*/) {
  const std::vector<CatalogStatus> models = server.catalog().status();
  if (!models.empty() && models.front().state == ModelState::kLoading) {
    HttpReply reply = error_reply(503, "Loading model");
    Json body = error_object(503, "Loading model");
    body["status"] = "loading";
    body["model"] = models.front().name;
    body["progress"] = models.front().progress;
    reply.body = json::encode(body);
    return reply;
  }
  if (!models.empty() && models.front().state == ModelState::kFailed) {
    return error_reply(503, models.front().error.message());
  }
  return json_reply({{"status", "ok"}});
}

HttpReply rpc(Server& server, const HttpRequest& request) {
  Result<std::shared_ptr<Runtime>> runtime =
      acquire_model(server, request, request.parameter("model"));
  if (!runtime.ok()) return model_error_reply(runtime.status());
  api::Service service(**runtime, server.options().allow_files);
  HttpReply reply{.body = service.call(request.body)};
  if (reply.body.empty()) reply.status = 204;
  return reply;
}

}  // namespace outrider::http
