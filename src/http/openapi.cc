#include "http/openapi.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "api/completion_params.h"
#include "http/answer_schemas.h"
#include "http/completion/completion_task.h"
#include "http/endpoints.h"
#include "http/exchange/error_form.h"
#include "http/exchange/error_reply.h"

namespace outrider::http {
namespace {

using api::Parameter;
using json::Json;

// "string | array" as schemas of which any may hold, each with the parameter's limits.
Json type_schema(const Parameter& parameter, std::string_view type) {
  Json schema = {{"type", std::string(type)}};
  const bool number = type == "integer" || type == "number";
  const Range& range = parameter.range;
  if (number && range.min != -kNoLimit) {
    schema[range.above_min ? "exclusiveMinimum" : "minimum"] = range.min;
  }
  if (number && range.max != kNoLimit) schema["maximum"] = range.max;
  if (type == "string") {
    for (const std::string_view& choice : parameter.choices) {
      schema["enum"].push_back(std::string(choice));
    }
  }
  if (type == "array" && parameter.most > 0) schema["maxItems"] = parameter.most;
  return schema;
}

Json schema_of(const Parameter& parameter) {
  Json any = Json::array();
  std::string_view types = parameter.type;
  while (!types.empty()) {
    const std::size_t end = std::min(types.find(" | "), types.size());
    any.push_back(type_schema(parameter, types.substr(0, end)));
    types.remove_prefix(std::min(end + 3, types.size()));
  }
  Json schema = any.size() == 1 ? std::move(any[0]) : Json{{"anyOf", std::move(any)}};
  schema["description"] = parameter.help;
  return schema;
}

// What the table's one line for a field cannot say.
Json with_items(const Endpoint& endpoint, const std::string& name, Json schema) {
  if (name == "messages") {
    const bool anthropic = error_form_at(endpoint.path) == ErrorForm::kAnthropic;
    schema["items"] = schema_reference(anthropic ? "AnthropicMessage" : "ChatMessage");
  }
  return schema;
}

Json body_schema(const Endpoint& endpoint) {
  if (endpoint.body == nullptr) return schema_reference(endpoint.body_schema);
  Json properties = Json::object();
  for (const Parameter& parameter : endpoint.body()) {
    properties[parameter.name] = with_items(endpoint, parameter.name, schema_of(parameter));
  }
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  for (const std::string_view name : endpoint.required) {
    if (!name.empty()) schema["required"].push_back(std::string(name));
  }
  return schema;
}

// `name`, or where clients of two APIs ask the endpoint, one of both.
Json either_schema(const Endpoint& endpoint, std::string_view name, std::string_view anthropic) {
  if (endpoint.anthropic_answers.empty()) return schema_reference(name);
  return {{"anyOf", Json::array({schema_reference(name), schema_reference(anthropic)})}};
}

std::string_view error_schema(const Endpoint& endpoint) {
  switch (error_form_at(endpoint.path)) {
    case ErrorForm::kOpenAi:
      return "Error";
    case ErrorForm::kAnthropic:
      return "AnthropicError";
    case ErrorForm::kLlama:
      break;
  }
  return "LlamaError";
}

Json answers_json(const Endpoint& endpoint) {
  Json ok = {{"description", std::string(endpoint.summary)}};
  Json& content = ok["content"][std::string(endpoint.content_type)];
  content = Json::object();
  if (!endpoint.answers.empty()) {
    content["schema"] = either_schema(endpoint, endpoint.answers, endpoint.anthropic_answers);
  }
  if (endpoint.streams) ok["content"]["text/event-stream"] = Json::object();
  Json refused = {{"description", "what is wrong, and with which field"}};
  refused["content"]["application/json"]["schema"] =
      either_schema(endpoint, error_schema(endpoint), "AnthropicError");
  Json answers = {{"200", std::move(ok)}, {"default", std::move(refused)}};
  if (endpoint.silent) answers["204"]["description"] = "nothing: no request had an id";
  return answers;
}

Json parameters_json(const Endpoint& endpoint) {
  const auto parameter = [](std::string_view name, const char* in, bool required) -> Json {
    return {{"name", std::string(name)},
            {"in", in},
            {"required", required},
            {"schema", {{"type", "string"}}}};
  };
  Json list = Json::array();
  const std::string_view name = name_in_path(endpoint);
  if (!name.empty()) list.push_back(parameter(name, "path", true));
  if (!endpoint.anthropic_answers.empty()) {
    list.push_back(parameter("anthropic-version", "header", false));
  }
  return list;
}

Json operation(const Endpoint& endpoint) {
  Json described = {{"summary", std::string(endpoint.summary)},
                    {"responses", answers_json(endpoint)}};
  if (endpoint.method == "POST") {
    described["requestBody"]["required"] = true;
    described["requestBody"]["content"]["application/json"]["schema"] = body_schema(endpoint);
  }
  Json parameters = parameters_json(endpoint);
  if (!parameters.empty()) described["parameters"] = std::move(parameters);
  if (endpoint.open) described["security"] = Json::array();
  return described;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// What OpenAI's bodies have beside a request's fields: openai_body.h.
std::vector<Parameter> wishes() {
  return {{"model", "string", "which model; without it, the default one"},
          {"n", "integer", "answers, each with a seed of its own", Range{1, kMaxAnswers}},
          {"stream", "boolean", "send the answer while it is made, as server-sent events"},
          {"stream_options", "object", "{\"include_usage\": true}: a last event with the counts"},
          {"response_format", "object",
           "{\"type\": text, json_object, or json_schema with \"json_schema\": {\"schema\"}}"},
          {"temperature", "number", "as temp"},
          {"max_completion_tokens", "integer", "as max_tokens"},
          {"samplers", "string | array", "llama.cpp's samplers by name: the others are off"},
          {"token_sources", "boolean", "list the tokens, and who guessed them"},
          {"return_progress", "boolean", "send events that say how much of the prompt is read"},
          {"timings_per_token", "boolean", "tell the timings so far in each event"}};
}

// A request's fields but `without`, and OpenAI's.
std::vector<Parameter> parameters_without(std::string_view without) {
  std::vector<Parameter> list = wishes();
  for (const Parameter& parameter : api::completion_parameters()) {
    if (parameter.name != without) list.push_back(parameter);
  }
  return list;
}

// An API's own fields, and those that say how it is to be answered.
std::vector<Parameter> with_settings(std::vector<Parameter> list) {
  const CompletionRequest request;
  visit_settings(request, [&list](const auto& table, const auto& /*object*/) {
    for (Parameter& parameter : api::parameters_of(table)) list.push_back(std::move(parameter));
  });
  return list;
}

}  // namespace

std::vector<Parameter> chat_parameters() {
  std::vector<Parameter> list = parameters_without("prompt");
  for (Parameter& parameter : list) {  // unify_logprobs()
    if (parameter.name != "logprobs") continue;
    const Range range = parameter.range;
    parameter.type = "boolean | integer";
    list.push_back({"top_logprobs", "integer", "so many of the likeliest, too", {0, range.max}});
    break;
  }
  list.push_back({"reasoning_effort", "string", "how hard the model is to think, none to max"});
  list.push_back({"reasoning_format", "string",
                  "auto or deepseek: apart from the content; none: a part of it, as it is said"});
  return list;
}
std::vector<Parameter> text_parameters() { return parameters_without("messages"); }

std::vector<Parameter> responses_parameters() {
  return with_settings({
      {"model", "string", "which model; without it, the default one"},
      {"input", "string | array", "a text, or the items of a conversation"},
      {"instructions", "string", "a system message in front of it"},
      {"tools", "array",
       "what the model may call, [{\"type\":\"function\",\"name\",\"parameters\"}]"},
      {"tool_choice", "string | object", "auto, none, required, or which tools"},
      {"parallel_tool_calls", "boolean", "one answer may have several calls"},
      {"text", "object", "{\"format\": {\"type\": text, json_object or json_schema, \"schema\"}}"},
      {"reasoning", "object", "{\"effort\": none to max, \"summary\": auto, concise or detailed}"},
      {"max_output_tokens", "integer", "as max_tokens"},
      {"temperature", "number", "as temp"},
      {"stream", "boolean", "send the answer while it is made, as server-sent events"},
  });
}

std::vector<Parameter> messages_parameters() {
  return with_settings({
      {"model", "string", "which model"},
      {"system", "string | array", "a text, or blocks of text"},
      {"messages", "array", "the conversation, [{\"role\",\"content\": a text or blocks}]"},
      {"tools", "array", "what the model may call, [{\"name\",\"description\",\"input_schema\"}]"},
      {"tool_choice", "object", "{\"type\": auto, any, tool or none, \"name\"}"},
      {"thinking", "object", "{\"type\": enabled, adaptive or disabled}"},
      {"output_config", "object",
       "{\"format\": {\"type\":\"json_schema\",\"schema\"}, \"effort\"}"},
      {"stop_sequences", "array", "as stop"},
      {"temperature", "number", "as temp"},
      {"stream", "boolean", "send the answer while it is made, as server-sent events"},
  });
}

Json openapi_document(std::span<const Endpoint> endpoints) {
  Json document = {{"openapi", "3.1.0"},
                   {"info", {{"title", "Outrider"}, {"version", OUTRIDER_VERSION}}}};
  document["paths"] = Json::object();
  for (const Endpoint& endpoint : endpoints) {
    document["paths"][std::string(endpoint.path)][lower(endpoint.method)] = operation(endpoint);
  }
  Json& components = document["components"];
  components["securitySchemes"]["key"] = {{"type", "http"}, {"scheme", "bearer"}};
  components["schemas"] = answer_schemas();
  document["security"] = Json::array({Json{{"key", Json::array()}}, Json::object()});
  return document;
}

HttpReply openapi(ServerState& /*server*/, const HttpRequest& /*request*/) {
  return json_reply(openapi_document(endpoints()));
}

}  // namespace outrider::http
