#include "api/completion_json.h"

#include <cmath>
#include <utility>

#include "api/chat_params.h"
#include "api/status_json.h"
#include "base/utf8.h"
#include "request/completion_request.h"

namespace outrider::api {
namespace {

using json::Json;

Json usage_json(const Completion& c) {
  return {{"prompt_tokens", c.prompt_tokens},
          {"cached_tokens", c.cached_tokens},
          {"completion_tokens", c.tokens.size()}};
}

Json timings_json(const Timings& t) {
  return {{"prompt_ms", t.prompt_ms},
          {"prompt_per_second", per_second(t.prompt_tokens_evaluated, t.prompt_ms)},
          {"predicted_ms", t.predicted_ms},
          {"predicted_per_second", per_second(t.predicted_after_first, t.predicted_ms)},
          {"first_token_ms", t.first_token_ms}};
}

// Minus infinity, which JSON does not have, is null.
Json ranked_json(const RankedToken& token) {
  return {{"id", token.id},
          {"token", token.text},
          {"bytes", token.text.empty() ? Json() : bytes_json(token.text)},
          {"logprob", std::isfinite(token.logprob) ? Json(token.logprob) : Json()}};
}

Json logprobs_json(const Completion& c) {
  if (!c.has_logprobs) return {};
  Json list = Json::array();
  for (const TokenLogprob& token : c.logprobs) list.push_back(logprob_json(token));
  return list;
}

Json token_json(const SaidToken& token) {
  Json object = {{"id", token.id}, {"text", token.text}, {"by", std::string(token.by)}};
  if (first_invalid_utf8(token.text)) object["bytes"] = bytes_json(token.text);
  if (token.logprob) object["logprob"] = logprob_json(*token.logprob);
  return object;
}

void add_remembered(const CompletionResult& result, Json* speculation) {
  if (!result.remembered) return;
  (*speculation)["remembered"] = {{"namespace", result.remembered->name_space},
                                  {"tokens", result.remembered->tokens},
                                  {"reason", text_or_null(result.remembered->reason)}};
}

}  // namespace

Json speculation_json(const SpeculationStats& s, const Exactness& exactness) {
  Json drafters = Json::object();
  for (const DrafterStats& drafter : s.drafters)
    drafters[drafter.name] = drafter_stats_json(drafter);
  const Exactness held = exactness_of(s, exactness);
  return {{"enabled", s.enabled},
          {"rule", std::string(traits_of(s.rule).name)},
          {"exactness", held.verdict()},
          {"exactness_coverage", text_or_null(held.coverage)},
          {"exactness_reason", text_or_null(held.reason)},
          {"reason", text_or_null(s.reason)},
          {"steps", s.steps},
          {"drafted", s.drafted},
          {"accepted", s.accepted},
          {"emitted", s.emitted},
          {"tokens_per_step", ratio(s.emitted, s.steps)},
          {"acceptance_rate", ratio(s.accepted, s.drafted)},
          {"draft_prompt_ms", s.draft_prompt_ms},
          {"draft_ms", s.draft_ms},
          {"verify_ms", s.verify_ms},
          {"sample_ms", s.sample_ms},
          {"plan_ms", s.plan_ms},
          {"plain_ms", s.plain_ms ? Json(*s.plain_ms) : Json()},
          {"drafters", std::move(drafters)}};
}

Json drafter_stats_json(const DrafterStats& d) {
  return {{"calls", d.calls},
          {"drafts", d.drafts},
          {"accepted_drafts", d.accepted_drafts},
          {"drafted", d.drafted},
          {"accepted", d.accepted},
          {"acceptance_rate", ratio(d.accepted, d.drafted)},
          {"foregone", d.foregone},
          {"draft_ms", d.draft_ms},
          {"accept_ms", d.accept_ms}};
}

Json logprob_json(const TokenLogprob& token) {
  Json top = Json::array();
  for (const RankedToken& other : token.top) top.push_back(ranked_json(other));
  Json object = ranked_json(token.chosen);
  object["top_logprobs"] = std::move(top);
  return object;
}

Json error_or_null(const Status& status) {
  if (status.ok()) return {};
  return {{"code", std::string(status_code_name(status.code()))}, {"message", status.message()}};
}

Json bytes_json(const std::string& text) {
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

Json piece_json(std::string_view piece) {
  std::string text(piece);
  return first_invalid_utf8(text) ? bytes_json(text) : Json(std::move(text));
}

void add_kernels(const KernelUse& kernels, Json* object) {
  (*object)["kernels"] = kernels.name();
  (*object)["kernels_reason"] = text_or_null(kernels.reason);
}

Json completion_json(const Completion& c, const Exactness& exactness, const KernelUse& kernels) {
  Json result = {{"text", c.text},
                 {"tokens", c.tokens},
                 {"seed", c.seed},
                 {"finish_reason", std::string(finish_reason_name(c.finish))},
                 {"stop", text_or_null(c.stop)},
                 {"logprobs", logprobs_json(c)},
                 {"usage", usage_json(c)},
                 {"timings", timings_json(c.timings)},
                 {"speculation", speculation_json(c.speculation, exactness)}};
  add_kernels(kernels, &result);
  if (!c.error.ok()) result["error"] = error_or_null(c.error);
  return result;
}

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
  add_remembered(result, &object["speculation"]);
  return object;
}

Json speculation_json(const CompletionResult& result) {
  Json speculation = speculation_json(result.completion.speculation, result.exactness);
  add_remembered(result, &speculation);
  return speculation;
}

Json prompt_stats_json(const PromptStats& stats) {
  return {{"n_ctx", stats.n_ctx},
          {"prompt_tokens", stats.n_tokens},
          {"prompt_tokens_asked", stats.n_tokens_asked},
          {"cached_tokens", stats.n_cached},
          {"truncated", stats.truncated()}};
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
  if (!event.completion) return {{"event", "lost"}};
  Json object = {{"event", "completion"},
                 {"id", event.completion->id},
                 {"updates", updates_json(event.completion->tokens)},
                 {"finished", event.completion->result != nullptr}};
  if (event.completion->result) object["result"] = result_json(*event.completion->result);
  return object;
}

}  // namespace outrider::api
