#include "http/anthropic/anthropic_messages.h"

#include <string>
#include <string_view>
#include <utility>

#include "http/completion/conversation_body.h"

namespace outrider::http {
namespace {

using json::Json;

constexpr std::string_view kTextBlocks[] = {"text"};

// For the service's caches, and what it writes into blocks that clients send back.
constexpr std::string_view kIgnoredOfBlock[] = {"type",   "cache_control", "citations",
                                                "caller", "toolset_name",  "signature"};
constexpr api::Dialect kBlockDialect{
    .names = {}, .ignored = kIgnoredOfBlock, .null_is_absent = true};

void add_text(ChatMessage& message, const std::string& text) {
  message.content.append(message.content.empty() ? "" : "\n").append(text);
}

// A block of a message, whose blocks before it have made the messages from `first` on: text between
// results of tools is a message of its own.
struct Block {
  const Json& json;
  const std::string& place;
  std::size_t first;
  const std::string& role;
};

void read_text(api::JsonFields& fields, const Block& block, Conversation& conversation) {
  add_text(conversation.of_role(block.role, block.first),
           read_text_part(fields, block.json, block.place));
}

void read_thinking(api::JsonFields& fields, const Block& block, Conversation& conversation) {
  api::JsonFields inner(block.json, block.place + ".", &kBlockDialect);
  std::string text;
  inner.require("thinking");
  inner.text("thinking", text);
  fields.take(inner.finish());
  conversation.of_role("assistant", block.first).reasoning += text;
}

// Readable by the service only.
void pass_over(api::JsonFields& /*fields*/, const Block& /*block*/,
               Conversation& /*conversation*/) {}

void read_tool_use(api::JsonFields& fields, const Block& block, Conversation& conversation) {
  api::JsonFields inner(block.json, block.place + ".", &kBlockDialect);
  ToolCall call;
  inner.require("id");
  inner.text("id", call.id);
  inner.require("name");
  inner.text("name", call.name);
  inner.require("input");
  const Json* input = inner.any("input");
  if (input != nullptr && !input->is_object()) inner.refuse("input", *input, "an object");
  fields.take(inner.finish());
  if (!fields.ok()) return;
  call.arguments = json::encode(*input);
  conversation.add_call(conversation.of_role("assistant", block.first), std::move(call));
}

void read_tool_result(api::JsonFields& fields, const Block& block, Conversation& conversation) {
  api::JsonFields inner(block.json, block.place + ".", &kBlockDialect);
  ChatMessage message{.role = "tool", .content = ""};
  bool is_error = false;
  inner.require("tool_use_id");
  inner.text("tool_use_id", message.tool_call_id);
  const Json* content = inner.any("content");
  inner.boolean("is_error", is_error);
  fields.take(inner.finish());
  if (!fields.ok()) return;
  if (is_error) message.content = "Error: ";
  if (content != nullptr) {
    message.content += read_text_parts(fields, *content, block.place + ".content", kTextBlocks);
  }
  conversation.add_result(fields, block.place + ".tool_use_id", std::move(message));
}

struct BlockReader {
  std::string_view type;
  std::string_view role;  // whose messages may have it; empty: anyone's
  void (*read)(api::JsonFields& fields, const Block& block, Conversation& conversation);
};
constexpr BlockReader kBlocks[] = {{"text", "", read_text},
                                   {"thinking", "assistant", read_thinking},
                                   {"redacted_thinking", "assistant", pass_over},
                                   {"tool_use", "assistant", read_tool_use},
                                   {"tool_result", "user", read_tool_result}};

void read_block(api::JsonFields& fields, const Block& block, Conversation& conversation) {
  api::JsonFields inner(block.json, block.place + ".");
  std::string type;
  inner.require("type");
  inner.text("type", type);
  if (!inner.ok()) return fields.take(inner.finish());
  for (const BlockReader& one : kBlocks) {
    if (one.type != type) continue;
    if (one.role.empty() || one.role == block.role) return one.read(fields, block, conversation);
    return fields.fail(block.place + ".type", block.place + ".type is " + api::shown(Json(type)) +
                                                  ", which stands in messages of the role " +
                                                  std::string(one.role) + " only");
  }
  refuse_type(fields, block.place, type,
              "text, thinking, tool_use and tool_result are read here: images, documents and the "
              "service's own tools are not supported");
}

void read_message(api::JsonFields& fields, const Json& message, const std::string& place,
                  Conversation& conversation) {
  static constexpr std::string_view kRoles[] = {"user", "assistant", "system"};
  std::string role;
  const Json* content = read_role(fields, message, place, kBlockDialect, kRoles, role);
  if (content == nullptr) return;
  if (role == "system") {
    return conversation.add_instructions(
        read_text_parts(fields, *content, place + ".content", kTextBlocks));
  }
  if (content->is_string()) {
    conversation.add({.role = role, .content = content->get<std::string>()});
    return;
  }
  if (!content->is_array()) {
    return fields.refuse(place + ".content", *content, "a string or an array of blocks");
  }
  const std::size_t first = conversation.size();
  for (std::size_t i = 0; i < content->size() && fields.ok(); ++i) {
    const std::string name = place + "." + api::item_name("content", i);
    read_block(fields, {(*content)[i], name, first, role}, conversation);
  }
}

// The text of a block, or a whole prompt: only one that begins with the header is changed.
void steady_header_of(Json& prompt) {
  constexpr std::string_view kHeader = "x-anthropic-billing-header:";
  constexpr std::string_view kStamp = "cch=";
  constexpr std::size_t kLength = 5;
  std::string* text = prompt.get_ptr<std::string*>();
  if (text == nullptr || !text->starts_with(kHeader)) return;
  const std::size_t stamp = text->find(kStamp, kHeader.size());
  if (stamp == std::string::npos || stamp > text->find('\n')) return;
  const std::size_t begin = stamp + kStamp.size();
  const std::size_t end = begin + kLength;
  if (end < text->size() && (*text)[end] == ';') text->replace(begin, kLength, kLength, '0');
}

}  // namespace

void steady_billing_header(Json& body) {
  if (!body.is_object()) return;
  const Json::iterator system = body.find("system");
  if (system == body.end()) return;
  if (!system->is_array()) return steady_header_of(*system);
  for (Json& block : *system) {
    if (!block.is_object()) continue;
    const Json::iterator text = block.find("text");
    if (text != block.end()) steady_header_of(*text);
  }
}

void read_anthropic_messages(api::JsonFields& fields, CompletionRequest& request) {
  Conversation conversation(request.messages);
  const Json* system = fields.any("system");
  if (system != nullptr) {
    conversation.add_instructions(read_text_parts(fields, *system, "system", kTextBlocks));
  }
  fields.require("messages");
  const Json* messages = fields.any("messages");
  if (messages == nullptr) return;
  if (messages->is_array() && messages->empty()) {
    return fields.fail("messages", "messages is empty, but must have at least one message");
  }
  if (!messages->is_array()) {
    return fields.refuse("messages", *messages, "an array of at least one message");
  }
  for (std::size_t i = 0; i < messages->size() && fields.ok(); ++i) {
    read_message(fields, (*messages)[i], api::item_name("messages", i), conversation);
  }
  const ChatMessage* last = conversation.last();
  if (last == nullptr || last->role != "assistant") return;
  if (!last->tool_calls.empty()) {
    return fields.fail("messages",
                       "messages ends with a tool_use, but its tool_result must follow it");
  }
  request.chat.continue_last = true;
}

}  // namespace outrider::http
