#include "api/update_json.h"

#include "api/chat_params.h"
#include "api/completion_json.h"
#include "api/status_json.h"
#include "base/utf8.h"

namespace outrider::api {
namespace {

using json::Json;

Json token_json(const SaidToken& token) {
  Json object = {{"id", token.id}, {"text", token.text}, {"by", std::string(token.by)}};
  if (first_invalid_utf8(token.text)) object["bytes"] = bytes_json(token.text);
  if (token.logprob) object["logprob"] = logprob_json(*token.logprob);
  return object;
}

}  // namespace

Json updates_json(const std::vector<SaidToken>& tokens) {
  Json updates = Json::array();
  if (tokens.empty()) return updates;
  std::string text;
  Json list = Json::array();
  for (const SaidToken& token : tokens) {
    text += token.text;
    list.push_back(token_json(token));
  }
  updates.push_back({{"text", std::move(text)}, {"tokens", std::move(list)}});
  return updates;
}

Json result_json(const CompletionResult& result) {
  Json object = completion_json(result.completion, result.exactness, result.kernels);
  object["ended_by"] = std::string(ended_by_name(result.ended_by));
  object["model"] = result.model;
  object["shifted"] = result.shifted;
  object["truncated"] = result.prompt.truncated();
  if (result.reader != nullptr) {
    object["message"] =
        message_json(result.reader->read(result.completion.text, /*complete=*/true));
  }
  if (result.remembered) {
    object["speculation"]["remembered"] = {{"namespace", result.remembered->name_space},
                                           {"tokens", result.remembered->tokens},
                                           {"reason", text_or_null(result.remembered->reason)}};
  }
  return object;
}

Json prompt_stats_json(const PromptStats& stats) {
  return {{"n_ctx", stats.n_ctx},
          {"prompt_tokens", stats.n_tokens},
          {"prompt_tokens_asked", stats.n_tokens_asked},
          {"cached_tokens", stats.n_cached},
          {"truncated", stats.truncated()},
          {"cached", stats.cached},
          {"to_evaluate", stats.to_evaluate}};
}

Json event_json(const RuntimeEvent& event) {
  if (event.model) {
    Json object = {{"event", "model"}, {"role", std::string(model_role_name(event.model->role))}};
    object.update(model_status_json(event.model->status));
    return object;
  }
  if (event.drafter) {
    Json object = {{"event", "drafter"}, {"drafter", event.drafter->file.file.drafter}};
    object.update(drafter_file_json(event.drafter->file));
    if (!event.drafter->attached) object["state"] = "absent";
    return object;
  }
  if (!event.completion) return {{"event", "none"}};
  Json object = {{"event", "completion"},
                 {"id", event.completion->id},
                 {"updates", updates_json(event.completion->tokens)},
                 {"finished", event.completion->result != nullptr}};
  if (event.completion->result) object["result"] = result_json(*event.completion->result);
  return object;
}

}  // namespace outrider::api
