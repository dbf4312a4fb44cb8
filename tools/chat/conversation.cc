#include "tools/chat/conversation.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "api/completion_params.h"
#include "input/prompt_file.h"
#include "json/json.h"
#include "store/atomic_file.h"

namespace outrider::tools {
namespace {

using json::Json;

Status not_a_conversation(const std::string& path, const std::string& reason) {
  return invalid_argument("'" + path + "' is no conversation: " + reason);
}

// What would be waited for without an end, or fill the memory, is not opened.
Status check_conversation_file(const std::string& path) {
  if (path == "-") {
    return invalid_argument(
        "'-' would be standard input, where messages come from; a file of that name is ./-");
  }
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  // Reading says it of the others.
  if (!std::filesystem::exists(status) || std::filesystem::is_directory(status)) return Status();
  if (!std::filesystem::is_regular_file(status)) {
    return not_a_conversation(path, "it is no regular file");
  }
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes <= Conversation::kMostFileBytes) return Status();
  return not_a_conversation(path, "it has " + std::to_string(bytes) + " bytes, at most " +
                                      std::to_string(Conversation::kMostFileBytes) + " can be");
}

// All that load() reads again.
Json message_json(const ChatMessage& message) {
  Json object = {{"role", message.role}, {"content", message.content}};
  if (!message.reasoning.empty()) object["reasoning_content"] = message.reasoning;
  if (!message.tool_call_id.empty()) object["tool_call_id"] = message.tool_call_id;
  if (!message.name.empty()) object["name"] = message.name;
  for (const ToolCall& call : message.tool_calls) {
    Json function = {{"name", call.name}, {"arguments", call.arguments}};
    Json object_of = {{"type", "function"}, {"function", std::move(function)}};
    if (!call.id.empty()) object_of["id"] = call.id;
    object["tool_calls"].push_back(std::move(object_of));
  }
  return object;
}

}  // namespace

std::string Conversation::system() const { return has_system() ? messages_.front().content : ""; }

void Conversation::set_system(const std::string& text) {
  if (has_system()) messages_.erase(messages_.begin());
  if (!text.empty()) messages_.insert(messages_.begin(), {.role = "system", .content = text});
}

void Conversation::add_user(std::string text) {
  messages_.push_back({.role = "user", .content = std::move(text)});
}

void Conversation::add_answer(ChatMessage answer) { messages_.push_back(std::move(answer)); }

std::size_t Conversation::question() const {
  for (std::size_t i = messages_.size(); i > 0; --i) {
    if (messages_[i - 1].role == "user") return i - 1;
  }
  return messages_.size();
}

const std::string* Conversation::last_question() const {
  const std::size_t at = question();
  return at < messages_.size() ? &messages_[at].content : nullptr;
}

bool Conversation::undo() {
  const std::size_t at = question();
  if (at == messages_.size()) return false;
  messages_.resize(at);
  return true;
}

bool Conversation::drop_answer() {
  const std::size_t at = question();
  if (at == messages_.size()) return false;
  messages_.resize(at + 1);
  return true;
}

void Conversation::clear() { messages_.resize(has_system() ? 1 : 0); }

Status Conversation::save(const std::string& path) const {
  Json messages = Json::array();
  for (const ChatMessage& message : messages_) {
    messages.push_back(message_json(message));
  }
  return write_whole_file(path, json::encode(Json{{"messages", std::move(messages)}}) + "\n");
}

Result<Conversation> Conversation::load(const std::string& path, const Watcher& watcher) {
  OUTRIDER_RETURN_IF_ERROR(check_conversation_file(path));
  OUTRIDER_ASSIGN_OR_RETURN(const std::string text, read_all(path, watcher));
  const json::Parsed parsed = json::parse(text);
  if (!parsed.ok()) return not_a_conversation(path, parsed.error);
  const Json& given = *parsed.value;
  if (!given.is_object() || !given.contains("messages")) {
    return not_a_conversation(path,
                              "it must be one object {\"messages\":[{\"role\",\"content\"}, ...]}");
  }
  // One reading of messages for all interfaces. None is fine here: a chat that has not begun.
  Conversation conversation;
  if (given["messages"].is_array() && given["messages"].empty()) return conversation;
  Result<CompletionRequest> read = api::read_completion(Json{{"messages", given["messages"]}});
  if (!read.ok()) return not_a_conversation(path, read.status().message());
  conversation.messages_ = std::move(read->messages);
  return conversation;
}

}  // namespace outrider::tools
