#include "http/completion/server_state.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace outrider::http {

std::optional<CatalogStatus> ServerState::find_model(std::string_view name) const {
  const auto named = [name](const CatalogStatus& model) {
    return name.empty() || model.name == name ||
           std::find(model.aliases.begin(), model.aliases.end(), name) != model.aliases.end();
  };
  std::vector<CatalogStatus> models = catalog_.status();
  const auto found = std::find_if(models.begin(), models.end(), named);
  return found == models.end() ? std::nullopt : std::optional(std::move(*found));
}

std::string ServerState::model_name(std::string_view asked) const {
  std::optional<CatalogStatus> model = find_model(asked);
  if (!model && options_.any_model_name) model = find_model("");
  return model ? model->name : std::string(asked);
}

void ServerState::note_result(CallRecord& record, const CompletionResult& result) {
  const Completion& c = result.completion;
  metrics_.note_result(record.model, result);
  ++record.completions;
  record.prompt_tokens += c.prompt_tokens;
  record.completion_tokens += static_cast<std::int64_t>(c.tokens.size());
  record.drafted += c.speculation.drafted;
  record.accepted += c.speculation.accepted;
  record.finish = finish_reason_name(c.finish);
  if (c.tokens.empty()) return;
  const double first_ms = result.queued_ms + c.timings.first_token_ms;
  const bool earlier = record.first_token_ms < 0.0 || first_ms < record.first_token_ms;
  if (earlier) record.first_token_ms = first_ms;
}

}  // namespace outrider::http
