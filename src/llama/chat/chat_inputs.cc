#include "llama/chat/chat_inputs.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "json/json.h"
#include "llama/schema/json_schema.h"

namespace outrider::llama {
namespace {

using json::Json;

constexpr std::size_t kMaxToolName = 128;  // bytes
constexpr std::string_view kNoParameters = R"({"type":"object","properties":{}})";

// Adds up what all texts have, each of which must be UTF-8.
class TextCheck {
 public:
  Status add(std::string_view text, const std::string& what) {
    OUTRIDER_RETURN_IF_ERROR(check_utf8(text, what));
    n_bytes_ += text.size();
    if (n_bytes_ <= kMaxChatBytes) return Status();
    return invalid_argument("the conversation has more than " + std::to_string(kMaxChatBytes) +
                            " bytes");
  }

 private:
  std::size_t n_bytes_ = 0;
};

Result<Json> object_of(const json::Parsed& parsed, const std::string& what) {
  if (!parsed.value) return invalid_argument(what + " is not JSON: " + parsed.error);
  if (!parsed.value->is_object()) return invalid_argument(what + " is not a JSON object");
  return *parsed.value;
}

// A JSON object of bounded depth. Errors: kInvalidArgument.
Result<Json> parse_object(std::string_view text, const std::string& what) {
  return object_of(json::parse(text), what);
}

// Whether the text is the beginning of a JSON object, and not all of it.
bool is_cut_object(std::string_view text) {
  return text.starts_with('{') && json::object_length(text) == 0;
}

// The arguments of an earlier call as templates take them, objects only. A call that was cut off,
// by a limit of tokens say, is in the history as it came, and so is one with a field twice or half
// of a pair of surrogates, which grammars allow: what was answered is taken back.
Result<std::string> arguments_of(const std::string& said, const std::string& what) {
  if (said.empty() || is_cut_object(said)) return std::string("{}");
  if (parse_object(said, what).ok()) return said;
  OUTRIDER_ASSIGN_OR_RETURN(const Json written, object_of(json::parse_written(said), what));
  return json::encode(written);
}

Status add_tool_calls(const ChatMessage& message, const std::string& which, TextCheck& texts,
                      common_chat_msg& msg) {
  if (message.tool_calls.size() > kMaxToolCalls) {
    return invalid_argument(which + " has " + std::to_string(message.tool_calls.size()) +
                            " tool calls, more than " + std::to_string(kMaxToolCalls));
  }
  for (const ToolCall& call : message.tool_calls) {
    const std::string what =
        "tool call " + std::to_string(&call - message.tool_calls.data()) + " of " + which;
    OUTRIDER_RETURN_IF_ERROR(texts.add(call.name, "the name of " + what));
    OUTRIDER_RETURN_IF_ERROR(texts.add(call.id, "the id of " + what));
    OUTRIDER_RETURN_IF_ERROR(texts.add(call.arguments, "the arguments of " + what));
    OUTRIDER_ASSIGN_OR_RETURN(std::string arguments,
                              arguments_of(call.arguments, "the arguments of " + what));
    msg.tool_calls.push_back({.name = call.name, .arguments = std::move(arguments), .id = call.id});
  }
  return Status();
}

Status add_messages(const std::vector<ChatMessage>& messages, TextCheck& texts,
                    common_chat_templates_inputs& inputs) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    const std::string which = "message " + std::to_string(i);
    OUTRIDER_RETURN_IF_ERROR(texts.add(message.role, "the role of " + which));
    OUTRIDER_RETURN_IF_ERROR(texts.add(message.content, which));
    OUTRIDER_RETURN_IF_ERROR(texts.add(message.reasoning, "the reasoning of " + which));
    OUTRIDER_RETURN_IF_ERROR(texts.add(message.name, "the name of " + which));
    OUTRIDER_RETURN_IF_ERROR(texts.add(message.tool_call_id, "the tool call's id of " + which));
    common_chat_msg& msg = inputs.messages.emplace_back();
    msg.role = message.role;
    msg.content = message.content;
    msg.reasoning_content = message.reasoning;
    msg.tool_name = message.name;
    msg.tool_call_id = message.tool_call_id;
    OUTRIDER_RETURN_IF_ERROR(add_tool_calls(message, which, texts, msg));
  }
  return Status();
}

// `text`: the tool's parameters. `called`: whether there will be a grammar of it.
Result<ToolSchema> read_parameters(const ChatTool& tool, const std::string& text, bool called,
                                   ValueRules& rules) {
  const std::string what = "the parameters of '" + tool.name + "'";
  OUTRIDER_ASSIGN_OR_RETURN(Json given, parse_object(text, what));
  ToolSchema schema{.given = std::move(given), .convertible = nullptr};
  if (!called) return schema;
  if (text.size() > kMaxSchemaBytes) {
    return invalid_argument(what + " have " + std::to_string(text.size()) + " bytes, more than " +
                            std::to_string(kMaxSchemaBytes));
  }
  Result<Json> convertible = convertible_value(schema.given, keeping_of(tool.strict), rules);
  if (!convertible.ok()) return convertible.status().with_context(what);
  hold_to_object(*convertible);
  schema.convertible = std::move(*convertible);
  return schema;
}

Status add_tools(const ChatOptions& options, TextCheck& texts, ChatInputs& inputs) {
  const std::vector<ChatTool>& tools = options.tools;
  if (tools.size() > kMaxChatTools) {
    return invalid_argument("there are " + std::to_string(tools.size()) + " tools, more than " +
                            std::to_string(kMaxChatTools));
  }
  std::set<std::string_view> names;
  bool converted = false;
  for (const ChatTool& tool : tools) {
    const std::string which = "tool " + std::to_string(&tool - tools.data());
    OUTRIDER_RETURN_IF_ERROR(texts.add(tool.name, "the name of " + which));
    OUTRIDER_RETURN_IF_ERROR(texts.add(tool.description, "the description of " + which));
    if (tool.name.empty() || tool.name.size() > kMaxToolName) {
      return invalid_argument("the name of " + which + " has " + std::to_string(tool.name.size()) +
                              " bytes, but must have 1 to " + std::to_string(kMaxToolName));
    }
    if (!names.insert(tool.name).second) {
      return invalid_argument("there are two tools of the name '" + tool.name + "'");
    }
    const std::string text(tool.parameters.empty() ? kNoParameters : tool.parameters);
    OUTRIDER_RETURN_IF_ERROR(texts.add(text, "the parameters of " + which));
    const bool called = options.tool_choice != ToolChoice::kNone;
    OUTRIDER_ASSIGN_OR_RETURN(ToolSchema schema, read_parameters(tool, text, called, inputs.rules));
    const bool other = called && schema.convertible != schema.given;
    converted = converted || other;
    inputs.given_parameters.push_back(text);
    inputs.common.tools.push_back({.name = tool.name,
                                   .description = tool.description,
                                   .parameters = other ? json::encode(schema.convertible) : text});
    inputs.tool_schemas.push_back(std::move(schema));
  }
  if (!converted) inputs.given_parameters.clear();
  return Status();
}

Status add_template_values(const ChatOptions& options, TextCheck& texts,
                           common_chat_templates_inputs& inputs) {
  inputs.enable_thinking = options.reasoning;
  if (options.template_values.empty()) return Status();
  OUTRIDER_RETURN_IF_ERROR(texts.add(options.template_values, "it"));
  const Result<Json> values = parse_object(options.template_values, "it");
  if (!values.ok()) return values.status();
  for (Json::const_iterator it = values->begin(); it != values->end(); ++it) {
    if (it.key() == "enable_thinking") {
      if (!it->is_boolean()) return invalid_argument("enable_thinking must be true or false");
      inputs.enable_thinking = options.reasoning && it->get<bool>();
      continue;
    }
    inputs.chat_template_kwargs[it.key()] = json::encode(*it);
  }
  return Status();
}

common_chat_tool_choice choice_of(ToolChoice choice) {
  switch (choice) {
    case ToolChoice::kAuto:
      return COMMON_CHAT_TOOL_CHOICE_AUTO;
    case ToolChoice::kRequired:
      return COMMON_CHAT_TOOL_CHOICE_REQUIRED;
    case ToolChoice::kNone:
      return COMMON_CHAT_TOOL_CHOICE_NONE;
  }
  return COMMON_CHAT_TOOL_CHOICE_AUTO;
}

common_chat_continuation continuation_of(ContinuedPart part) {
  switch (part) {
    case ContinuedPart::kSaidLast:
      return COMMON_CHAT_CONTINUATION_AUTO;
    case ContinuedPart::kContent:
      return COMMON_CHAT_CONTINUATION_CONTENT;
    case ContinuedPart::kReasoning:
      return COMMON_CHAT_CONTINUATION_REASONING;
  }
  return COMMON_CHAT_CONTINUATION_AUTO;
}

Status check_continuation(const std::vector<ChatMessage>& messages) {
  if (!messages.empty() && messages.back().role == "assistant" &&
      messages.back().tool_calls.empty()) {
    return Status();
  }
  return invalid_argument(
      "the last message cannot be gone on with: it must be the assistant's, without tool calls");
}

}  // namespace

Result<ChatInputs> chat_inputs(const std::vector<ChatMessage>& messages,
                               const ChatOptions& options) {
  ChatInputs all;
  common_chat_templates_inputs& inputs = all.common;
  inputs.use_jinja = true;
  inputs.add_generation_prompt = true;
  inputs.reasoning_format = COMMON_REASONING_FORMAT_AUTO;
  inputs.tool_choice = choice_of(options.tool_choice);
  inputs.parallel_tool_calls = !takes_one_call(options);
  TextCheck texts;
  OUTRIDER_RETURN_IF_ERROR(add_messages(messages, texts, inputs).about("messages"));
  OUTRIDER_RETURN_IF_ERROR(add_tools(options, texts, all).about("tools"));
  OUTRIDER_RETURN_IF_ERROR(
      add_template_values(options, texts, inputs).in_field("chat_template_kwargs"));
  if (options.continue_last) {
    OUTRIDER_RETURN_IF_ERROR(check_continuation(messages).about("messages"));
    inputs.continue_final_message = continuation_of(options.continued_part);
    inputs.add_generation_prompt = false;
  }
  if (!options.json_schema.empty()) {
    const Result<Json> schema =
        convertible_schema(options.json_schema, keeping_of(options.json_schema_strict), all.rules);
    if (!schema.ok()) return schema.status().in_field("json_schema");
    inputs.json_schema = json::encode(*schema);
    all.given_json_schema = options.json_schema;
  }
  return all;
}

}  // namespace outrider::llama
