#include "http/openai/responses_body.h"

#include <cstdint>
#include <limits>
#include <optional>

#include "api/chat_params.h"
#include "api/completion_params.h"
#include "http/completion/conversation_body.h"
#include "http/openai/responses_form.h"
#include "http/openai/responses_input.h"

namespace outrider::http {
namespace {

using json::Json;

constexpr api::Dialect::Name kNames[] = {
    {.ours = "temp", .theirs = "temperature"},
    {.ours = "max_tokens", .theirs = "max_output_tokens"},
    {.ours = "logprobs", .theirs = "top_logprobs"},
};

// Who asks, what is stored, cached and billed; tools of the service.
constexpr std::string_view kIgnored[] = {"user",
                                         "store",
                                         "metadata",
                                         "service_tier",
                                         "safety_identifier",
                                         "prompt_cache_key",
                                         "prompt_cache_options",
                                         "prompt_cache_retention",
                                         "client_metadata",
                                         "stream_options"};
constexpr api::Dialect kDialect{.names = kNames, .ignored = kIgnored, .null_is_absent = true};

constexpr std::string_view kIgnoredOfTool[] = {"async", "defer_loading", "output_schema",
                                               "allowed_callers"};
constexpr api::Dialect kToolDialect{.names = {}, .ignored = kIgnoredOfTool, .null_is_absent = true};

// What would need something that is stored here.
void refuse_what_is_stored(api::JsonFields& fields) {
  for (const char* name : {"previous_response_id", "conversation", "prompt"}) {
    if (fields.any(name) == nullptr) continue;
    fields.take(refused(StatusCode::kUnsupported, name,
                        "is not supported: nothing is stored here; send the whole conversation as "
                        "input"));
  }
  bool background = false;
  fields.boolean("background", background);
  if (background) {
    fields.fail("background", "background is not supported: nothing is stored here");
  }
}

// What is too long is an error here, and nothing else is ever cut.
void read_truncation(api::JsonFields& fields, std::vector<std::string>& ignored) {
  static constexpr std::string_view kTruncations[] = {"auto", "disabled"};
  std::string truncation;
  fields.choice("truncation", truncation, kTruncations);
  if (truncation == "auto") ignored.emplace_back("truncation");
}

void read_tool(api::JsonFields& fields, const Json& tool, const std::string& place,
               ChatTool& read) {
  api::JsonFields inner(tool, place + ".", &kToolDialect);
  std::string type;
  inner.require("type");
  inner.text("type", type);
  inner.require("name");
  inner.text("name", read.name);
  inner.text("description", read.description);
  read_schema(inner, "parameters", read.parameters);
  inner.boolean("strict", read.strict);
  fields.take(inner.finish());
}

// {"type":"function","name"}, or {"type":"allowed_tools","mode","tools":[such]}.
void read_chosen_tools(api::JsonFields& fields, const Json& choice, CompletionRequest& request) {
  static constexpr std::string_view kTypes[] = {"function", "allowed_tools"};
  static constexpr std::string_view kModes[] = {"auto", "required"};
  api::JsonFields inner(choice, "tool_choice.", &kDialect);
  std::string type;
  std::string mode = "required";
  inner.require("type");
  inner.choice("type", type, kTypes);
  std::vector<std::string> names;
  const bool choose_one = type == "function";
  if (choose_one) {
    inner.require("name");
    inner.text("name", names.emplace_back());
  } else if (inner.ok()) {
    inner.require("mode");
    inner.choice("mode", mode, kModes);
    inner.require("tools");
    const Json* tools = inner.any("tools");
    if (tools != nullptr && !tools->is_array()) inner.refuse("tools", *tools, "an array");
    for (std::size_t i = 0; inner.ok() && i < tools->size(); ++i) {
      const std::string place = "tool_choice." + api::item_name("tools", i);
      api::JsonFields tool((*tools)[i], place + ".", &kToolDialect);
      static constexpr std::string_view kFunction[] = {"function"};
      tool.choice("type", type, kFunction);
      tool.require("name");
      tool.text("name", names.emplace_back());
      inner.take(tool.finish());
    }
  }
  fields.take(inner.finish());
  if (!fields.ok()) return;
  if (choose_one) return api::require_tool(fields, "tool_choice.name", names.front(), request);
  api::keep_tools(fields, "tool_choice.tools", names, request);
  request.chat.tool_choice = mode == "auto" ? ToolChoice::kAuto : ToolChoice::kRequired;
}

void read_choice_of_tool(api::JsonFields& fields, CompletionRequest& request) {
  const Json* given = fields.any("tool_choice");
  if (given == nullptr) return;
  if (given->is_object()) return read_chosen_tools(fields, *given, request);
  static constexpr std::string_view kChoices[] = {"auto", "none", "required"};
  std::string choice;
  fields.choice("tool_choice", choice, kChoices);
  if (choice == "none") request.chat.tool_choice = ToolChoice::kNone;
  if (choice == "required") request.chat.tool_choice = ToolChoice::kRequired;
}

// Returns whether the reasoning is to be told as its summary, under the field's present name or the
// one that it had. Nobody sums it up here: the summary is all of it, which is no concise one.
bool read_reasoning_wishes(api::JsonFields& fields, CompletionRequest& request,
                           std::vector<std::string>& ignored) {
  const Json* reasoning = fields.any("reasoning");
  if (reasoning == nullptr) return false;
  api::read_reasoning_at(fields, "reasoning", *reasoning, request);
  if (!fields.ok()) return false;
  static constexpr std::string_view kOthers[] = {"effort", "context"};
  static constexpr api::Dialect kSummaryDialect{
      .names = {}, .ignored = kOthers, .null_is_absent = true};
  static constexpr std::string_view kSummaries[] = {"auto", "detailed", "concise", "none"};
  api::JsonFields inner(*reasoning, "reasoning.", &kSummaryDialect);
  bool asked = false;
  for (const char* name : {"summary", "generate_summary"}) {
    std::string summary;
    inner.choice(name, summary, kSummaries);
    if (summary.empty() || summary == "none") continue;
    asked = true;
    if (summary == "concise") ignored.push_back("reasoning." + std::string(name) + "=concise");
  }
  fields.take(inner.finish());
  return asked;
}

// Models here know nothing of verbosity.
void read_verbosity(api::JsonFields& text, std::vector<std::string>& ignored) {
  static constexpr std::string_view kVerbosities[] = {"low", "medium", "high"};
  std::string verbosity;
  text.choice("verbosity", verbosity, kVerbosities);
  if (!verbosity.empty()) ignored.emplace_back("text.verbosity");
}

void read_text_options(api::JsonFields& fields, CompletionRequest& request,
                       std::vector<std::string>& ignored) {
  const Json* text = fields.any("text");
  if (text == nullptr) return;
  static constexpr api::Dialect kTextDialect{.names = {}, .ignored = {}, .null_is_absent = true};
  api::JsonFields inner(*text, "text.", &kTextDialect);
  read_verbosity(inner, ignored);
  const Json* format = inner.any("format");
  if (format != nullptr) {
    static constexpr std::string_view kIgnoredOfFormat[] = {"name", "description"};
    static constexpr api::Dialect kFormatDialect{
        .names = {}, .ignored = kIgnoredOfFormat, .null_is_absent = true};
    static constexpr std::string_view kTypes[] = {"text", "json_object", "json_schema"};
    api::JsonFields of_format(*format, "text.format.", &kFormatDialect);
    std::string type;
    of_format.require("type");
    of_format.choice("type", type, kTypes);
    const Json* schema = nullptr;
    if (type == "json_schema") {
      of_format.require("schema");
      schema = of_format.any("schema");
    }
    bool strict = false;  // as OpenAI has it
    of_format.boolean("strict", strict);
    inner.take(of_format.finish());
    if (inner.ok() && type != "text") {
      keep_to_schema(fields, "text.format", schema, strict, request);
    }
  }
  fields.take(inner.finish());
}

// "include" asks for more in the answer. Of what it can name there are only log-probabilities here.
void read_include(api::JsonFields& fields, CompletionRequest& request,
                  std::vector<std::string>& ignored) {
  std::vector<std::string> include;
  fields.texts("include", include);
  for (const std::string& one : include) {
    if (one != "message.output_text.logprobs") {
      ignored.push_back("include=" + one);
    } else if (request.logprobs < 0) {
      request.logprobs = 0;
    }
  }
}

// It counts calls of the service's own tools, of which there are none here, so that it is kept to;
// calls of functions are the client's, and not counted.
void read_most_calls(api::JsonFields& fields) {
  std::int64_t most = 0;
  fields.integer("max_tool_calls", most, 1, std::numeric_limits<std::int64_t>::max());
}

}  // namespace

Result<CompletionTask> read_responses_task(Json body, const ServerOptions& options) {
  CompletionTask task;
  OUTRIDER_ASSIGN_OR_RETURN(task.ignored_tools, take_out_other_tools(body, "function"));
  CompletionRequest request = defaults_for(body, kDialect, options.defaults);
  api::JsonFields fields(body, "", &kDialect);
  refuse_what_is_stored(fields);
  std::string instructions;
  fields.text("instructions", instructions);
  Conversation conversation(request.messages);
  conversation.add_instructions(instructions);
  read_responses_input(fields, conversation);
  api::read_each_tool(fields, request, read_tool);
  read_choice_of_tool(fields, request);
  check_tools_left(fields, task.ignored_tools, request);
  fields.boolean("parallel_tool_calls", request.chat.parallel_tool_calls);
  const bool as_summary = read_reasoning_wishes(fields, request, task.ignored);
  api::read_settings_fields(fields, request);
  read_truncation(fields, task.ignored);
  read_context_management(fields, task.ignored);
  read_include(fields, request, task.ignored);
  read_text_options(fields, request, task.ignored);
  read_most_calls(fields);
  fields.text("model", task.model);
  fields.boolean("stream", task.stream);
  OUTRIDER_RETURN_IF_ERROR(api::finish_completion(fields, body, request));
  task.form = make_responses_form(body, request, as_summary);
  task.set_requests(std::move(request), 1);
  return task;
}

}  // namespace outrider::http
