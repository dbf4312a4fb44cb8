#include "rpcserver/request_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/list_of.h"

namespace outrider::rpcserver {
namespace {

using json::Json;

// What a cmd may give for all requests, beside seed_options().
constexpr std::array<std::string_view, 6> kCmdKeys{"seed", "stream",  "logit_bias",
                                                   "stop", "__debug", "speculative"};

// A part of an array that is of the wrong kind.
void refuse_part(Fields& fields, std::string_view key, const Json& part, const char* wanted) {
  fields.refuse(
      key, "has " + std::string(json::kind(part)) + " among its parts, but they must be " + wanted);
}

void read_prompt(Fields& fields, RequestOptions& o) {
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) return;
  o.prompt_as_sent = *prompt;
  std::vector<PromptPart>& parts = o.request.prompt;
  parts.clear();
  if (prompt->is_string()) {
    parts.emplace_back(prompt->get<std::string>());
    return;
  }
  if (!prompt->is_array()) {
    fields.refuse_kind("prompt", *prompt, "a string, or an array of strings and token ids");
    return;
  }
  for (const Json& part : *prompt) {
    const std::optional<std::int64_t> id = whole_number(part, 0, kMaxInt32);
    if (part.is_string()) {
      parts.emplace_back(part.get<std::string>());
    } else if (id) {
      parts.emplace_back(static_cast<Token>(*id));
    } else {
      return refuse_part(fields, "prompt", part, "strings and token ids");
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
    if (!word.is_string()) return refuse_part(fields, "stop", word, "strings");
    // An empty one, which the seed passed over, would end every text at once.
    if (!word.get_ref<const std::string&>().empty())
      o.request.stop.push_back(word.get<std::string>());
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
        is_pair ? whole_number(pair[0], 0, kMaxInt32) : std::nullopt;
    LogitBias bias{.token = static_cast<Token>(id.value_or(kNoToken)), .bias = 0.0f};
    if (id && pair[1].is_boolean() && !pair[1].get<bool>()) {
      bias.bias = -std::numeric_limits<float>::infinity();
    } else if (id && pair[1].is_number() &&
               std::abs(pair[1].get<double>()) <= std::numeric_limits<float>::max()) {
      bias.bias = static_cast<float>(pair[1].get<double>());
    } else {
      warnings.push_back("logit_bias[" + std::to_string(i) +
                         "] is not [token id, number or false] and has no effect");
      continue;
    }
    o.request.sampling.logit_bias.push_back(bias);
  }
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
    if (!name.is_string()) return refuse_part(fields, "drafters", name, "names");
    expression += (expression.empty() ? "" : ",") + name.get<std::string>();
  }
  const Status status =
      set_drafters(o.request, names->empty() ? "auto" : expression, "speculative.drafters");
  if (!status.ok()) {
    fields.refuse({.error = status.message(), .field = "speculative.drafters"});
  }
}

// A field of speculation, as leniently as the rest of a request: null is the default.
template <typename T>
void read_field(Fields& fields, const Field<T>& field, T& object) {
  if (const auto* at = std::get_if<float T::*>(&field.place)) {
    double value = object.**at;
    const double max = std::min<double>(field.range.max, std::numeric_limits<float>::max());
    if (fields.read(field.name, value, field.range.min, max))
      object.** at = static_cast<float>(value);
  } else if (const auto* either = std::get_if<OrAuto<T>>(&field.place)) {
    const Json* given = fields.find(field.name);
    std::int64_t value = object.*(either->member);
    if (given != nullptr && given->is_string() && given->get<std::string>() == "auto") {
      value = either->automatic;
    } else {
      fields.read(field.name, value, whole_limit(field.range.min), whole_limit(field.range.max));
    }
    object.*(either->member) = static_cast<std::int32_t>(value);
  } else if (const auto* choice = std::get_if<Choice<T>>(&field.place)) {
    std::string name;
    if (!fields.read(field.name, name)) return;
    const auto found = std::find(choice->names.begin(), choice->names.end(), name);
    if (found == choice->names.end()) {
      const std::vector<std::string> names(choice->names.begin(), choice->names.end());
      fields.refuse(field.name, "is '" + name + "', but must be " + list_of(names, " or "));
    } else {
      choice->set(object, static_cast<std::size_t>(found - choice->names.begin()));
    }
  }
}

// true, false, or an object, which means true.
void read_speculative(Fields& fields, RequestOptions& o, std::vector<std::string>& warnings,
                      std::optional<Refusal>& refusal) {
  CompletionRequest& r = o.request;
  const Json* value = fields.find("speculative");
  if (value == nullptr) return;
  if (value->is_boolean()) {
    r.speculative = value->get<bool>();
    return;
  }
  if (!value->is_object()) {
    fields.refuse_kind("speculative", *value, "true, false or an object");
    return;
  }
  Fields inner(*value, "speculative.");
  read_drafters(inner, o);
  r.speculative = true;
  for (const Field<CompletionRequest>& field : speculation_fields()) read_field(inner, field, r);
  for (const Field<DraftShape>& field : shape_fields()) read_field(inner, field, r.draft);
  const Status branches = check_branches(r.rule, r.draft);
  if (!branches.ok()) {
    const std::string name = "speculative." + branches.field();
    inner.refuse({.error = branches.message_with(name), .field = name});
  }
  for (std::string& text : inner.unknown()) warnings.push_back(std::move(text));
  refusal = inner.refusal();
}

// The value of one option, in effect; of the kind of its default.
Json read_option(Fields& fields, const SeedOption& option) {
  const Range& range = option.range;
  const auto read = [&](auto value) -> Json {
    if constexpr (std::is_same_v<decltype(value), std::string_view>) {
      std::string text(value);
      fields.read(option.key, text);
      return text;
    } else if constexpr (std::is_same_v<decltype(value), bool>) {
      fields.read(option.key, value);
      return value;
    } else if constexpr (std::is_same_v<decltype(value), double>) {
      constexpr double kMax = std::numeric_limits<float>::max();
      fields.read(option.key, value, std::max(range.min, -kMax), std::min(range.max, kMax));
      return value;
    } else {
      constexpr std::int64_t kMin = std::numeric_limits<std::int32_t>::min();
      fields.read(option.key, value, std::max(whole_limit(range.min), kMin),
                  std::min(whole_limit(range.max), kMaxInt32));
      return value;
    }
  };
  const Json otherwise = std::visit([](auto value) { return Json(value); }, option.otherwise);
  Json value = std::visit(read, option.otherwise);
  if (!option.only.empty() && value != otherwise) fields.refuse(option.key, option.only);
  return value;
}

void read_options(Fields& fields, RequestOptions& o, std::vector<std::string>& warnings) {
  for (const SeedOption& option : seed_options()) {
    o.values[std::string(option.key)] = read_option(fields, option);
  }
  const auto at_least = [&o](const char* key, std::int64_t min) {
    Json& value = o.values[key];
    value = std::max(value.get<std::int64_t>(), min);
  };
  at_least("n_predict", -1);
  at_least("n_keep", -1);
  at_least("n_probs", 0);
  if (o.n_probs() > kMaxLogprobs) {
    warnings.push_back("n_probs is " + std::to_string(o.n_probs()) + "; " +
                       std::to_string(kMaxLogprobs) + " is the most there is, and is used");
    o.values["n_probs"] = kMaxLogprobs;
  }
  const float penalty = static_cast<float>(o.values["repeat_penalty"].get<double>());
  if (!(penalty > 0.0f && std::isfinite(1.0f / penalty))) {
    fields.refuse("repeat_penalty", "must be above 0 (1 is off)");
  }
  fields.find("stream");  // synchronous calls never stream, asynchronous ones always do
  fields.find("__debug");
  // The seed kept it in 32 bits, unsigned, with all of them set for "a new one".
  std::int64_t seed = -1;
  fields.read("seed", seed, std::numeric_limits<std::int32_t>::min(),
              std::numeric_limits<std::uint32_t>::max());
  const std::uint32_t bits = static_cast<std::uint32_t>(seed);
  if (bits != std::numeric_limits<std::uint32_t>::max()) o.seed = bits;
}

void warn_of_mirostat(const RequestOptions& o, std::vector<std::string>& warnings) {
  if (o.values["mirostat"] == 0) return;
  if (o.values["temperature"] <= 0.0) {
    warnings.emplace_back("mirostat has no effect at temperature 0");
  } else if (o.values["repeat_penalty"] != 1.0 || o.values["presence_penalty"] != 0.0 ||
             o.values["frequency_penalty"] != 0.0) {
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
  o.request.prompt = {std::string()};
  o.request.speculative = false;
  o.request.width = static_cast<std::int32_t>(defaults.width.value_or(kAutoWidth));
  read_prompt(fields, o);
  read_options(fields, o, parsed.warnings);
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
  // A step holds the guesses and the target's own last token.
  const std::int64_t widest = whole_limit(field_named(speculation_fields(), "width").range.max);
  if (cmd.read("n_draft", n_draft, 0, widest - 1)) defaults.width = n_draft + 1;
  const Json* temp = cmd.find("temp");
  if (temp != nullptr) defaults.options["temperature"] = *temp;
  const auto take = [&](std::string_view key) {
    const Json* value = cmd.find(key);
    if (value != nullptr) defaults.options[std::string(key)] = *value;
  };
  for (const SeedOption& option : seed_options()) take(option.key);
  for (const std::string_view key : kCmdKeys) take(key);
  ParsedRequest parsed = parse_request(Json::object(), defaults);
  for (std::string& text : parsed.warnings) warnings.push_back(std::move(text));
  if (parsed.refusal) cmd.refuse(*parsed.refusal);
  return defaults;
}

}  // namespace outrider::rpcserver
