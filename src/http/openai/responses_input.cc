#include "http/openai/responses_input.h"

#include <span>
#include <string>
#include <string_view>

#include "http/completion/conversation_body.h"

namespace outrider::http {
namespace {

using json::Json;

constexpr std::string_view kRoles[] = {"user", "assistant", "system", "developer"};
constexpr std::string_view kAssistantsParts[] = {"input_text", "output_text", "text", "refusal"};
constexpr std::span<const std::string_view> kTextParts = std::span(kAssistantsParts).first(3);
constexpr std::string_view kReasoningParts[] = {"reasoning_text", "summary_text"};

// What the service and its clients write into items, and send back.
constexpr std::string_view kIgnoredOfItem[] = {"id",        "status", "phase", "encrypted_content",
                                               "namespace", "caller", "async", "parsed_arguments",
                                               "type"};
constexpr api::Dialect kItemDialect{.names = {}, .ignored = kIgnoredOfItem, .null_is_absent = true};

// The assistant's message that a further item belongs to, if it has only thought so far; else a new
// one.
ChatMessage& assistant_thinking(Conversation& conversation) {
  const ChatMessage* last = conversation.last();
  const bool thinking = last != nullptr && last->role == "assistant" && last->content.empty() &&
                        last->tool_calls.empty();
  return conversation.of_role("assistant", thinking ? 0 : conversation.size());
}

void read_message(api::JsonFields& fields, const Json& item, const std::string& place,
                  Conversation& conversation) {
  std::string role;
  const Json* content = read_role(fields, item, place, kItemDialect, kRoles, role);
  if (content == nullptr) return;
  const std::span<const std::string_view> parts =
      role == "assistant" ? std::span<const std::string_view>(kAssistantsParts) : kTextParts;
  std::string text = read_text_parts(fields, *content, place + ".content", parts);
  if (role == "system" || role == "developer") return conversation.add_instructions(text);
  if (role == "assistant") {
    assistant_thinking(conversation).content = std::move(text);
  } else {
    conversation.add({.role = role, .content = std::move(text)});
  }
}

void read_reasoning(api::JsonFields& fields, const Json& item, const std::string& place,
                    Conversation& conversation) {
  api::JsonFields inner(item, place + ".", &kItemDialect);
  const Json* content = inner.any("content");
  const Json* summary = inner.any("summary");
  fields.take(inner.finish());
  if (!fields.ok()) return;
  std::string text;
  if (content != nullptr) {
    text = read_text_parts(fields, *content, place + ".content", kReasoningParts);
  }
  if (text.empty() && summary != nullptr) {
    text = read_text_parts(fields, *summary, place + ".summary", kReasoningParts);
  }
  if (!text.empty()) assistant_thinking(conversation).reasoning += text;
}

void read_call(api::JsonFields& fields, const Json& item, const std::string& place,
               Conversation& conversation) {
  api::JsonFields inner(item, place + ".", &kItemDialect);
  ToolCall call;
  inner.require("call_id");
  inner.text("call_id", call.id);
  inner.require("name");
  inner.text("name", call.name);
  inner.require("arguments");
  inner.text("arguments", call.arguments);
  fields.take(inner.finish());
  if (!fields.ok()) return;
  conversation.add_call(conversation.of_role("assistant"), std::move(call));
}

void read_call_output(api::JsonFields& fields, const Json& item, const std::string& place,
                      Conversation& conversation) {
  api::JsonFields inner(item, place + ".", &kItemDialect);
  ChatMessage message{.role = "tool", .content = ""};
  inner.require("call_id");
  inner.text("call_id", message.tool_call_id);
  inner.require("output");
  const Json* output = inner.any("output");
  inner.any("name");
  fields.take(inner.finish());
  if (!fields.ok()) return;
  message.content = read_text_parts(fields, *output, place + ".output", kTextParts);
  conversation.add_result(fields, place + ".call_id", std::move(message));
}

struct ItemReader {
  std::string_view type;
  void (*read)(api::JsonFields& fields, const Json& item, const std::string& place,
               Conversation& conversation);
};
constexpr ItemReader kItems[] = {{"message", read_message},
                                 {"reasoning", read_reasoning},
                                 {"function_call", read_call},
                                 {"function_call_output", read_call_output}};

void read_item(api::JsonFields& fields, const Json& item, const std::string& place,
               Conversation& conversation) {
  if (!item.is_object()) return fields.refuse(place, item, "an object");
  std::string type = "message";  // may be left out
  const Json::const_iterator given = item.find("type");
  if (given != item.end() && !given->is_null()) {
    if (!given->is_string()) return fields.refuse(place + ".type", *given, "a string");
    type = given->get<std::string>();
  }
  for (const ItemReader& one : kItems) {
    if (one.type == type) return one.read(fields, item, place, conversation);
  }
  refuse_type(fields, place, type,
              "message, function_call, function_call_output and reasoning are read here: no items "
              "are stored, and no tools run on the server");
}

}  // namespace

void read_responses_input(api::JsonFields& fields, Conversation& conversation) {
  fields.require("input");
  const Json* input = fields.any("input");
  if (input == nullptr) return;
  if (input->is_string()) {
    conversation.add({.role = "user", .content = input->get<std::string>()});
    return;
  }
  if (!input->is_array() || input->empty()) {
    return fields.refuse("input", *input, "a text, or an array of at least one item");
  }
  for (std::size_t i = 0; i < input->size() && fields.ok(); ++i) {
    read_item(fields, (*input)[i], api::item_name("input", i), conversation);
  }
}

}  // namespace outrider::http
