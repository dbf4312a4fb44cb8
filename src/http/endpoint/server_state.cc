#include "http/endpoint/server_state.h"

#include <optional>

namespace outrider::http {

std::string ServerState::model_name(std::string_view asked) const {
  std::optional<CatalogStatus> model = catalog_.status_of(asked);
  if (!model && options_.any_model_name) model = catalog_.status_of("");
  return model ? model->name : std::string(asked);
}

void ServerState::note_model(CallRecord& record, const std::string& model) {
  record.model = model;
  metrics_.note_model(model, record.model_ms);
}

void ServerState::note_result(CallRecord& record, const CompletionResult& result,
                              double before_ms) {
  const Completion& c = result.completion;
  metrics_.note_result(record.model, result, before_ms);
  ++record.completions;
  record.prompt_tokens += c.prompt_tokens;
  record.completion_tokens += static_cast<std::int64_t>(c.tokens.size());
  record.drafted += c.speculation.drafted;
  record.accepted += c.speculation.accepted;
  record.finish = finish_reason_name(c.finish);
  if (c.tokens.empty()) return;
  const double first_ms = before_ms + result.queued_ms + c.timings.first_token_ms;
  const bool earlier = record.first_token_ms < 0.0 || first_ms < record.first_token_ms;
  if (earlier) record.first_token_ms = first_ms;
}

}  // namespace outrider::http
