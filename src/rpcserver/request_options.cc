#include "rpcserver/request_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "api/completion_json.h"
#include "draft/base/drafter_plan.h"

namespace outrider::rpcserver {
namespace {

using json::Json;

constexpr std::int64_t kMinInt = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();
constexpr double kMaxFloat = std::numeric_limits<float>::max();
constexpr std::int64_t kMaxWidth = 64;  // tokens of a step, as for `outrider run`

// The options of a request that a cmd may give for all of them; a prompt is not one.
constexpr std::array<std::string_view, 26> kCmdKeys{"n_predict",
                                                    "temperature",
                                                    "top_k",
                                                    "top_p",
                                                    "tfs_z",
                                                    "typical_p",
                                                    "repeat_last_n",
                                                    "repeat_penalty",
                                                    "presence_penalty",
                                                    "frequency_penalty",
                                                    "mirostat",
                                                    "mirostat_tau",
                                                    "mirostat_eta",
                                                    "penalize_nl",
                                                    "n_keep",
                                                    "seed",
                                                    "grammar",
                                                    "n_probs",
                                                    "stream",
                                                    "ignore_eos",
                                                    "logit_bias",
                                                    "stop",
                                                    "n_beams",
                                                    "__debug",
                                                    "stream_tokens",
                                                    "speculative"};

void read_prompt(Fields& fields, RequestOptions& o) {
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) return;
  o.prompt_as_sent = *prompt;
  o.prompt.clear();
  if (prompt->is_string()) {
    o.prompt.emplace_back(prompt->get<std::string>());
    return;
  }
  if (!prompt->is_array()) {
    fields.refuse_kind("prompt", *prompt, "a string, or an array of strings and token ids");
    return;
  }
  for (const Json& part : *prompt) {
    const std::optional<std::int64_t> id = whole_number(part, 0, kMaxInt);
    if (part.is_string()) {
      o.prompt.emplace_back(part.get<std::string>());
    } else if (id) {
      o.prompt.emplace_back(static_cast<Token>(*id));
    } else {
      fields.refuse("prompt", "has " + std::string(json::kind(part)) +
                                  " among its parts, but they must be strings and token ids");
      return;
    }
  }
}

void read_stop(Fields& fields, RequestOptions& o) {
  const Json* stop = fields.find("stop");
  if (stop == nullptr) return;
  const Json words = stop->is_string() ? Json::array({*stop}) : *stop;
  if (!words.is_array()) {
    fields.refuse_kind("stop", words, "an array of strings");
    return;
  }
  for (const Json& word : words) {
    if (!word.is_string()) {
      fields.refuse("stop", "has " + std::string(json::kind(word)) +
                                " among its parts, but they must be strings");
      return;
    }
    // An empty one, which the seed passed over, would end every text at once.
    if (!word.get_ref<const std::string&>().empty()) o.stop.push_back(word.get<std::string>());
  }
}

// Pairs that mean nothing were passed over by the seed; here a warning says which.
void read_logit_bias(Fields& fields, RequestOptions& o, std::vector<std::string>& warnings) {
  const Json* biases = fields.find("logit_bias");
  if (biases == nullptr) return;
  if (!biases->is_array()) {
    fields.refuse_kind("logit_bias", *biases, "an array of [token id, number or false]");
    return;
  }
  for (std::size_t i = 0; i < biases->size(); ++i) {
    const Json& pair = (*biases)[i];
    const bool is_pair = pair.is_array() && pair.size() == 2;
    const std::optional<std::int64_t> id =
        is_pair ? whole_number(pair[0], 0, kMaxInt) : std::nullopt;
    LogitBias bias{.token = static_cast<Token>(id.value_or(kNoToken)), .bias = 0.0f};
    if (id && pair[1].is_boolean() && !pair[1].get<bool>()) {
      bias.bias = -std::numeric_limits<float>::infinity();
    } else if (id && pair[1].is_number() && std::abs(pair[1].get<double>()) <= kMaxFloat) {
      bias.bias = static_cast<float>(pair[1].get<double>());
    } else {
      warnings.push_back("logit_bias[" + std::to_string(i) +
                         "] is not [token id, number or false] and has no effect");
      continue;
    }
    o.logit_bias.push_back(bias);
  }
}

void read_rule(Fields& fields, RequestOptions& o) {
  std::string name;
  if (!fields.read("rule", name)) return;
  for (const AcceptanceRule rule :
       {AcceptanceRule::kCoupled, AcceptanceRule::kRejection, AcceptanceRule::kBlock}) {
    if (name != api::rule_name(rule)) continue;
    o.rule = rule;
    return;
  }
  fields.refuse("rule", "is '" + name + "', but must be coupled, rejection or block");
}

// Names, or fall-back chains of them ("suffix/draft-model"). Whether one is there is the runtime's
// to say, in the result.
void read_drafters(Fields& fields, RequestOptions& o) {
  const Json* names = fields.find("drafters");
  if (names == nullptr) return;
  if (!names->is_array()) {
    fields.refuse_kind("drafters", *names, "an array of names");
    return;
  }
  std::string expression;
  for (const Json& name : *names) {
    if (!name.is_string()) {
      fields.refuse("drafters", "has " + std::string(json::kind(name)) +
                                    " among its parts, but they must be names");
      return;
    }
    expression += (expression.empty() ? "" : ",") + name.get<std::string>();
  }
  o.drafters = DrafterPlan();
  if (names->empty()) return;
  Result<DrafterPlan> plan = parse_drafter_plan(expression, kDrafterNames, "speculative.drafters");
  if (plan.ok()) {
    o.drafters = *std::move(plan);
  } else {
    fields.refuse({.error = plan.status().message(), .field = "speculative.drafters"});
  }
}

void read_share(Fields& fields, const char* key, float& value, double max) {
  double number = value;
  if (fields.read(key, number, 0.0, max)) value = static_cast<float>(number);
}

void read_width(Fields& fields, RequestOptions& o) {
  const Json* value = fields.find("width");
  if (value != nullptr && value->is_string() && value->get<std::string>() == "auto") {
    o.width = kAutoWidth;
  } else {
    fields.read("width", o.width, 1, kMaxWidth);
  }
}

// true, false, or an object, which means true.
void read_speculative(Fields& fields, RequestOptions& o, std::vector<std::string>& warnings,
                      std::optional<Refusal>& refusal) {
  set_default_branches(o.draft, o.rule, static_cast<std::int32_t>(o.width));
  const Json* value = fields.find("speculative");
  if (value == nullptr) return;
  if (value->is_boolean()) {
    o.speculative = value->get<bool>();
    return;
  }
  if (!value->is_object()) {
    fields.refuse_kind("speculative", *value, "true, false or an object");
    return;
  }
  o.speculative = true;
  Fields inner(*value, "speculative.");
  read_drafters(inner, o);
  read_rule(inner, o);
  read_width(inner, o);
  set_default_branches(o.draft, o.rule, static_cast<std::int32_t>(o.width));
  std::int64_t branches = 1;
  if (inner.read("branches", branches, 1, kMaxWidth)) {
    o.draft.branches = static_cast<std::int32_t>(branches);
    o.draft.model_branches = 0;
  }
  read_share(inner, "split_p", o.draft.split_p, 1.0);
  read_share(inner, "draft_p_min", o.draft.p_min, 1.0);
  read_share(inner, "draft_p_ratio", o.draft.p_ratio, kMaxFloat);
  if (o.rule == AcceptanceRule::kBlock && o.draft.branches > 1) {
    inner.refuse("branches", "must be 1 with the rule block, which judges chains");
  }
  for (std::string& text : inner.unknown()) warnings.push_back(std::move(text));
  refusal = inner.refusal();
}

void read_sampling(Fields& fields, RequestOptions& o) {
  fields.read("temperature", o.temperature, -kMaxFloat, kMaxFloat);
  fields.read("top_k", o.top_k, kMinInt, kMaxInt);
  fields.read("top_p", o.top_p, -kMaxFloat, kMaxFloat);
  fields.read("tfs_z", o.tfs_z, -kMaxFloat, kMaxFloat);
  if (o.tfs_z != 1.0) {
    fields.refuse("tfs_z", "must be 1 (off): tail-free sampling is gone from llama.cpp");
  }
  fields.read("typical_p", o.typical_p, -kMaxFloat, kMaxFloat);
  fields.read("repeat_last_n", o.repeat_last_n, kMinInt, kMaxInt);
  fields.read("repeat_penalty", o.repeat_penalty, -kMaxFloat, kMaxFloat);
  fields.read("presence_penalty", o.presence_penalty, -kMaxFloat, kMaxFloat);
  fields.read("frequency_penalty", o.frequency_penalty, -kMaxFloat, kMaxFloat);
  fields.read("mirostat", o.mirostat, 0, 2);
  fields.read("mirostat_tau", o.mirostat_tau, 0.0, kMaxFloat);
  fields.read("mirostat_eta", o.mirostat_eta, 0.0, kMaxFloat);
  fields.read("penalize_nl", o.penalize_nl);
  fields.read("grammar", o.grammar);
  fields.read("ignore_eos", o.ignore_eos);
  fields.read("n_beams", o.n_beams, kMinInt, kMaxInt);
  if (o.n_beams != 0) {
    fields.refuse("n_beams", "must be 0 (off): beam search is gone from llama.cpp");
  }
  const float penalty = static_cast<float>(o.repeat_penalty);
  if (!(penalty > 0.0f && std::isfinite(1.0f / penalty))) {
    fields.refuse("repeat_penalty", "must be above 0 (1 is off)");
  }
}

void read_limits(Fields& fields, RequestOptions& o, std::vector<std::string>& warnings) {
  fields.read("n_predict", o.n_predict, kMinInt, kMaxInt);
  fields.read("n_keep", o.n_keep, kMinInt, kMaxInt);
  fields.read("n_probs", o.n_probs, kMinInt, kMaxInt);
  fields.read("stream_tokens", o.stream_tokens);
  fields.find("stream");  // synchronous calls never stream, asynchronous ones always do
  fields.find("__debug");
  o.n_predict = std::max<std::int64_t>(o.n_predict, -1);
  o.n_keep = std::max<std::int64_t>(o.n_keep, -1);
  o.n_probs = std::max<std::int64_t>(o.n_probs, 0);
  if (o.n_probs > kMaxProbs) {
    warnings.push_back("n_probs is " + std::to_string(o.n_probs) + "; " +
                       std::to_string(kMaxProbs) + " is the most there is, and is used");
    o.n_probs = kMaxProbs;
  }
  // The seed kept it in 32 bits, unsigned, with all of them set for "a new one".
  std::int64_t seed = -1;
  fields.read("seed", seed, kMinInt, std::numeric_limits<std::uint32_t>::max());
  const std::uint32_t bits = static_cast<std::uint32_t>(seed);
  if (bits != std::numeric_limits<std::uint32_t>::max()) o.seed = bits;
}

void warn_of_mirostat(const RequestOptions& o, std::vector<std::string>& warnings) {
  if (o.mirostat == 0) return;
  if (o.temperature <= 0.0) {
    warnings.emplace_back("mirostat has no effect at temperature 0");
  } else if (o.repeat_penalty != 1.0 || o.presence_penalty != 0.0 || o.frequency_penalty != 0.0) {
    warnings.emplace_back(
        "repeat_penalty, presence_penalty and frequency_penalty have no effect with mirostat");
  }
}

// What the request leaves open comes from the cmd.
Json merge(const Json& request, const Json& defaults) {
  if (!request.is_object()) return request;  // to be refused
  Json merged = defaults;
  for (const auto& [key, value] : request.items()) {
    Json* known = merged.contains(key) ? &merged[key] : nullptr;
    if (known == nullptr) {
      merged[key] = value;
    } else if (key == "speculative" && known->is_object() && value.is_object()) {
      for (const auto& [inner, inner_value] : value.items()) (*known)[inner] = inner_value;
    } else if (key == "speculative" && known->is_object() && value == Json(true)) {
      // The cmd's object means true, and says how.
    } else if (!value.is_null()) {
      *known = value;
    }
  }
  return merged;
}

}  // namespace

ParsedRequest parse_request(const Json& request, const RequestDefaults& defaults) {
  const Json merged = merge(request, defaults.options);
  ParsedRequest parsed;
  Fields fields(merged);
  RequestOptions& o = parsed.options;
  o.width = defaults.width.value_or(o.width);
  read_prompt(fields, o);
  read_sampling(fields, o);
  read_limits(fields, o, parsed.warnings);
  read_stop(fields, o);
  read_logit_bias(fields, o, parsed.warnings);
  std::optional<Refusal> inner;
  read_speculative(fields, o, parsed.warnings, inner);
  warn_of_mirostat(o, parsed.warnings);
  for (std::string& text : fields.unknown()) parsed.warnings.push_back(std::move(text));
  parsed.refusal = fields.refusal() ? fields.refusal() : inner;
  return parsed;
}

void RequestDefaults::update(const RequestDefaults& newer) {
  for (const auto& [key, value] : newer.options.items()) options[key] = value;
  if (newer.width) width = newer.width;
}

RequestDefaults take_defaults(Fields& cmd, std::vector<std::string>& warnings) {
  RequestDefaults defaults;
  std::int64_t n_draft = 0;
  if (cmd.read("n_draft", n_draft, 0, kMaxWidth - 1)) defaults.width = n_draft + 1;
  const Json* temp = cmd.find("temp");
  if (temp != nullptr) defaults.options["temperature"] = *temp;
  for (const std::string_view key : kCmdKeys) {
    const Json* value = cmd.find(key);
    if (value != nullptr) defaults.options[std::string(key)] = *value;
  }
  ParsedRequest parsed = parse_request(Json::object(), defaults);
  for (std::string& text : parsed.warnings) warnings.push_back(std::move(text));
  if (parsed.refusal) cmd.refuse(*parsed.refusal);
  return defaults;
}

}  // namespace outrider::rpcserver
