#include "api/completion_params.h"

#include <cmath>

namespace outrider::api {
namespace {

using json::Json;

std::string item(std::string_view name, std::size_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

std::optional<Token> as_token(const Json& value) {
  const std::optional<std::int64_t> id = as_integer(value);
  if (!id || *id < 0 || *id > kMaxInt32) return {};
  return static_cast<Token>(*id);
}

void read_prompt(JsonFields& fields, CompletionRequest& request) {
  const Json* given = fields.any("prompt");
  if (given == nullptr) return;
  if (given->is_string()) {
    request.prompt.emplace_back(given->get<std::string>());
    return;
  }
  if (!given->is_array() || given->empty()) {
    return fields.refuse("prompt", *given,
                         "a string, or an array of at least one string or token id");
  }
  for (const Json& part : *given) {
    const std::optional<Token> id = as_token(part);
    if (id) {
      request.prompt.emplace_back(*id);
    } else if (part.is_string()) {
      request.prompt.emplace_back(part.get<std::string>());
    } else {
      return fields.refuse(item("prompt", request.prompt.size()), part, "a string or a token's id");
    }
  }
}

void read_messages(JsonFields& fields, CompletionRequest& request) {
  const Json* given = fields.any("messages");
  if (given == nullptr) return;
  if (!given->is_array() || given->empty()) {
    return fields.refuse("messages", *given, "an array of at least one message");
  }
  if (given->size() > kMaxMessages) {
    return fields.fail("messages", "messages holds " + std::to_string(given->size()) +
                                       ", at most " + std::to_string(kMaxMessages) + " can be");
  }
  for (const Json& message : *given) {
    const std::string name = item("messages", request.messages.size());
    JsonFields inner(message, name + ".");
    ChatMessage& read = request.messages.emplace_back();
    inner.require("role");
    inner.require("content");
    inner.choice("role", read.role, {"system", "user", "assistant", "tool"});
    inner.text("content", read.content);
    const std::optional<Error> error = inner.finish();
    if (error) return fields.fail(error->field, error->message);
  }
}

void read_filters(JsonFields& fields, SamplingOptions& o) {
  fields.number("temp", o.temperature);
  fields.integer("top_k", o.top_k, -1, kMaxInt32);
  fields.number("top_p", o.top_p);
  fields.number("min_p", o.min_p);
  fields.number("typical", o.typical_p);
  fields.number("top_n_sigma", o.top_n_sigma);
  fields.number("xtc_probability", o.xtc_probability);
  fields.number("xtc_threshold", o.xtc_threshold);
  fields.number("dynatemp_range", o.dynatemp_range);
  fields.number("dynatemp_exp", o.dynatemp_exponent);
  fields.integer("mirostat", o.mirostat, 0, 2);
  fields.number("mirostat_ent", o.mirostat_tau);
  fields.number("mirostat_lr", o.mirostat_eta);
}

void read_penalties(JsonFields& fields, SamplingOptions& o) {
  fields.integer("repeat_last_n", o.repeat_last_n, 0, SamplingOptions::kMaxHistory);
  fields.number("repeat_penalty", o.repeat_penalty);
  fields.number("frequency_penalty", o.frequency_penalty);
  fields.number("presence_penalty", o.presence_penalty);
  fields.number("dry_multiplier", o.dry_multiplier);
  fields.number("dry_base", o.dry_base);
  fields.integer("dry_allowed_length", o.dry_allowed_length, 0, kMaxInt32);
  fields.integer("dry_penalty_last_n", o.dry_penalty_last_n, 0, SamplingOptions::kMaxHistory);
  fields.texts("dry_sequence_breaker", o.dry_sequence_breakers);
}

// A bias, or false for "never".
std::optional<float> as_bias(const Json& value) {
  if (value.is_boolean() && !value.get<bool>()) return -INFINITY;
  if (!value.is_number()) return {};
  const double number = value.get<double>();
  if (!(std::fabs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) return {};
  return static_cast<float>(number);
}

std::optional<Token> as_token_key(const std::string& key) {
  if (key.empty() || key.size() > 10) return {};
  std::int64_t id = 0;
  for (const char c : key) {
    if (c < '0' || c > '9') return {};
    id = id * 10 + (c - '0');
  }
  if (id > kMaxInt32) return {};
  return static_cast<Token>(id);
}

void read_logit_bias(JsonFields& fields, SamplingOptions& o) {
  const Json* given = fields.any("logit_bias");
  if (given == nullptr) return;
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
    const bool two = pair.is_array() && pair.size() == 2;
    const std::optional<Token> id = two ? as_token(pair[0]) : std::nullopt;
    const std::optional<float> bias = two ? as_bias(pair[1]) : std::nullopt;
    if (!id || !bias) return fields.refuse(item("logit_bias", o.logit_bias.size()), pair, kPair);
    o.logit_bias.push_back({.token = *id, .bias = *bias});
  }
}

void read_constraint(JsonFields& fields, SamplingOptions& o) {
  fields.text("grammar", o.grammar);
  const Json* schema = fields.any("json_schema");
  if (schema != nullptr) {
    if (!schema->is_object() && !schema->is_string()) {
      return fields.refuse("json_schema", *schema, "a schema (an object), or its text");
    }
    o.json_schema = schema->is_object() ? json::encode(*schema) : schema->get<std::string>();
    if (o.json_schema.empty()) fields.refuse("json_schema", *schema, "a schema");
  }
  fields.texts("grammar_trigger", o.grammar_triggers);
}

void read_stop(JsonFields& fields, CompletionRequest& request) {
  fields.texts("stop", request.stop);
  if (request.stop.size() > kMaxStops) {
    fields.fail("stop", "stop holds " + std::to_string(request.stop.size()) + " texts, at most " +
                            std::to_string(kMaxStops) + " can be");
  }
  for (std::size_t i = 0; i < request.stop.size() && fields.ok(); ++i) {
    const std::size_t bytes = request.stop[i].size();
    if (bytes >= 1 && bytes <= kMaxStopBytes) continue;
    fields.fail(item("stop", i), item("stop", i) + " has " + std::to_string(bytes) +
                                     " bytes, but must have 1 to " + std::to_string(kMaxStopBytes));
  }
}

void read_output(JsonFields& fields, CompletionRequest& request) {
  fields.integer("max_tokens", request.max_tokens, -1, kMaxInt32);
  read_stop(fields, request);
  fields.integer("logprobs", request.logprobs, -1, 20);
  std::int64_t seed = -1;
  fields.integer("seed", seed, -1, std::numeric_limits<std::int64_t>::max());
  if (seed >= 0) request.seed = static_cast<std::uint64_t>(seed);
  fields.integer("timeout_ms", request.timeout_ms, 0, kMaxTimeoutMs);
  std::int32_t keep = -2;
  fields.integer("shift_keep", keep, -1, kMaxInt32);
  if (keep != -2) request.shift_keep = keep;
}

void read_width(JsonFields& fields, CompletionRequest& request) {
  const Json* given = fields.any("width");
  if (given == nullptr) return;
  if (is_text(*given, "auto")) {
    request.width = kAutoWidth;
    return;
  }
  const std::optional<std::int64_t> width = as_integer(*given);
  if (!width || *width < 1 || *width > kMaxWidth) {
    return fields.refuse("width", *given,
                         "'auto', or a whole number from 1 (no speculation) to 64");
  }
  request.width = static_cast<std::int32_t>(*width);
}

// How to speculate: beside "speculative" or inside it.
void read_shape(JsonFields& fields, CompletionRequest& request) {
  std::string rule;
  fields.choice("rule", rule, {"coupled", "rejection", "block"});
  if (rule == "coupled") request.rule = AcceptanceRule::kCoupled;
  if (rule == "rejection") request.rule = AcceptanceRule::kRejection;
  if (rule == "block") request.rule = AcceptanceRule::kBlock;
  read_width(fields, request);
  fields.integer("branches", request.draft.branches, 1, kMaxWidth);
  fields.number("split_p", request.draft.split_p);
  fields.number("draft_p_min", request.draft.p_min);
  fields.number("draft_p_ratio", request.draft.p_ratio);
  std::string name;
  fields.text("namespace", name);
  if (fields.any("namespace") != nullptr) request.name_space = std::move(name);
}

constexpr std::size_t kMaxPlanBytes = 256;

// "a/b,c" (draft/base/drafter_plan.h); whether one is there is the runtime's to say, in the result.
// `spelled`: the name in messages.
void read_plan(JsonFields& fields, const std::string& name, const std::string& spelled,
               const std::string& expression, CompletionRequest& request) {
  if (expression.size() > kMaxPlanBytes) {
    return fields.refuse(name, Json(expression), "at most 256 bytes");
  }
  Result<DrafterPlan> plan = parse_drafter_plan(expression, kDrafterNames, spelled);
  if (!plan.ok()) return fields.fail(name, plan.status().message());
  request.drafters = std::move(*plan);
}

void read_drafters(JsonFields& fields, CompletionRequest& request) {
  std::vector<std::string> chains;
  fields.texts("drafters", chains);
  if (!fields.ok() || fields.any("drafters") == nullptr) return;
  if (chains.empty()) {
    return fields.refuse("drafters", *fields.any("drafters"),
                         "an array of at least one drafter's name; without it, all that are there "
                         "draft");
  }
  std::string expression;
  for (const std::string& chain : chains) expression += (expression.empty() ? "" : ",") + chain;
  read_plan(fields, "drafters", "speculative.drafters", expression, request);
}

void read_speculation(JsonFields& fields, CompletionRequest& request, const Json& params) {
  read_shape(fields, request);
  std::string drafter = "auto";
  fields.text("drafter", drafter);
  if (drafter == "none") request.speculative = false;
  if (fields.ok() && drafter != "none" && drafter != "auto") {
    read_plan(fields, "drafter", "drafter", drafter, request);
  }
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
  read_shape(inner, request);
  read_drafters(inner, request);
  request.speculative = true;
  for (const std::string& name : inner.names()) {
    const std::string outside = name == "drafters" ? "drafter" : name;
    if (given->contains(name) && params.contains(outside)) {
      inner.fail(name, outside + " and speculative." + name + " are both there; give one of them");
    }
  }
  const std::optional<Error> error = inner.finish();
  if (error) fields.fail(error->field, error->message);
}

bool gives_branches(const Json& params) {
  if (!params.is_object()) return false;
  const Json::const_iterator nested = params.find("speculative");
  return params.contains("branches") ||
         (nested != params.end() && nested->is_object() && nested->contains("branches"));
}

// What goes through the lower layers' own checks, and what only goes together here.
std::optional<Error> check(const CompletionRequest& request, const Json& params) {
  const Status sampling = validate(request.sampling);
  if (!sampling.ok()) return error_of(sampling, params);
  const Status shape = validate(request.draft);
  if (!shape.ok()) return error_of(shape, params);
  if (request.rule == AcceptanceRule::kBlock && request.draft.branches > 1) {
    return error_of(invalid_argument("--branches is " + std::to_string(request.draft.branches) +
                                     ", but must be 1 with the rule block, which judges chains"),
                    params);
  }
  const bool both = params.contains("prompt") && params.contains("messages");
  if (both || (request.messages.empty() && !params.contains("prompt"))) {
    return Error{.code = StatusCode::kInvalidArgument,
                 .message = both ? "prompt and messages are both there; give one of them"
                                 : "prompt is missing; give it, or messages",
                 .field = "prompt"};
  }
  return {};
}

// Reads every field there is, in the order in which errors are told.
void read_all(JsonFields& fields, CompletionRequest& request, const Json& params) {
  read_prompt(fields, request);
  read_messages(fields, request);
  read_output(fields, request);
  read_filters(fields, request.sampling);
  read_penalties(fields, request.sampling);
  read_logit_bias(fields, request.sampling);
  fields.boolean("ignore_eos", request.sampling.ignore_eos);
  read_constraint(fields, request.sampling);
  read_speculation(fields, request, params);
}

constexpr Parameter kParameters[] = {
    {"prompt", "string | array", "the text to go on from, or strings and token ids mixed"},
    {"messages", "array", "a conversation, [{\"role\",\"content\"}], instead of a prompt"},
    {"max_tokens", "integer", "tokens to generate at most; -1 (default): to the end"},
    {"stop", "string | array", "end before one of these texts would be said, at most 64"},
    {"logprobs", "integer", "likeliest tokens to report with each, 0 to 20; -1 (default): none"},
    {"seed", "integer", "of the noise; the same gives the same text; -1 (default): random"},
    {"timeout_ms", "integer", "end after so long with what there is; 0 (default): never"},
    {"shift_keep", "integer",
     "when the context is full, drop half of what lies behind so many tokens and go on; -1: "
     "behind the prompt; without it, a full context ends the text"},
    {"temp", "number", "temperature, at least 0; 0: greedy; default 0.8"},
    {"top_k", "integer", "keep so many likeliest tokens; 0 or -1: all; default 40"},
    {"top_p", "number", "keep the likeliest whose chances sum to this, above 0 to 1; default 0.95"},
    {"min_p", "number", "keep those at least so many times the likeliest's chance; default 0.05"},
    {"typical", "number", "locally typical sampling, above 0 to 1; default 1 (off)"},
    {"top_n_sigma", "number", "keep logits within so many deviations; default -1 (off)"},
    {"xtc_probability", "number", "chance to leave likely tokens out, 0 (default) to 1"},
    {"xtc_threshold", "number", "what is likely for it, 0 to 1; default 0.1"},
    {"dynatemp_range", "number", "temperature by entropy, temp less and plus this; default 0"},
    {"dynatemp_exp", "number", "its exponent, at least 0; default 1"},
    {"mirostat", "integer", "1 or 2: keep the text's surprise near mirostat_ent; default 0"},
    {"mirostat_ent", "number", "target surprise in bits; default 5"},
    {"mirostat_lr", "number", "learning rate; default 0.1"},
    {"repeat_last_n", "integer", "last tokens that penalties look at; default 64"},
    {"repeat_penalty", "number", "above 0; default 1 (off)"},
    {"frequency_penalty", "number", "per occurrence; default 0"},
    {"presence_penalty", "number", "once; default 0"},
    {"dry_multiplier", "number", "DRY's strength; default 0 (off)"},
    {"dry_base", "number", "DRY's growth, at least 1; default 1.75"},
    {"dry_allowed_length", "integer", "length of repetitions that is allowed; default 2"},
    {"dry_penalty_last_n", "integer", "last tokens that DRY looks at; default 64"},
    {"dry_sequence_breaker", "string | array", "what ends a repetition; default \\n : \" *"},
    {"logit_bias", "object | array", "{\"id\": bias} or [[id, bias]]; false: never"},
    {"ignore_eos", "boolean", "never say what ends the text; default false"},
    {"grammar", "string", "GBNF with a rule root that the text keeps to"},
    {"json_schema", "object | string", "a schema that the text keeps to"},
    {"grammar_trigger", "string | array",
     "the grammar binds from where the text says one of these"},
    {"rule", "string", "coupled (default), rejection or block"},
    {"width", "integer | string",
     "tokens of a target step at most, 1 to 64, or auto (default): as many as pay (4 with the "
     "rules rejection and block)"},
    {"branches", "integer",
     "leaves of each drafter's guesses at most, 1 (a chain) to 64; default 1 for the draft model, "
     "else width; with width auto 3 and 8"},
    {"split_p", "number", "branch where the next likeliest has this chance; default 0.1"},
    {"draft_p_min", "number", "draft on only where the likeliest has this chance; default 0"},
    {"draft_p_ratio", "number", "and is so many times as likely as the next; default 0"},
    {"drafter", "string",
     "auto (default: the draft model, suffix, and ngram-cache where it has files; with the rules "
     "rejection and block the draft model), none, or names of draft-model, suffix, ngram-cache and "
     "recycle: a,b merges, a/b falls back"},
    {"speculative", "boolean | object",
     "true (default), false, or {drafters, rule, width, branches, split_p, draft_p_min, "
     "draft_p_ratio, namespace}"},
    {"namespace", "string",
     "whose request it is, 1 to 64 bytes: where the operator has texts remembered, the drafter "
     "suffix looks at those of the same namespace, and the answer joins them; default: nobody's"},
};

}  // namespace

Answer<CompletionRequest> read_completion(const Json& params) {
  CompletionRequest request;
  JsonFields fields(params);
  read_all(fields, request, params);
  std::optional<Error> error = fields.finish();
  if (!gives_branches(params)) {
    set_default_branches(request.draft, request.rule, request.width);
  }
  if (!error) error = check(request, params);
  if (error) return *error;
  return request;
}

std::span<const Parameter> completion_parameters() { return kParameters; }

}  // namespace outrider::api
