#include "http/openai/openai_body.h"

#include <limits>

#include "api/chat_params.h"
#include "http/completion/completion_task.h"
#include "http/completion/conversation_body.h"
#include "http/openai/samplers.h"

namespace outrider::http {
namespace {

using json::Json;

constexpr api::Dialect::Name kNames[] = {
    {.ours = "temp", .theirs = "temperature"},
    {.ours = "max_tokens", .theirs = "max_completion_tokens"},
    {.ours = "max_tokens", .theirs = "n_predict"},
    {.ours = "logprobs", .theirs = "top_logprobs"},
    {.ours = "logprobs", .theirs = "n_probs"},
    {.ours = "n", .theirs = "n_cmpl"},
    {.ours = "typical", .theirs = "typical_p"},
    {.ours = "typical", .theirs = "typ_p"},
    {.ours = "dynatemp_exp", .theirs = "dynatemp_exponent"},
    {.ours = "mirostat_ent", .theirs = "mirostat_tau"},
    {.ours = "mirostat_lr", .theirs = "mirostat_eta"},
    {.ours = "dry_sequence_breaker", .theirs = "dry_sequence_breakers"},
};

// Who asks, what is stored and billed; where llama-server is to compute it, how long its prompt may
// take, and what of the answer it is to tell.
constexpr std::string_view kIgnored[] = {"user",
                                         "store",
                                         "metadata",
                                         "service_tier",
                                         "prediction",
                                         "verbosity",
                                         "safety_identifier",
                                         "prompt_cache_options",
                                         "prompt_cache_retention",
                                         "prompt_cache_key",
                                         "cache_prompt",
                                         "id_slot",
                                         "n_cache_reuse",
                                         "t_max_prompt_ms",
                                         "response_fields",
                                         "backend_sampling",
                                         "reasoning_control",
                                         "verbose"};

void read_modalities(api::JsonFields& fields) {
  std::vector<std::string> modalities;
  fields.texts("modalities", modalities);
  for (const std::string& one : modalities) {
    if (one == "text") continue;
    return fields.fail("modalities",
                       "modalities has " + api::shown(Json(one)) + ", but answers are text here");
  }
}

// As llama-server's: with none the reasoning stays in the content, as it is said.
void read_reasoning_format(api::JsonFields& fields, CompletionRequest& request) {
  static constexpr std::string_view kFormats[] = {"none", "auto", "deepseek"};
  std::string format;
  fields.choice("reasoning_format", format, kFormats);
  if (!format.empty()) request.chat.reasoning_in_content = format == "none";
}

// llama-server ends the reasoning by force when it has used up its budget. Here the template
// switches it off, which is what 0 asks for, or nothing does. Whether it asks for that.
bool read_reasoning_budget(api::JsonFields& fields) {
  bool none = false;
  for (const char* name : {"reasoning_budget_tokens", "thinking_budget_tokens"}) {
    std::int64_t budget = -1;
    fields.integer(name, budget, -1, std::numeric_limits<std::int64_t>::max());
    none = none || budget == 0;
    if (budget <= 0) continue;
    fields.fail(name, std::string(name) + " is " + std::to_string(budget) +
                          ", but only -1, no limit, and 0, no thinking where the model's template "
                          "can switch it off, are done here");
  }
  return none;
}

// true, false, or which part is to go on.
void read_continued_part(api::JsonFields& fields, bool& continues, ChatOptions& chat) {
  const Json* given = fields.any("continue_final_message");
  if (given == nullptr) return;
  if (given->is_boolean()) {
    continues = given->get<bool>();
  } else if (api::is_text(*given, "content")) {
    continues = true;
    chat.continued_part = ContinuedPart::kContent;
  } else if (api::is_text(*given, "reasoning_content")) {
    continues = true;
    chat.continued_part = ContinuedPart::kReasoning;
  } else {
    fields.refuse("continue_final_message", *given,
                  "true, false, \"content\" or \"reasoning_content\"");
  }
}

// A schema that says nothing would let a value be null; beside "json_object" it is about an object.
// One that says anything is the client's word, as with llama-server, whose tests ask for a list so.
Json schema_of_object(Json schema) {
  if (schema.is_object() && schema.empty()) schema["type"] = "object";
  return schema;
}

}  // namespace

const api::Dialect& openai_dialect() {
  static const api::Dialect kDialect{.names = kNames, .ignored = kIgnored, .null_is_absent = true};
  return kDialect;
}

void read_wishes(api::JsonFields& fields, AnswerWishes& wishes) {
  fields.text("model", wishes.model);
  fields.integer("n", wishes.n, 1, kMaxAnswers);
  fields.boolean("stream", wishes.stream);
  fields.boolean("token_sources", wishes.token_sources);
  fields.boolean("return_progress", wishes.return_progress);
  fields.boolean("timings_per_token", wishes.timings_per_token);
  fields.integer("sse_ping_interval", wishes.ping_s, -1, kMostPingSeconds);
  read_modalities(fields);
  const Json* options = fields.any("stream_options");
  if (options == nullptr) return;
  static const std::string_view kIgnoredOptions[] = {"include_obfuscation"};
  static const api::Dialect kDialect{
      .names = {}, .ignored = kIgnoredOptions, .null_is_absent = true};
  api::JsonFields inner(*options, "stream_options.", &kDialect);
  inner.boolean("include_usage", wishes.include_usage);
  fields.take(inner.finish());
}

void set_wishes(const AnswerWishes& wishes, CompletionTask& task) {
  task.model = wishes.model;
  task.stream = wishes.stream;
  task.with_given = wishes.with_given;
  task.ping_s = wishes.ping_s;
}

void read_continuation(api::JsonFields& fields, AnswerWishes& wishes, CompletionRequest& request) {
  bool new_answer = true;
  fields.boolean("add_generation_prompt", new_answer);
  const std::vector<ChatMessage>& messages = request.messages;
  const auto is_assistants = [&messages](std::size_t from_end) {
    return messages.size() >= from_end &&
           messages[messages.size() - from_end].role == "assistant" &&
           messages[messages.size() - from_end].tool_calls.empty();
  };
  const bool can = is_assistants(1);
  bool continues = can;
  read_continued_part(fields, continues, request.chat);
  bool echo = false;
  fields.boolean("echo", echo);
  if (!fields.ok()) return;
  const auto asked_for = [&fields](const char* name, bool value) {
    return value && fields.any(name) != nullptr;
  };
  if (asked_for("add_generation_prompt", new_answer) &&
      asked_for("continue_final_message", continues)) {
    return fields.fail("continue_final_message",
                       "continue_final_message and add_generation_prompt are both asked for, but "
                       "an answer either goes on or begins; give one of them");
  }
  if (continues && !can) {
    return fields.fail("continue_final_message",
                       "continue_final_message asks for it, but the last message is not the "
                       "assistant's, or has tool calls");
  }
  if (!new_answer && !continues) {
    return fields.fail("add_generation_prompt",
                       "add_generation_prompt is false, but the last message is not the "
                       "assistant's to go on with: there would be nothing to answer with");
  }
  if (continues && is_assistants(2)) {
    return fields.fail("messages",
                       "messages ends with two of the assistant's; make them one, which goes on");
  }
  request.chat.continue_last = continues;
  const bool asked = fields.any("continue_final_message") != nullptr;
  wishes.with_given = continues && (!wishes.stream || !asked || echo);
}

std::string read_reasoning_effort(api::JsonFields& fields) {
  const std::string given = api::read_effort(fields, "reasoning_effort");
  const std::string effort = read_reasoning_budget(fields) ? "none" : given;
  const Json* reasoning = fields.any("reasoning");
  if (given.empty() || reasoning == nullptr || !reasoning->is_object()) return effort;
  const Json::const_iterator other = reasoning->find("effort");
  const bool differs =
      other != reasoning->end() && !other->is_null() && !api::is_text(*other, given);
  if (differs) {
    fields.fail("reasoning_effort",
                "reasoning_effort and reasoning.effort differ; give one of them");
  }
  return effort;
}

void read_response_format(api::JsonFields& fields, CompletionRequest& request) {
  const Json* format = fields.any("response_format");
  if (format == nullptr) return;
  api::JsonFields inner(*format, "response_format.", &openai_dialect());
  static constexpr std::string_view kTypes[] = {"text", "json_object", "json_schema"};
  std::string type;
  inner.require("type");
  inner.choice("type", type, kTypes);
  const Json* given = inner.any("json_schema");
  // llama-server also takes the schema of a json_object beside the type.
  const Json* beside = inner.any("schema");
  if (type == "json_schema" && given == nullptr) inner.require("json_schema");
  const Json* schema = nullptr;
  bool strict = false;  // as OpenAI has it
  if (given != nullptr && type == "json_schema") {
    static const std::string_view kIgnoredFields[] = {"name", "description"};
    static const api::Dialect kDialect{
        .names = {}, .ignored = kIgnoredFields, .null_is_absent = true};
    api::JsonFields of_schema(*given, "response_format.json_schema.", &kDialect);
    of_schema.require("schema");
    schema = of_schema.any("schema");
    of_schema.boolean("strict", strict);
    inner.take(of_schema.finish());
  }
  fields.take(inner.finish());
  if (!fields.ok()) return;
  const Json of_object = beside != nullptr ? schema_of_object(*beside) : Json();
  if (type == "json_object" && beside != nullptr) schema = &of_object;
  if (type != "text") keep_to_schema(fields, "response_format", schema, strict, request);
}

void read_openai_fields(api::JsonFields& fields, AnswerWishes& wishes, CompletionRequest& request) {
  read_wishes(fields, wishes);
  api::read_completion_fields(fields, request);
  read_samplers(fields, request.sampling);
  read_reasoning_format(fields, request);
  (void)read_reasoning_budget(fields);  // a chat has read it with the effort
  refuse_adapters(fields);
  read_response_format(fields, request);
  if (!request.messages.empty()) read_continuation(fields, wishes, request);
}

void refuse_adapters(api::JsonFields& fields) {
  const Json* lora = fields.any("lora");
  if (lora == nullptr || (lora->is_array() && lora->empty())) return;
  fields.fail("lora",
              "lora is not supported: a model is served as its file is; merge the adapter into the "
              "file (llama.cpp's llama-export-lora)");
}

void unify_logprobs(Json& body) {
  if (!body.is_object() || !body.contains("logprobs") || !body["logprobs"].is_boolean()) return;
  const bool wanted = body["logprobs"].get<bool>();
  body.erase("logprobs");
  if (!wanted) {
    body.erase("top_logprobs");
  } else if (!body.contains("top_logprobs") || body["top_logprobs"].is_null()) {
    body["logprobs"] = 0;
  }
}

}  // namespace outrider::http
