#include "rpcserver/request_options.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "api/completion_params.h"
#include "base/list_of.h"
#include "base/number_from.h"
#include "draft/drafter_table.h"
#include "request/draft_defaults.h"

namespace outrider::rpcserver {
namespace {

using json::Json;

// What a cmd may give for all requests, beside seed_options().
constexpr std::array<std::string_view, 6> kCmdKeys{"seed", "stream",  "logit_bias",
                                                   "stop", "__debug", "speculative"};

void read_prompt(JsonFields& fields, RequestOptions& o) {
  const Json* prompt = fields.any("prompt");
  if (prompt == nullptr) return;
  o.prompt_as_sent = *prompt;
  o.request.prompt.clear();
  api::read_prompt(fields, o.request);
}

// Pairs that mean nothing were passed over by the seed; here a warning says which.
void read_logit_bias(JsonFields& fields, RequestOptions& o) {
  const Json* biases = fields.any("logit_bias");
  if (biases == nullptr) return;
  const std::string wanted = "[token id, number or false]";
  if (!biases->is_array())
    return fields.refuse_kind("logit_bias", *biases, "an array of " + wanted);
  fields.fail(check_biases(biases->size()));
  if (!fields.ok()) return;
  for (std::size_t i = 0; i < biases->size(); ++i) {
    const std::optional<LogitBias> bias = api::as_logit_bias((*biases)[i]);
    if (bias) {
      o.request.sampling.logit_bias.push_back(*bias);
    } else {
      o.warnings.push_back(api::item_name("logit_bias", i) + " is not " + wanted +
                           " and has no effect");
    }
  }
}

// Names, or fall-back chains of them ("suffix/draft-model"). Whether one is there is the runtime's
// to say, in the result.
void read_drafters(JsonFields& fields, RequestOptions& o) {
  std::vector<std::string> names;
  fields.texts("drafters", names);
  if (!fields.ok() || fields.any("drafters") == nullptr) return;
  fields.fail(set_drafters(o.request, names.empty() ? "auto" : joined(names, ","), "drafters"));
}

// true, false, or an object, which means true.
void read_speculative(JsonFields& fields, RequestOptions& o) {
  CompletionRequest& r = o.request;
  const Json* value = fields.any("speculative");
  if (value == nullptr) return;
  if (value->is_boolean()) {
    r.speculative = value->get<bool>();
    return;
  }
  if (!value->is_object()) {
    return fields.refuse_kind("speculative", *value, "true, false or an object");
  }
  JsonFields inner(*value, "speculative.", &kSeedDialect);
  read_drafters(inner, o);
  r.speculative = true;
  for (const std::string_view name : {"rule", "width"}) {
    api::read_field(inner, field_named(speculation_fields(), name), r);
  }
  api::read_fields(inner, shape_fields(), r.draft);
  inner.fail(check_branches(r.rule, r.draft.branches));
  warn_of_unknown(inner, o.warnings);
  fields.take(inner.finish());
}

// The value of one option, in effect; of the kind of its default.
Json read_option(JsonFields& fields, const SeedOption& option) {
  const Range range = option.strict ? field_named(sampling_fields(), option.field).range : Range{};
  const auto read = [&](auto value) -> Json {
    if constexpr (std::is_same_v<decltype(value), std::string_view>) {
      std::string text(value);
      fields.text(option.key, text);
      return text;
    } else if constexpr (std::is_same_v<decltype(value), bool>) {
      fields.boolean(option.key, value);
      return value;
    } else if constexpr (std::is_same_v<decltype(value), double>) {
      fields.number(option.key, value, range);
      return value;
    } else {
      fields.integer(option.key, value, std::max(whole_limit(range.min), kMinInt32),
                     std::min(whole_limit(range.max), kMaxInt32));
      return std::max(value, option.least);
    }
  };
  const Json otherwise = std::visit([](auto value) { return Json(value); }, option.otherwise);
  Json value = std::visit(read, option.otherwise);
  if (!option.only.empty() && value != otherwise) {
    fields.fail(refused(std::string(option.key), option.only));
  }
  return value;
}

void read_options(JsonFields& fields, RequestOptions& o) {
  for (const SeedOption& option : seed_options()) {
    o.values[std::string(option.key)] = read_option(fields, option);
  }
  if (o.n_probs() > kMaxLogprobs) {
    o.warnings.push_back("n_probs is " + std::to_string(o.n_probs()) + "; " +
                         std::to_string(kMaxLogprobs) + " is the most there is, and is used");
    o.values["n_probs"] = kMaxLogprobs;
  }
  SamplingOptions divides;  // the schema's own check, and what a float can hold
  divides.repeat_penalty = o.values["repeat_penalty"].get<float>();
  fields.fail(validate(divides));
  fields.any("stream");  // synchronous calls never stream, asynchronous ones always do
  fields.any("__debug");
  // The seed kept it in 32 bits, unsigned, with all of them set for "a new one".
  constexpr std::uint32_t kNewSeed = std::numeric_limits<std::uint32_t>::max();
  std::int64_t seed = -1;
  fields.integer("seed", seed, kMinInt32, kNewSeed);
  const std::uint32_t bits = static_cast<std::uint32_t>(seed);
  if (bits != kNewSeed) o.seed = bits;
}

void warn_of_mirostat(RequestOptions& o) {
  if (o.values["mirostat"] == 0) return;
  if (o.values["temperature"] <= 0.0) {
    o.warnings.emplace_back("mirostat has no effect at temperature 0");
  } else if (o.values["repeat_penalty"] != 1.0 || o.values["presence_penalty"] != 0.0 ||
             o.values["frequency_penalty"] != 0.0) {
    o.warnings.emplace_back(
        "repeat_penalty, presence_penalty and frequency_penalty have no effect with mirostat");
  }
}

// What the request leaves open comes from the cmd.
Json merge(const Json& request, const Json& defaults) {
  Json merged = defaults;
  for (const auto& [key, value] : request.items()) {
    Json& known = merged[key];  // null: there was none
    const bool adds = key == "speculative" && known.is_object();
    if (adds && value.is_object()) {
      known.update(value);
    } else if (!value.is_null() && !(adds && value == Json(true))) {  // the cmd's object means true
      known = value;
    }
  }
  return merged;
}

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
      kind != nullptr && kind->model == NeededModel::kDraft && !kind->guesses_at_once;
  return model_alone && shape.model_branches > 0 ? shape.model_branches : shape.branches;
}

Json speculative_json(const CompletionRequest& r) {
  if (!r.speculative) return false;
  Json drafters = Json::array();
  for (const std::vector<std::string>& chain : r.drafters.chains) {
    drafters.push_back(to_string(DrafterPlan{.chains = {chain}}));
  }
  return {{"drafters", std::move(drafters)},
          {"rule", traits_of(r.rule).name},
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

Result<RequestOptions> parse_request(const Json& request, const RequestDefaults& defaults) {
  const Json merged = merge(request, defaults.options);
  JsonFields fields(merged, "", &kSeedDialect);
  RequestOptions o;
  o.request.prompt = {std::string()};
  o.request.speculative = false;
  o.request.width = defaults.width.value_or(kAutoWidth);
  read_prompt(fields, o);
  read_options(fields, o);
  fields.texts("stop", o.request.stop);
  std::erase(o.request.stop, "");  // the seed passed it over; it would end every text at once
  read_logit_bias(fields, o);
  read_speculative(fields, o);
  warn_of_mirostat(o);
  warn_of_unknown(fields, o.warnings);
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return o;
}

void RequestDefaults::update(const RequestDefaults& newer) {
  options.update(newer.options);
  if (newer.width) width = newer.width;
}

RequestDefaults take_defaults(JsonFields& cmd, std::vector<std::string>& warnings) {
  RequestDefaults defaults;
  std::int32_t n_draft = -1;
  // A step holds the guesses and the target's own last token.
  const std::int64_t widest = whole_limit(field_named(speculation_fields(), "width").range.max);
  cmd.integer("n_draft", n_draft, 0, widest - 1);
  if (n_draft >= 0) defaults.width = n_draft + 1;
  const auto take = [&](std::string_view key, std::string_view option) {
    const Json* value = cmd.any(key);
    if (value != nullptr) defaults.options[std::string(option)] = *value;
  };
  take("temp", "temperature");
  for (const SeedOption& option : seed_options()) take(option.key, option.key);
  for (const std::string_view key : kCmdKeys) take(key, key);
  const Result<RequestOptions> parsed = parse_request(Json::object(), defaults);
  if (parsed.ok()) {
    warnings.insert(warnings.end(), parsed->warnings.begin(), parsed->warnings.end());
  }
  cmd.take(parsed.status());
  return defaults;
}

CompletionRequest completion_request(const RequestOptions& o, std::int64_t n_ctx) {
  CompletionRequest request = o.request;
  request.prompt_texts = true;  // every answer has them
  request.sampling.min_p = 0.0f;
  request.sampling.penalize_newline = o.values["penalize_nl"].get<bool>();
  const std::int64_t last_n = o.values["repeat_last_n"];  // less than 0: the whole context
  request.sampling.repeat_last_n = static_cast<std::int32_t>(
      std::min<std::int64_t>(last_n < 0 ? n_ctx : last_n, SamplingOptions::kMaxHistory));
  const bool mirostat = o.values["mirostat"] != 0 && o.values["temperature"].get<float>() > 0.0f;
  Json settings = Json::object();
  for (const SeedOption& option : seed_options()) {
    const bool unused = mirostat ? gives_way(option.field) : option.field == "mirostat";
    if (option.field.empty() || unused) continue;
    const Json& value = o.values[std::string(option.key)];
    settings[std::string(option.field)] = option.today == nullptr ? value : option.today(value);
  }
  JsonFields fields(settings);
  visit_settings(request, [&](const auto& table, auto& object) {
    for (const auto& field : table) {
      if (fields.has(std::string(field.name))) api::read_field(fields, field, object);
    }
  });
  assert(fields.ok());  // all are in their ranges of today by now
  if (o.seed) request.seed = static_cast<std::int64_t>(*o.seed);
  if (o.n_probs() == 0 || o.n_predict() == 0) {
    request.logprobs = -1;
  } else {
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
