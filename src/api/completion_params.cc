#include "api/completion_params.h"

#include <cmath>

#include "api/chat_params.h"
#include "api/spelling.h"
#include "base/list_of.h"
#include "base/number_from.h"

namespace outrider::api {
namespace {

using json::Json;

// A bias, or false for "never".
std::optional<float> as_bias(const Json& value) {
  if (value.is_boolean() && !value.get<bool>()) return -INFINITY;
  if (!value.is_number()) return {};
  const double number = value.get<double>();
  if (!(std::fabs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) return {};
  return static_cast<float>(number);
}

void read_logit_bias(JsonFields& fields, CompletionRequest& request) {
  SamplingOptions& o = request.sampling;
  const Json* given = fields.any("logit_bias");
  if (given == nullptr) return;
  o.logit_bias.clear();
  constexpr const char* kPair = "a token's id and a number, or false for never";
  if (given->is_object()) {
    for (Json::const_iterator it = given->begin(); it != given->end(); ++it) {
      const std::optional<Token> id = as_token_key(it.key());
      const std::optional<float> bias = as_bias(it.value());
      if (!id) return fields.refuse("logit_bias", Json(it.key()), kPair);
      if (!bias) return fields.refuse("logit_bias." + it.key(), it.value(), "a number or false");
      o.logit_bias.push_back({.token = *id, .bias = *bias});
    }
    return;
  }
  if (!given->is_array()) {
    return fields.refuse("logit_bias", *given,
                         "an object from ids to numbers, or an array of [id, number]");
  }
  for (const Json& pair : *given) {
    const std::optional<LogitBias> bias = as_logit_bias(pair);
    if (!bias) return fields.refuse(item_name("logit_bias", o.logit_bias.size()), pair, kPair);
    o.logit_bias.push_back(*bias);
  }
}

void read_schema(JsonFields& fields, CompletionRequest& request) {
  const Json* schema = fields.any("json_schema");
  if (schema == nullptr) return;
  if (!schema->is_object() && !schema->is_string()) {
    return fields.refuse("json_schema", *schema, "a schema (an object), or its text");
  }
  std::string& text = request.sampling.json_schema;
  text = schema->is_object() ? json::encode(*schema) : schema->get<std::string>();
  if (text.empty()) fields.refuse("json_schema", *schema, "a schema");
}

// ["a/b", "c"] as "a/b,c".
void read_drafters(JsonFields& fields, CompletionRequest& request) {
  std::vector<std::string> chains;
  fields.texts("drafters", chains);
  if (!fields.ok() || fields.any("drafters") == nullptr) return;
  if (chains.empty()) {
    return fields.refuse("drafters", *fields.any("drafters"),
                         "an array of at least one drafter's name; without it, all that are there "
                         "draft");
  }
  fields.fail(set_drafters(request, joined(chains, ","), "drafters"));
}

// true, false, or an object with the fields of speculation, each there or beside it. Before those,
// which may say more: see settle_speculative().
void read_speculative(JsonFields& fields, CompletionRequest& request) {
  const Json* given = fields.any("speculative");
  if (given == nullptr) return;
  if (given->is_boolean()) {
    request.speculative = given->get<bool>();
    return;
  }
  if (!given->is_object()) {
    return fields.refuse("speculative", *given, "true, false or an object");
  }
  JsonFields inner(*given, "speculative.");
  request.speculative = true;
  for (const Field<CompletionRequest>& field : speculation_fields()) {
    if (field.name != "speculative" && field.name != "drafter") read_field(inner, field, request);
  }
  read_fields(inner, shape_fields(), request.draft);
  read_drafters(inner, request);
  for (const std::string& name : inner.names()) {
    const std::string outside = name == "drafters" ? "drafter" : name;
    if (given->contains(name) && fields.has(outside)) {
      inner.fail(name, outside + " and speculative." + name + " are both there; give one of them");
    }
  }
  fields.take(inner.finish());
}

// Behind `drafter`, which says of its own whether there is speculation: false is plain decoding,
// whatever else is said of guesses; true, or how to speculate, does not go with nobody who guesses.
void settle_speculative(JsonFields& fields, CompletionRequest& request) {
  const Json* given = fields.any("speculative");
  if (given == nullptr) return;
  if (given->is_boolean() && !given->get<bool>()) {
    request.speculative = false;
  } else if (!request.speculative && fields.has("drafter")) {
    fields.fail("speculative",
                "speculative asks for guesses, but drafter is none; give one of them");
  }
}

// The fields that have more than one form in JSON.
struct ReaderByHand {
  std::string_view name;
  void (*read)(JsonFields&, CompletionRequest&);
};
constexpr ReaderByHand kPromptByHand[] = {{"prompt", read_prompt},
                                          {"messages", read_messages},
                                          {"tools", read_tools},
                                          {"tool_choice", read_tool_choice},
                                          {"chat_template_kwargs", read_template_values},
                                          {"reasoning", read_reasoning_object}};
constexpr ReaderByHand kSettingsByHand[] = {{"logit_bias", read_logit_bias},
                                            {"json_schema", read_schema},
                                            {"speculative", read_speculative}};

Result<CompletionRequest> read_checked(const Json& params, CompletionRequest request,
                                       RequestCheck check) {
  JsonFields fields(params);
  read_completion_fields(fields, request);
  OUTRIDER_RETURN_IF_ERROR(finish_completion(fields, params, request, check));
  return request;
}

}  // namespace

std::optional<Token> as_token_key(const std::string& key) {
  const std::optional<std::uint32_t> id = number_from<std::uint32_t>(key);
  return id && *id <= kMaxInt32 ? std::optional(static_cast<Token>(*id)) : std::nullopt;
}

std::optional<LogitBias> as_logit_bias(const Json& pair) {
  if (!pair.is_array() || pair.size() != 2) return {};
  const std::optional<Token> id = as_token(pair[0]);
  const std::optional<float> bias = as_bias(pair[1]);
  if (!id || !bias) return {};
  return LogitBias{.token = *id, .bias = *bias};
}

void read_prompt(JsonFields& fields, CompletionRequest& request) {
  const Json* given = fields.any("prompt");
  if (given == nullptr) return;
  if (given->is_string()) {
    request.prompt.emplace_back(given->get<std::string>());
    return;
  }
  if (!given->is_array() || given->empty()) {
    return fields.refuse_kind("prompt", *given,
                              "a string, or an array of at least one string or token id");
  }
  fields.fail(check_prompt_parts(given->size()));
  if (!fields.ok()) return;
  for (const Json& part : *given) {
    const std::optional<Token> id = as_token(part);
    if (id) {
      request.prompt.emplace_back(*id);
    } else if (part.is_string()) {
      request.prompt.emplace_back(part.get<std::string>());
    } else {
      return fields.refuse_item("prompt", request.prompt.size(), part, "a string or a token's id",
                                "strings and token ids");
    }
  }
}

void read_completion_fields(JsonFields& fields, CompletionRequest& request) {
  for (const ReaderByHand& field : kPromptByHand) field.read(fields, request);
  for (const ReaderByHand& field : kSettingsByHand) field.read(fields, request);
  visit_request(request,
                [&](const auto& table, auto& object) { read_fields(fields, table, object); });
  settle_speculative(fields, request);
}

void read_settings_fields(JsonFields& fields, CompletionRequest& request) {
  for (const ReaderByHand& field : kSettingsByHand) field.read(fields, request);
  visit_settings(request,
                 [&](const auto& table, auto& object) { read_fields(fields, table, object); });
  settle_speculative(fields, request);
}

Status finish_completion(JsonFields& fields, const Json& params, const CompletionRequest& request,
                         RequestCheck check) {
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return spelled_as_in(fields.spelled(check(request)), params);
}

Result<CompletionRequest> read_completion(const Json& params) {
  return read_checked(params, {}, validate);
}

Result<CompletionRequest> change_completion(const Json& params, CompletionRequest request) {
  return read_checked(params, std::move(request), validate_settings);
}

std::span<const Parameter> completion_parameters() {
  static const std::vector<Parameter> kParameters = [] {
    std::vector<Parameter> list;
    const CompletionRequest request;
    visit_request(request, [&list](const auto& table, const auto& /*object*/) {
      for (Parameter& parameter : parameters_of(table)) list.push_back(std::move(parameter));
    });
    return list;
  }();
  return kParameters;
}

}  // namespace outrider::api
