#include "testing/simple_chat.h"

#include <algorithm>

namespace outrider::testing {
namespace {

constexpr std::string_view kThink = "(think ";
constexpr std::string_view kCall = "(call ";

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string tools_line(const std::vector<ChatTool>& tools) {
  std::string line;
  for (const ChatTool& tool : tools) {
    line += (line.empty() ? "" : ",") + std::string("{\"name\":") + in_quotes(tool.name) +
            ",\"parameters\":" + (tool.parameters.empty() ? "{}" : tool.parameters) + "}";
  }
  return "tools: [" + line + "]\n";
}

// Whether `text` is so far the beginning of `mark`.
bool may_become(std::string_view text, std::string_view mark) {
  return text.size() < mark.size() && mark.starts_with(text);
}

}  // namespace

Result<ChatPrompt> simple_chat_prompt(const std::vector<ChatMessage>& messages,
                                      const ChatOptions& options) {
  ChatPrompt prompt;
  const bool tools = !options.tools.empty() && options.tool_choice != ToolChoice::kNone;
  if (tools) prompt.text += tools_line(options.tools);
  for (const ChatMessage& message : messages) {
    if (message.role == "refused") {
      return invalid_argument("there is no role 'refused'").about("messages");
    }
    const bool last = &message == &messages.back();
    prompt.text += message.role + ": " + message.content;
    for (const ToolCall& call : message.tool_calls) {
      prompt.text += std::string(kCall) + call.name + " " + call.arguments + ")";
    }
    if (!last || !options.continue_last) prompt.text += "\n";
  }
  if (!options.continue_last) prompt.text += "assistant: ";
  ChatReply given;
  if (options.continue_last && !messages.empty()) {
    given.content = messages.back().content;
    given.reasoning = messages.back().reasoning;
  }
  prompt.reader = std::make_shared<const SimpleChatReader>(std::move(given));
  return prompt;
}

ChatReply SimpleChatReader::read(std::string_view text, bool complete) const {
  ChatReply reply;
  if (!complete && may_become(text, kThink)) return reply;
  if (text.starts_with(kThink)) {
    const std::size_t end = text.find(')');
    reply.reasoning = text.substr(kThink.size(), end - std::min(end, kThink.size()));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  while (!text.empty()) {
    const std::size_t at = std::min(text.find('('), text.size());
    reply.content += text.substr(0, at);
    text.remove_prefix(at);
    if (!complete && may_become(text, kCall)) break;
    if (!text.starts_with(kCall)) {
      reply.content += text.substr(0, 1);
      text.remove_prefix(std::min<std::size_t>(1, text.size()));
      continue;
    }
    text.remove_prefix(kCall.size());
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) break;  // the name is not whole
    const std::size_t end = text.find(')', space);
    ToolCall& call = reply.tool_calls.emplace_back();
    call.name = text.substr(0, space);
    call.arguments = text.substr(space + 1, end == std::string_view::npos ? end : end - space - 1);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return reply;
}

}  // namespace outrider::testing
