#include "http/models/metrics_endpoints.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/completion_json.h"
#include "api/status_json.h"
#include "http/endpoint/acquire.h"
#include "http/endpoint/server_state.h"
#include "http/exchange/error_reply.h"
#include "http/metrics/exposition.h"
#include "http/metrics/metrics.h"

namespace outrider::http {
namespace {

using json::Json;

Json curve_json(const Runtime& runtime) {
  const std::shared_ptr<const Target> target = runtime.target();
  return api::costs_json(target == nullptr ? std::vector<CostPoint>() : target->costs().points);
}

Json floor_json(ServerState& server, const std::string& name, Runtime& runtime) {
  const std::optional<std::vector<CostPoint>> floor = server.floors().find(name, runtime);
  return !floor || floor->empty() ? Json() : api::costs_json(*floor);
}

Json depths_json(const DepthTotals& totals) {
  Json depths = Json::array();
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (totals[i].drafted == 0) break;
    depths.push_back(
        {{"depth", i + 1}, {"drafted", totals[i].drafted}, {"accepted", totals[i].accepted}});
  }
  return depths;
}

}  // namespace

HttpReply metrics(ServerState& server, const HttpRequest& /*request*/) {
  Exposition out;
  server.metrics().write(out);
  write_models(server.catalog(), out);
  write_process(out);
  return {.content_type = std::string(Exposition::kContentType), .body = out.text()};
}

HttpReply speculation(ServerState& server, const HttpRequest& request) {
  const std::string_view asked = request.parameter("model");
  const Result<std::shared_ptr<Runtime>> found = find_open_model(server, asked);
  if (!found.ok()) return model_error_reply(found.status());
  const std::shared_ptr<Runtime>& runtime = *found;
  const RuntimeStatus status = runtime->status();
  Json drafters = Json::object();
  for (const DrafterStatus& drafter : status.drafters) {
    if (drafter.totals.calls > 0) drafters[drafter.name] = api::drafter_stats_json(drafter.totals);
  }
  return json_reply({{"curve", curve_json(*runtime)},
                     {"floor", floor_json(server, server.model_name(asked), *runtime)},
                     {"depths", depths_json(status.by_depth)},
                     {"steps", status.steps},
                     {"drafted", status.drafted_tokens},
                     {"accepted", status.accepted_tokens},
                     {"emitted", status.emitted_tokens},
                     {"tokens_per_step", api::ratio(status.emitted_tokens, status.steps)},
                     {"acceptance_rate", api::ratio(status.accepted_tokens, status.drafted_tokens)},
                     {"drafters", std::move(drafters)}});
}

}  // namespace outrider::http
