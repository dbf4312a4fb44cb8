#include "api/chat_params.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace outrider::api {
namespace {

using json::Json;

constexpr std::string_view kRoles[] = {"system",    "developer", "user",
                                       "assistant", "tool",      "function"};
constexpr std::string_view kChoices[] = {"auto", "none", "required"};
constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium",
                                         "high", "xhigh",   "max"};

// What services and their clients write into answers, and send back with them: names and states of
// messages, sources, the content and the reasoning once more in a form of their own; and marks for
// caches. Their clients write out all fields that they know, as null where there is nothing.
constexpr std::string_view kIgnoredOfMessage[] = {"id",
                                                  "status",
                                                  "annotations",
                                                  "parsed",
                                                  "cache_control",
                                                  "reasoning_details",
                                                  "thinking_blocks",
                                                  "provider_specific_fields"};
constexpr Dialect kMessageDialect{
    .names = {}, .ignored = kIgnoredOfMessage, .unknown_may_be_null = true};
// Of a call, and of a tool's function.
constexpr Dialect kNullableDialect{.names = {}, .ignored = {}, .unknown_may_be_null = true};
constexpr std::string_view kIgnoredOfFunction[] = {"parsed_arguments"};
constexpr Dialect kFunctionDialect{
    .names = {}, .ignored = kIgnoredOfFunction, .unknown_may_be_null = true};
constexpr Dialect kPartDialect{.names = {}, .ignored = kIgnoredOfPart, .unknown_may_be_null = true};
constexpr std::string_view kIgnoredOfTool[] = {"cache_control"};
constexpr Dialect kToolDialect{.names = {}, .ignored = kIgnoredOfTool, .unknown_may_be_null = true};
// How the reasoning is to be shown.
constexpr std::string_view kIgnoredOfReasoning[] = {"summary", "generate_summary", "context"};
constexpr Dialect kReasoningDialect{
    .names = {}, .ignored = kIgnoredOfReasoning, .null_is_absent = true};

// A text, or null for none.
void read_text_or_null(JsonFields& fields, std::string_view name, std::string& value) {
  const Json* given = fields.any(name);
  if (given != nullptr && !given->is_null()) fields.text(name, value);
}

// {"type": "text", "text"}, of an assistant's also {"type": "refusal", "refusal"}; what is not text
// is right in itself, but not here.
void read_part(JsonFields& fields, const Json& part, const std::string& path, ChatMessage& read) {
  JsonFields inner(part, path + ".", &kPartDialect);
  std::string type;
  inner.require("type");
  inner.text("type", type);
  const bool is_refusal = type == "refusal" && read.role == "assistant";
  if (inner.ok() && type != "text" && !is_refusal) {
    return fields.take(unsupported(path + " is of the type " + shown(Json(type)) +
                                   ", but only text is read here: images, audio and files are "
                                   "not supported")
                           .about(path + ".type"));
  }
  const std::string_view name = is_refusal ? "refusal" : "text";
  std::string said;
  inner.require(name);
  inner.text(name, said);
  read.content += said;
  fields.take(inner.finish());
}

// A string, an array of parts, or null, which is no text, as with llama-server: services say
// refusals and calls so, clients a tool that has nothing to tell. Only an assistant's may be
// missing, where it says something else. A refusal in place of it is what it says.
void read_content(JsonFields& fields, JsonFields& message, const std::string& path,
                  ChatMessage& read) {
  const Json* content = message.any("content");
  const Json* refusal = message.any("refusal");  // beside a content it changes nothing
  if (content == nullptr || content->is_null()) {
    const bool refuses = refusal != nullptr && refusal->is_string() && read.role == "assistant";
    if (refuses) read.content = refusal->get<std::string>();
    const bool says_more = refuses || !read.tool_calls.empty() || !read.reasoning.empty();
    if (content != nullptr || (read.role == "assistant" && says_more)) return;
    return message.require("content");
  }
  if (content->is_string()) return message.text("content", read.content);
  if (!content->is_array()) {
    return message.refuse("content", *content, "a string or an array of parts of type text");
  }
  for (std::size_t i = 0; i < content->size() && fields.ok(); ++i) {
    if (i > 0) read.content += "\n";
    read_part(fields, (*content)[i], path + item_name("content", i), read);
  }
}

// {"name", "arguments"}; those are a text, or the object that it would be the text of.
void read_called(JsonFields& fields, const Json& function, const std::string& path,
                 ToolCall& read) {
  JsonFields named(function, path + ".", &kFunctionDialect);
  named.require("name");
  named.text("name", read.name);
  named.require("arguments");
  const Json* arguments = named.any("arguments");
  if (arguments != nullptr && arguments->is_object()) {
    read.arguments = json::encode(*arguments);
  } else {
    named.text("arguments", read.arguments);
  }
  fields.take(named.finish());
}

void read_call(JsonFields& fields, const Json& call, const std::string& path, ToolCall& read) {
  JsonFields inner(call, path + ".", &kNullableDialect);
  std::string type = "function";
  constexpr std::string_view kTypes[] = {"function"};
  inner.choice("type", type, kTypes);
  read_text_or_null(inner, "id", read.id);
  inner.any("index");  // of a stream's piece; clients send it back
  inner.require("function");
  if (const Json* function = inner.any("function")) {
    read_called(inner, *function, path + ".function", read);
  }
  fields.take(inner.finish());
}

void read_calls(JsonFields& fields, JsonFields& message, const std::string& path,
                ChatMessage& read) {
  const Json* calls = message.any("tool_calls");
  if (calls == nullptr || calls->is_null()) return;
  if (!calls->is_array()) return message.refuse("tool_calls", *calls, "an array of calls");
  if (read.role != "assistant" && !calls->empty()) {
    return message.fail("tool_calls", path + "tool_calls are an assistant's only");
  }
  for (std::size_t i = 0; i < calls->size() && fields.ok(); ++i) {
    read_call(fields, (*calls)[i], path + item_name("tool_calls", i),
              read.tool_calls.emplace_back());
  }
}

// What "tool_calls" were before: one call, without an id.
void read_function_call(JsonFields& message, const std::string& path, ChatMessage& read) {
  const Json* call = message.any("function_call");
  if (call == nullptr || call->is_null()) return;
  if (read.role != "assistant") {
    return message.fail("function_call", path + "function_call is an assistant's only");
  }
  read_called(message, *call, path + "function_call", read.tool_calls.emplace_back());
}

// Null, as in the answers of OpenAI's client; what it would say has no text here.
void refuse_unless_null(JsonFields& message, std::string_view name, const std::string& path,
                        const std::string& why) {
  const Json* given = message.any(name);
  if (given == nullptr || given->is_null()) return;
  message.take(refused(StatusCode::kUnsupported, path + std::string(name), why));
}

// Servers of models call it "reasoning_content", or "reasoning", or both.
void read_reasoning(JsonFields& message, std::string& reasoning) {
  std::string other;
  read_text_or_null(message, "reasoning_content", reasoning);
  read_text_or_null(message, "reasoning", other);
  if (reasoning.empty()) reasoning = std::move(other);
}

void read_message(JsonFields& fields, const Json& message, const std::string& path,
                  ChatMessage& read) {
  JsonFields inner(message, path, &kMessageDialect);
  inner.require("role");
  inner.choice("role", read.role, kRoles);
  if (read.role == "developer") read.role = "system";
  if (read.role == "function") {  // what "tool" was before: the call's name, not its id
    inner.require("name");
    read.role = "tool";
  }
  read_text_or_null(inner, "name", read.name);
  read_text_or_null(inner, "tool_call_id", read.tool_call_id);
  read_reasoning(inner, read.reasoning);
  read_calls(fields, inner, path, read);
  read_function_call(inner, path, read);
  read_content(fields, inner, path, read);
  refuse_unless_null(inner, "audio", path, "is not supported: only text is read here");
  fields.take(inner.finish());
}

void read_tool(JsonFields& fields, const Json& tool, const std::string& path, ChatTool& read) {
  JsonFields inner(tool, path + ".", &kToolDialect);
  std::string type;
  constexpr std::string_view kTypes[] = {"function"};
  inner.require("type");
  inner.choice("type", type, kTypes);
  inner.require("function");
  if (const Json* function = inner.any("function")) {
    read_function(inner, *function, path + ".function", read);
  }
  fields.take(inner.finish());
}

// {"type": "allowed_tools", "allowed_tools": {"mode", "tools": [{"type": "function", "function":
// {"name"}}]}}: of the tools only these.
void read_allowed_tools(JsonFields& fields, const Json& choice, CompletionRequest& request) {
  static constexpr std::string_view kModes[] = {"auto", "required"};
  const std::string place = "tool_choice.allowed_tools";
  JsonFields inner(choice, "tool_choice.");
  inner.any("type");
  inner.require("allowed_tools");
  std::string mode;
  std::vector<std::string> names;
  if (const Json* allowed = inner.any("allowed_tools")) {
    JsonFields of_allowed(*allowed, place + ".");
    of_allowed.require("mode");
    of_allowed.choice("mode", mode, kModes);
    of_allowed.require("tools");
    const Json* tools = of_allowed.any("tools");
    if (tools != nullptr && !tools->is_array()) of_allowed.refuse("tools", *tools, "an array");
    for (std::size_t i = 0; tools != nullptr && of_allowed.ok() && i < tools->size(); ++i) {
      ChatTool tool;
      read_tool(of_allowed, (*tools)[i], place + "." + item_name("tools", i), tool);
      names.push_back(std::move(tool.name));
    }
    inner.take(of_allowed.finish());
  }
  fields.take(inner.finish());
  if (!fields.ok()) return;
  keep_tools(fields, place + ".tools", names, request);
  if (mode == "required") request.chat.tool_choice = ToolChoice::kRequired;
}

}  // namespace

void read_messages(JsonFields& fields, CompletionRequest& request) {
  const Json* given = fields.any("messages");
  if (given == nullptr) return;
  if (given->is_array() && given->empty()) {
    return fields.fail("messages", "messages is empty, but must have at least one message");
  }
  if (!given->is_array()) {
    return fields.refuse("messages", *given, "an array of at least one message");
  }
  if (given->size() > kMaxMessages) {
    return fields.fail("messages", "messages holds " + std::to_string(given->size()) +
                                       ", at most " + std::to_string(kMaxMessages) + " can be");
  }
  for (std::size_t i = 0; i < given->size() && fields.ok(); ++i) {
    read_message(fields, (*given)[i], item_name("messages", i) + ".",
                 request.messages.emplace_back());
  }
}

void read_function(JsonFields& fields, const Json& function, const std::string& place,
                   ChatTool& read) {
  JsonFields named(function, place + ".", &kNullableDialect);
  named.require("name");
  named.text("name", read.name);
  read_text_or_null(named, "description", read.description);
  const Json* given = named.any("strict");
  if (given != nullptr && !given->is_null()) named.boolean("strict", read.strict);
  const Json* parameters = named.any("parameters");
  if (parameters != nullptr && !parameters->is_null()) {
    if (!parameters->is_object()) {
      named.refuse("parameters", *parameters, "a JSON schema (an object)");
    } else {
      read.parameters = json::encode(*parameters);
    }
  }
  fields.take(named.finish());
}

void read_each_tool(JsonFields& fields, CompletionRequest& request, ToolReader read) {
  const Json* given = fields.any("tools");
  if (given == nullptr) return;
  if (!given->is_array()) return fields.refuse("tools", *given, "an array of tools");
  if (given->size() > kMaxChatTools) {
    return fields.fail("tools", "tools holds " + std::to_string(given->size()) + ", at most " +
                                    std::to_string(kMaxChatTools) + " can be");
  }
  for (std::size_t i = 0; i < given->size() && fields.ok(); ++i) {
    read(fields, (*given)[i], item_name("tools", i), request.chat.tools.emplace_back());
  }
}

void read_tools(JsonFields& fields, CompletionRequest& request) {
  read_each_tool(fields, request, read_tool);
}

void keep_tools(JsonFields& fields, const std::string& place, std::span<const std::string> names,
                CompletionRequest& request) {
  std::vector<ChatTool>& tools = request.chat.tools;
  for (const std::string& name : names) {
    const bool there = std::any_of(tools.begin(), tools.end(),
                                   [&name](const ChatTool& tool) { return tool.name == name; });
    if (there) continue;
    return fields.fail(
        place, place + " names " + shown(Json(name)) + ", but there is no tool of that name");
  }
  std::erase_if(tools, [&names](const ChatTool& tool) {
    return std::find(names.begin(), names.end(), tool.name) == names.end();
  });
}

void require_tool(JsonFields& fields, const std::string& place, const std::string& name,
                  CompletionRequest& request) {
  keep_tools(fields, place, {&name, 1}, request);
  request.chat.tool_choice = ToolChoice::kRequired;
  request.chat.one_call = true;
}

void read_tool_choice(JsonFields& fields, CompletionRequest& request) {
  const Json* given = fields.any("tool_choice");
  if (given == nullptr) return;
  ChatOptions& chat = request.chat;
  if (given->is_object()) {
    const Json::const_iterator type = given->find("type");
    if (type != given->end() && is_text(*type, "allowed_tools")) {
      return read_allowed_tools(fields, *given, request);
    }
    ChatTool tool;
    read_tool(fields, *given, "tool_choice", tool);
    if (fields.ok()) require_tool(fields, "tool_choice.function.name", tool.name, request);
    return;
  }
  std::string choice;
  fields.choice("tool_choice", choice, kChoices);
  if (choice == "none") chat.tool_choice = ToolChoice::kNone;
  if (choice == "required") chat.tool_choice = ToolChoice::kRequired;
}

void read_template_values(JsonFields& fields, CompletionRequest& request) {
  const Json* given = fields.any("chat_template_kwargs");
  if (given == nullptr) return;
  if (!given->is_object()) return fields.refuse("chat_template_kwargs", *given, "an object");
  const Json::const_iterator thinking = given->find("enable_thinking");
  if (thinking != given->end() && !thinking->is_boolean()) {
    return fields.refuse("chat_template_kwargs.enable_thinking", *thinking, "true or false");
  }
  if (!given->empty()) request.chat.template_values = json::encode(*given);
}

std::string read_effort(JsonFields& fields, std::string_view name) {
  std::string effort;
  fields.choice(name, effort, kEfforts);
  return effort;
}

void set_effort(CompletionRequest& request, std::string_view effort) {
  if (effort.empty()) return;
  request.chat.reasoning = effort != "none";
  if (effort == "none") return;
  const std::string_view known = effort == "minimal"                    ? "low"
                                 : effort == "xhigh" || effort == "max" ? "high"
                                                                        : effort;
  const json::Parsed given = json::parse(request.chat.template_values);  // empty: no JSON
  Json values = given.ok() ? *given.value : Json::object();
  values.emplace("reasoning_effort", std::string(known));
  request.chat.template_values = json::encode(values);
}

void read_reasoning_at(JsonFields& fields, const std::string& place, const Json& reasoning,
                       CompletionRequest& request) {
  JsonFields inner(reasoning, place + ".", &kReasoningDialect);
  const std::string effort = read_effort(inner, "effort");
  fields.take(inner.finish());
  set_effort(request, effort);
}

void read_reasoning_object(JsonFields& fields, CompletionRequest& request) {
  const Json* given = fields.any("reasoning");
  if (given == nullptr || !given->is_object()) return;
  if (fields.any("prompt") != nullptr) {  // no template that could be told
    return fields.fail("reasoning", "reasoning is an object, which needs messages, not a prompt");
  }
  read_reasoning_at(fields, "reasoning", *given, request);
}

Json message_json(const ChatReply& reply) {
  const bool only_calls = reply.content.empty() && !reply.tool_calls.empty();
  Json message = {{"role", "assistant"}, {"content", only_calls ? Json() : Json(reply.content)}};
  if (!reply.reasoning.empty()) message["reasoning_content"] = reply.reasoning;
  if (reply.tool_calls.empty()) return message;
  Json calls = Json::array();
  for (const ToolCall& call : reply.tool_calls) {
    calls.push_back({{"id", call.id.empty() ? Json() : Json(call.id)},
                     {"type", "function"},
                     {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  message["tool_calls"] = std::move(calls);
  return message;
}

}  // namespace outrider::api
