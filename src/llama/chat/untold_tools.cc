#include "llama/chat/untold_tools.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "json/json.h"
#include "llama/chat/plain_tools.h"
#include "llama/chat/template_rendering.h"

namespace outrider::llama {
namespace {

constexpr const char* kCallsBegin = "<|tool_call_start|>";
constexpr const char* kCallsEnd = "<|tool_call_end|>";

void put_behind(std::string& content, const std::string& text) {
  content.append(content.empty() ? "" : "\n\n").append(text);
}

void describe_in_system_message(const ChatOptions& options, ChatInputs& inputs) {
  std::vector<common_chat_msg>& messages = inputs.common.messages;
  const bool has_system = !messages.empty() && (messages.front().role == "system" ||
                                                messages.front().role == "developer");
  if (!has_system) {
    common_chat_msg system;
    system.role = "system";
    messages.insert(messages.begin(), std::move(system));
  }
  put_behind(messages.front().content, tools_in_words(options, inputs.tool_schemas) + ".");
}

std::string lfm2_call(const common_chat_tool_call& call) {
  std::string arguments;
  const json::Parsed given = json::parse(call.arguments);
  if (given.ok() && given.value->is_object()) {  // as chat_inputs() lets through
    for (const auto& [name, argument] : given.value->items()) {
      arguments.append(arguments.empty() ? "" : ", ").append(name + "=" + json::encode(argument));
    }
  }
  return call.name + "(" + arguments + ")";
}

void write_lfm2_calls(common_chat_msg& message) {
  if (message.tool_calls.empty()) return;
  std::string list;
  for (const common_chat_tool_call& call : message.tool_calls) {
    list.append(list.empty() ? "" : ", ").append(lfm2_call(call));
  }
  message.content += kCallsBegin + ("[" + list + "]") + kCallsEnd;
  message.tool_calls.clear();
}

}  // namespace

bool has_lfm2_calls(const common_chat_templates& templates) {
  common_chat_templates_inputs inputs;
  inputs.use_jinja = true;
  common_chat_msg& user = inputs.messages.emplace_back();
  user.role = "user";
  user.content = "Hi";
  inputs.tools = {{.name = "sample_tool",
                   .description = "",
                   .parameters = R"({"type":"object","properties":{"a":{"type":"string"}}})"}};
  const common_chat_params made = apply_template(templates, inputs);
  const std::vector<std::string>& marks = made.preserved_tokens;
  return !made.grammar.empty() && made.prompt.find("sample_tool") != std::string::npos &&
         std::find(marks.begin(), marks.end(), kCallsBegin) != marks.end();
}

void add_untold_tools(TemplateTools tools, const ChatOptions& options, ChatInputs& inputs) {
  const bool may_call = !options.tools.empty() && options.tool_choice != ToolChoice::kNone;
  if (tools == TemplateTools::kNoDescription && may_call) {
    describe_in_system_message(options, inputs);
  } else if (tools == TemplateTools::kNoCalls) {
    for (common_chat_msg& message : inputs.common.messages) write_lfm2_calls(message);
  }
}

}  // namespace outrider::llama
