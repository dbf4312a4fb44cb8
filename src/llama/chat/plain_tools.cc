#include "llama/chat/plain_tools.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "json/json.h"
#include "llama/schema/json_schema.h"

namespace outrider::llama {
namespace {

using json::Json;

constexpr std::string_view kBegin = "{\"tool_calls\":";

// An object or text that others wrote, as JSON; what is none is a text.
Json parsed_or_text(const std::string& text) {
  json::Parsed parsed = json::parse(text);
  return parsed.ok() ? std::move(*parsed.value) : Json(text);
}

Json parameters_of(const ChatTool& tool) {
  if (tool.parameters.empty()) return {{"type", "object"}, {"properties", Json::object()}};
  return parsed_or_text(tool.parameters);
}

std::string description(const ChatOptions& options) {
  Json tools = Json::array();
  for (const ChatTool& tool : options.tools) {
    tools.push_back({{"name", tool.name},
                     {"description", tool.description},
                     {"parameters", parameters_of(tool)}});
  }
  const std::string when = options.tool_choice == ToolChoice::kRequired
                               ? "Answer with a call"
                               : "Where a tool helps, answer with a call";
  return "You can call these tools: " + json::encode(tools) + "\n" + when +
         ", which is this JSON object and nothing else: "
         R"({"tool_calls":[{"name":"the tool's name","arguments":{}}]})";
}

std::string calls_text(const std::vector<ToolCall>& calls) {
  Json list = Json::array();
  for (const ToolCall& call : calls) {
    list.push_back({{"name", call.name}, {"arguments", parsed_or_text(call.arguments)}});
  }
  return std::string(kBegin) + json::encode(list) + "}";
}

// The name of the tool whose call has that id.
std::string name_of(const std::vector<ChatMessage>& messages, const ChatMessage& result) {
  if (!result.name.empty()) return result.name;
  for (const ChatMessage& message : messages) {
    for (const ToolCall& call : message.tool_calls) {
      if (!call.id.empty() && call.id == result.tool_call_id) return call.name;
    }
  }
  return "the tool";
}

// The calls of a complete object; nothing: it is none.
std::vector<ToolCall> calls_of(std::string_view text) {
  const json::Parsed parsed = json::parse(text);
  if (!parsed.ok() || !parsed.value->is_object() || parsed.value->size() != 1) return {};
  const Json& list = (*parsed.value)["tool_calls"];
  if (!list.is_array()) return {};
  std::vector<ToolCall> calls;
  for (const Json& call : list) {
    const bool complete = call.is_object() && call.contains("name") && call["name"].is_string() &&
                          call.contains("arguments") && call["arguments"].is_object();
    if (!complete) return {};
    calls.push_back(
        {.name = call["name"].get<std::string>(), .arguments = json::encode(call["arguments"])});
  }
  return calls;
}

// Of the object at the beginning of `text`, up to the brace that closes it; 0: it is not there yet.
std::size_t object_length(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return 0;
}

// Where the object begins, or what may still become its beginning; npos: nowhere.
std::size_t find_begin(std::string_view text, bool complete) {
  const std::size_t found = text.find(kBegin);
  if (found != std::string_view::npos || complete) return found;
  for (std::size_t length = std::min(text.size(), kBegin.size() - 1); length > 0; --length) {
    if (kBegin.starts_with(text.substr(text.size() - length))) return text.size() - length;
  }
  return std::string_view::npos;
}

class PlainToolReader : public ChatReader {
 public:
  ChatReply read(std::string_view text, bool complete) const override {
    const std::size_t begin = find_begin(text, complete);
    ChatReply reply{
        .content = std::string(text.substr(0, begin)), .reasoning = {}, .tool_calls = {}};
    if (begin == std::string_view::npos) return reply;
    const std::string_view object = text.substr(begin);
    reply.tool_calls = calls_of(object.substr(0, object_length(object)));
    if (reply.tool_calls.empty() && complete) reply.content = text;
    return reply;
  }
};

}  // namespace

std::vector<ChatMessage> describe_tools(const std::vector<ChatMessage>& messages,
                                        const ChatOptions& options) {
  std::vector<ChatMessage> plain;
  if (messages.empty() || messages.front().role != "system") {
    plain.push_back({.role = "system", .content = description(options)});
  }
  for (const ChatMessage& message : messages) {
    ChatMessage& now = plain.emplace_back(message);
    if (&message == &messages.front() && message.role == "system") {
      now.content += "\n\n" + description(options);
    } else if (message.role == "tool") {
      now = {.role = "user",
             .content = "Result of " + name_of(messages, message) + ": " + message.content};
    } else if (!message.tool_calls.empty()) {
      now.tool_calls.clear();
      now.content += (now.content.empty() ? "" : "\n") + calls_text(message.tool_calls);
    }
  }
  return plain;
}

Result<ChatGrammar> plain_tool_grammar(const ChatOptions& options) {
  Json one_of = Json::array();
  for (const ChatTool& tool : options.tools) {
    one_of.push_back(
        {{"type", "object"},
         {"properties", {{"name", {{"const", tool.name}}}, {"arguments", parameters_of(tool)}}},
         {"required", Json::array({"name", "arguments"})},
         {"additionalProperties", false}});
  }
  Json calls = {{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", std::move(one_of)}}}};
  if (!options.parallel_tool_calls) calls["maxItems"] = 1;
  const Json schema = {{"type", "object"},
                       {"properties", {{"tool_calls", std::move(calls)}}},
                       {"required", Json::array({"tool_calls"})},
                       {"additionalProperties", false}};
  Result<std::string> gbnf = grammar_from_json_schema(json::encode(schema));
  if (!gbnf.ok()) return gbnf.status().about("tools");
  ChatGrammar grammar{.gbnf = std::move(*gbnf)};
  if (options.tool_choice != ToolChoice::kRequired) grammar.triggers = {std::string(kBegin)};
  return grammar;
}

std::shared_ptr<const ChatReader> plain_tool_reader() {
  return std::make_shared<PlainToolReader>();
}

}  // namespace outrider::llama
