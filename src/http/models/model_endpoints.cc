#include "http/models/model_endpoints.h"

#include <array>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

#include "api/json_fields.h"
#include "http/endpoint/acquire.h"
#include "http/exchange/error_form.h"
#include "http/exchange/error_reply.h"
#include "http/exchange/file_names.h"

namespace outrider::http {
namespace {

using json::Json;

// The name of a file without its folder, which is nobody's business; null: there is none.
Json name_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  return name.empty() ? Json() : Json(std::move(name));
}

// As clients of llama-server's router read it ("value", "failed"), and in our words.
Json load_json(const CatalogStatus& model) {
  const bool failed = model.state == ModelState::kFailed;
  const char* value = model.state == ModelState::kReady     ? "loaded"
                      : model.state == ModelState::kLoading ? "loading"
                                                            : "unloaded";
  Json status = {
      {"value", value},
      {"state", std::string(model_state_name(model.state))},
      {"progress", model.progress},
      {"error", model.error.ok() ? Json() : Json(without_folders(model.error.message()))}};
  if (failed) status["failed"] = true;
  return status;
}

Json model_json(const CatalogStatus& model, std::time_t started) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", started},
          {"owned_by", "outrider"},
          {"aliases", model.aliases},
          {"draft", name_of(model.draft_path)},
          {"offered_draft", name_of(model.offered_draft)},
          {"status", load_json(model)}};
}

std::time_t started_at() {
  static const std::time_t kStarted = std::time(nullptr);
  return kStarted;
}

Json anthropic_json(const CatalogStatus& model, std::time_t started) {
  std::tm utc{};
  gmtime_r(&started, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {{"type", "model"},
          {"id", model.name},
          {"display_name", model.name},
          {"created_at", text.data()},
          {"lifecycle", "active"}};
}

// llama-server's facts about a model, as far as an open one tells them; null: it is not open.
Json meta_json(Catalog& catalog, const std::string& name) {
  const std::shared_ptr<Runtime> runtime = catalog.find_open(name);
  const std::shared_ptr<const Target> target = runtime != nullptr ? runtime->target() : nullptr;
  if (target == nullptr) return {};
  const ModelInfo& info = target->info();
  return {{"n_vocab", target->capabilities().n_vocab},
          {"n_ctx", target->capabilities().n_ctx},
          {"n_ctx_train", info.n_ctx_train},
          {"n_params", info.n_params},
          {"size", info.size_bytes}};
}

// In the words of the API that the client speaks.
Json described(const CatalogStatus& model, ServerState& server, const HttpRequest& request) {
  if (is_anthropics(request)) return anthropic_json(model, started_at());
  Json object = model_json(model, started_at());
  object["meta"] = meta_json(server.catalog(), model.name);
  return object;
}

// The name in {"model": NAME}.
Result<std::string> read_name(const HttpRequest& request) {
  OUTRIDER_ASSIGN_OR_RETURN(const Json body, read_body(request));
  std::string name;
  api::JsonFields fields(body);
  fields.require("model");
  fields.text("model", name);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  if (name.empty()) return wrong_value("model", "''", "the name of one; /v1/models lists them");
  return name;
}

// Here, too, a wrong name is not taken for the only model's.
template <Status (Catalog::*kChange)(std::string_view name)>
HttpReply change_model(ServerState& server, const HttpRequest& request) {
  const Result<std::string> name = read_name(request);
  if (!name.ok()) return error_reply(name.status());
  const Status status = (server.catalog().*kChange)(*name);
  return status.ok() ? json_reply({{"success", true}}) : model_error_reply(status);
}

}  // namespace

HttpReply list_models(ServerState& server, const HttpRequest& request) {
  Json list = Json::array();
  for (const CatalogStatus& model : server.catalog().status()) {
    list.push_back(described(model, server, request));
  }
  if (!is_anthropics(request)) return json_reply({{"object", "list"}, {"data", std::move(list)}});
  const Json first = list.empty() ? Json() : list.front()["id"];
  const Json last = list.empty() ? Json() : list.back()["id"];
  return json_reply(
      {{"data", std::move(list)}, {"has_more", false}, {"first_id", first}, {"last_id", last}});
}

HttpReply one_model(ServerState& server, const HttpRequest& request) {
  constexpr std::string_view kStem = "/v1/models/";
  const std::string_view name = std::string_view(request.path).substr(kStem.size());
  const std::optional<CatalogStatus> model = server.catalog().status_of(name);
  return model ? json_reply(described(*model, server, request)) : no_such_model(name);
}

// A model that was only closed answers who asks: so it is while it is opened again, or a probe
// would end a server that swaps models.
HttpReply health(ServerState& server, const HttpRequest& /*request*/) {
  const std::vector<CatalogStatus> models = server.catalog().status();
  const bool is_loading = !models.empty() && models.front().state == ModelState::kLoading;
  if (is_loading && !models.front().reopening) {
    HttpReply reply = error_reply(503, "Loading model");
    Json body = error_object(503, *reply.failure, ErrorForm::kLlama);
    body["status"] = "loading";
    body["model"] = models.front().name;
    body["progress"] = models.front().progress;
    reply.body = json::encode(body);
    reply.failure.reset();  // the body stays as it is
    return reply;
  }
  if (!models.empty() && models.front().state == ModelState::kFailed) {
    return error_reply(503, without_folders(models.front().error.message()));
  }
  return json_reply({{"status", "ok"}});
}

std::vector<api::Parameter> model_name_parameters() {
  return {{"model", "string", "its name, or another one that it has"}};
}

HttpReply load_model(ServerState& server, const HttpRequest& request) {
  return change_model<&Catalog::preload>(server, request);
}

HttpReply unload_model(ServerState& server, const HttpRequest& request) {
  return change_model<&Catalog::unload>(server, request);
}

}  // namespace outrider::http
