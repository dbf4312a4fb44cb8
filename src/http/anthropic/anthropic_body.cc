#include "http/anthropic/anthropic_body.h"

#include <optional>
#include <utility>

#include "api/chat_params.h"
#include "api/completion_params.h"
#include "http/anthropic/anthropic_form.h"
#include "http/anthropic/anthropic_messages.h"
#include "http/completion/conversation_body.h"
#include "http/endpoint/acquire.h"
#include "http/endpoint/endpoint.h"
#include "http/endpoint/server_state.h"
#include "http/exchange/error_reply.h"
#include "serve/prompt.h"

namespace outrider::http {
namespace {

using json::Json;

constexpr api::Dialect::Name kNames[] = {
    {.ours = "temp", .theirs = "temperature"},
    {.ours = "stop", .theirs = "stop_sequences"},
};

// Who asks, what is cached and billed.
constexpr std::string_view kIgnored[] = {"metadata",      "service_tier", "cache_control",
                                         "inference_geo", "speed",        "diagnostics"};
constexpr api::Dialect kDialect{.names = kNames, .ignored = kIgnored, .null_is_absent = true};

constexpr std::string_view kIgnoredOfTool[] = {"cache_control", "input_examples", "defer_loading",
                                               "eager_input_streaming", "allowed_callers"};
constexpr api::Dialect kToolDialect{.names = {}, .ignored = kIgnoredOfTool, .null_is_absent = true};

void read_tool(api::JsonFields& fields, const Json& tool, const std::string& place,
               ChatTool& read) {
  api::JsonFields inner(tool, place + ".", &kToolDialect);
  std::string type;
  inner.text("type", type);
  inner.require("name");
  inner.text("name", read.name);
  inner.text("description", read.description);
  inner.require("input_schema");
  read_schema(inner, "input_schema", read.parameters);
  inner.boolean("strict", read.strict);
  fields.take(inner.finish());
}

void read_choice_of_tool(api::JsonFields& fields, CompletionRequest& request) {
  const Json* given = fields.any("tool_choice");
  if (given == nullptr) return;
  static constexpr std::string_view kTypes[] = {"auto", "any", "tool", "none"};
  api::JsonFields inner(*given, "tool_choice.", &kDialect);
  std::string type;
  std::string name;
  bool one_at_a_time = false;
  inner.require("type");
  inner.choice("type", type, kTypes);
  if (type == "tool") inner.require("name");
  inner.text("name", name);
  inner.boolean("disable_parallel_tool_use", one_at_a_time);
  fields.take(inner.finish());
  if (!fields.ok()) return;
  ChatOptions& chat = request.chat;
  if (one_at_a_time) chat.parallel_tool_calls = false;
  if (type == "none") chat.tool_choice = ToolChoice::kNone;
  if (type == "any") chat.tool_choice = ToolChoice::kRequired;
  if (type == "tool") api::require_tool(fields, "tool_choice.name", name, request);
}

// Returns whether the answer is to show what the model thinks. Nothing said is as good as disabled:
// clients that did not ask for it do not expect such blocks, nor that they take up max_tokens.
bool read_thinking(api::JsonFields& fields, CompletionRequest& request,
                   std::vector<std::string>& ignored) {
  const Json* given = fields.any("thinking");
  if (given == nullptr) {
    request.chat.reasoning = false;
    return false;
  }
  static constexpr std::string_view kIgnoredOfThinking[] = {"budget_tokens"};
  static constexpr api::Dialect kThinkingDialect{
      .names = {}, .ignored = kIgnoredOfThinking, .null_is_absent = true};
  static constexpr std::string_view kTypes[] = {"enabled", "adaptive", "between_tools", "disabled"};
  static constexpr std::string_view kDisplays[] = {"summarized", "omitted"};
  api::JsonFields inner(*given, "thinking.", &kThinkingDialect);
  std::string type;
  std::string display = "summarized";
  inner.require("type");
  inner.choice("type", type, kTypes);
  inner.choice("display", display, kDisplays);
  if (given->is_object() && given->contains("budget_tokens")) {
    ignored.emplace_back("thinking.budget_tokens");
  }
  fields.take(inner.finish());
  request.chat.reasoning = type != "disabled";
  return request.chat.reasoning && display != "omitted";
}

void read_output_config(api::JsonFields& fields, CompletionRequest& request) {
  const Json* given = fields.any("output_config");
  if (given == nullptr) return;
  static constexpr std::string_view kEfforts[] = {"low", "medium", "high", "xhigh", "max"};
  static constexpr std::string_view kTypes[] = {"json_schema"};
  api::JsonFields inner(*given, "output_config.", &kDialect);
  std::string effort;
  inner.choice("effort", effort, kEfforts);
  const Json* format = inner.any("format");
  const Json* schema = nullptr;
  if (format != nullptr) {
    api::JsonFields of_format(*format, "output_config.format.", &kDialect);
    std::string type;
    of_format.require("type");
    of_format.choice("type", type, kTypes);
    of_format.require("schema");
    schema = of_format.any("schema");
    inner.take(of_format.finish());
  }
  fields.take(inner.finish());
  // Effort is about how much is thought; "thinking" says whether.
  const bool reasoning = request.chat.reasoning;
  api::set_effort(request, effort);
  request.chat.reasoning = reasoning;
  if (schema != nullptr) {
    keep_to_schema(fields, "output_config.format", schema, /*strict=*/true, request);
  }
}

// Anthropic's tool runner asks for one by itself. It must not be passed over: the next request
// would hold the new messages only. The form of this error (error_form.cc) makes it go on without.
void refuse_thread(api::JsonFields& fields) {
  if (fields.any("thread") == nullptr) return;
  fields.fail(
      "thread",
      "thread is not supported: nothing is stored here; send the whole conversation as messages");
}

Result<CompletionTask> read_task(Json body, const ServerOptions& options, bool counted) {
  CompletionTask task;
  OUTRIDER_ASSIGN_OR_RETURN(task.ignored_tools, take_out_other_tools(body, "custom"));
  CompletionRequest request = defaults_for(body, kDialect, options.defaults);
  steady_billing_header(body);
  api::JsonFields fields(body, "", &kDialect);
  refuse_thread(fields);
  if (!counted) fields.require("max_tokens");
  read_anthropic_messages(fields, request);
  api::read_each_tool(fields, request, read_tool);
  read_choice_of_tool(fields, request);
  check_tools_left(fields, task.ignored_tools, request);
  const bool show_thinking = read_thinking(fields, request, task.ignored);
  read_context_management(fields, task.ignored);
  api::read_settings_fields(fields, request);
  read_output_config(fields, request);
  if (!options.any_model_name) fields.require("model");  // else it is not looked at
  fields.text("model", task.model);
  fields.boolean("stream", task.stream);
  OUTRIDER_RETURN_IF_ERROR(api::finish_completion(fields, body, request));
  task.form = make_anthropic_form(request.stop, show_thinking);
  task.set_requests(std::move(request), 1);
  return task;
}

}  // namespace

Result<CompletionTask> read_messages_task(Json body, const ServerOptions& options) {
  return read_task(std::move(body), options, /*counted=*/false);
}

HttpReply count_tokens(ServerState& server, const HttpRequest& request) {
  Result<Json> body = read_body(request);
  if (!body.ok()) return error_reply(body.status());
  Result<CompletionTask> task = read_task(std::move(*body), server.options(), /*counted=*/true);
  if (!task.ok()) return error_reply(task.status());
  const Result<LeasedModel> model = open_model(server, request, server.model_name(task->model));
  if (!model.ok()) return model_error_reply(model.status());
  const Result<Prompt> prompt = read_prompt(task->requests.shared, *model->target);
  if (!prompt.ok()) return error_reply(prompt.status());
  return json_reply({{"input_tokens", prompt->n_asked}});
}

}  // namespace outrider::http
