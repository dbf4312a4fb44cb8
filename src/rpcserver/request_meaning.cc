// What the options mean to the runtime, and how they are shown.
#include <algorithm>
#include <cmath>
#include <utility>

#include "api/completion_json.h"
#include "base/number_from.h"
#include "draft/drafter_table.h"
#include "rpcserver/request_options.h"

namespace outrider::rpcserver {
namespace {

using json::Json;

// 0.1f as 0.1 and not as 0.10000000149011612.
double as_written(float value) { return number_from<double>(shortest(value)).value_or(value); }

Json logit_bias_json(const std::vector<LogitBias>& biases) {
  Json list = Json::array();
  for (const LogitBias& b : biases) {
    list.push_back({b.token, std::isinf(b.bias) ? Json(false) : Json(as_written(b.bias))});
  }
  return list;
}

// Where a draft model alone guesses, its own.
std::int32_t leaves(const CompletionRequest& r) {
  DraftShape shape = r.draft;
  fill_branches(shape, r.rule, r.width);
  const bool alone = r.drafters.chains.size() == 1 && r.drafters.chains[0].size() == 1;
  const DrafterKind* const kind = alone ? find_drafter_kind(r.drafters.chains[0][0]) : nullptr;
  const bool model_alone =
      kind != nullptr && kind->model == ModelFile::kDraft && !kind->guesses_at_once;
  return model_alone && shape.model_branches > 0 ? shape.model_branches : shape.branches;
}

Json speculative_json(const CompletionRequest& r) {
  if (!r.speculative) return false;
  Json drafters = Json::array();
  for (const std::vector<std::string>& chain : r.drafters.chains) {
    drafters.push_back(to_string(DrafterPlan{.chains = {chain}}));
  }
  return {{"drafters", std::move(drafters)},
          {"rule", api::rule_name(r.rule)},
          {"width", r.width == kAutoWidth ? Json("auto") : Json(r.width)},
          {"branches", leaves(r)},
          {"split_p", as_written(r.draft.split_p)},
          {"draft_p_min", as_written(r.draft.p_min)},
          {"draft_p_ratio", as_written(r.draft.p_ratio)}};
}

// Whether the field gives way to mirostat, which the seed let take the place of the rest.
bool gives_way(std::string_view name) {
  const Field<SamplingOptions>* const field = find_field(sampling_fields(), name);
  return field != nullptr && field->replaced_by == "mirostat";
}

}  // namespace

std::int64_t RequestOptions::n_predict() const { return values["n_predict"].get<std::int64_t>(); }
std::int64_t RequestOptions::n_probs() const { return values["n_probs"].get<std::int64_t>(); }
bool RequestOptions::stream_tokens() const { return values["stream_tokens"].get<bool>(); }

CompletionRequest completion_request(const RequestOptions& o, std::int64_t n_ctx) {
  CompletionRequest request = o.request;
  request.prompt_texts = true;  // every answer has them
  request.sampling.min_p = 0.0f;
  const bool mirostat = o.values["mirostat"] != 0 && o.values["temperature"].get<float>() > 0.0f;
  for (const SeedOption& option : seed_options()) {
    const bool unused = mirostat ? gives_way(option.field) : option.field == "mirostat";
    if (option.apply == nullptr || unused) continue;
    option.apply(o.values[std::string(option.key)], request);
  }
  if (request.sampling.repeat_last_n < 0) {  // the whole context
    request.sampling.repeat_last_n =
        static_cast<std::int32_t>(std::min<std::int64_t>(n_ctx, SamplingOptions::kMaxHistory));
  }
  if (o.seed) request.seed = static_cast<std::int64_t>(*o.seed);
  if (o.n_probs() > 0 && o.n_predict() != 0) {
    request.logprobs = static_cast<std::int32_t>(o.n_probs());
    request.logprobs_after_sampler = request.sampling.temperature > 0.0f;
  }
  if (!request.speculative) request.width = 1;
  return request;
}

Json generation_settings(const RequestOptions& o, std::int64_t n_ctx, const std::string& model,
                         std::uint64_t seed, bool stream) {
  Json settings = {{"n_ctx", n_ctx}, {"model", model}, {"seed", seed}};
  for (const SeedOption& option : seed_options()) {
    const std::string_view name = option.shown.empty() ? option.key : option.shown;
    settings[std::string(name)] = o.values[std::string(option.key)];
  }
  settings["stop"] = o.request.stop;
  settings["stream"] = stream;
  settings["logit_bias"] = logit_bias_json(o.request.sampling.logit_bias);
  settings["speculative"] = speculative_json(o.request);
  return settings;
}

Status refusal_of(const Status& status) {
  std::string name = status.field();
  if (name == "drafter") name = "speculative.drafters";
  if (find_field(speculation_fields(), name) != nullptr ||
      find_field(shape_fields(), name) != nullptr) {
    name = "speculative." + name;
  }
  for (const SeedOption& option : seed_options()) {
    if (!name.empty() && option.field == name) name = option.key;
  }
  return status.spelled(name);
}

}  // namespace outrider::rpcserver
