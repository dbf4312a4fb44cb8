#include "api/completion_json.h"

#include <cmath>

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

Json speculation_json(const SpeculationStats& s, const Exactness& exactness) {
  Json drafters = Json::object();
  for (const DrafterStats& drafter : s.drafters)
    drafters[drafter.name] = drafter_stats_json(drafter);
  // Whatever the backend can: these rules keep the distribution, not the text.
  const bool same_text = !s.enabled || s.rule == AcceptanceRule::kCoupled;
  const std::string rule(rule_name(s.rule));
  const std::string verdict = same_text ? exactness.verdict() : "distributional";
  const std::string reason =
      same_text ? exactness.reason
                : "the rule " + rule + " keeps the distribution, not the text of plain decoding";
  return {{"enabled", s.enabled},
          {"rule", rule},
          {"exactness", verdict},
          {"exactness_coverage", text_or_null(exactness.coverage)},
          {"exactness_reason", text_or_null(reason)},
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

}  // namespace

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

std::string_view rule_name(AcceptanceRule rule) {
  return acceptance_rule_names()[static_cast<std::size_t>(rule)];
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

}  // namespace outrider::api
