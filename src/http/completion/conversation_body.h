// What the bodies of the APIs that agents speak have in common (chat_form.h, responses_body.h,
// anthropic_body.h): parts of messages, tools, and the fields that stand for something of a
// CompletionRequest. All functions report the first error to `fields`, with the place in the body:
// "input[2].content[0].type".
//
// Tested by responses_body_test.cc, anthropic_body_test.cc.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json_fields.h"
#include "base/status.h"
#include "json/json.h"
#include "request/completion_request.h"

namespace outrider::http {

// Right in itself, but not done here (kUnsupported): `place` is of the type `type`.
void refuse_type(api::JsonFields& fields, const std::string& place, const std::string& type,
                 std::string_view why);

// `given` at `place`: a string, or an array of objects whose "type" is one of `types` and that hold
// "text", or of the type "refusal" that; their texts stand on lines of their own. Other parts
// (images, files) are kUnsupported.
std::string read_text_parts(api::JsonFields& fields, const json::Json& given,
                            const std::string& place, std::span<const std::string_view> types);

// Of a message its role, one of `roles`, and its content; null: one of them is wrong.
const json::Json* read_role(api::JsonFields& fields, const json::Json& message,
                            const std::string& place, const api::Dialect& dialect,
                            std::span<const std::string_view> roles, std::string& role);

// The text of one such part, whose type has been looked at.
std::string read_text_part(api::JsonFields& fields, const json::Json& part,
                           const std::string& place);

// Tools of a request, those that cannot be called here among them. A body has room for a million,
// which nobody would look at in reasonable time.
inline constexpr std::size_t kMaxGivenTools = 1024;

// Tools that agents send unasked and that cannot be called here: the service's own (web_search),
// and those whose calls have another form (custom, local_shell). Takes those of body["tools"] out
// whose type is not `usual`, and returns their types, each once. One without a type stays. Errors:
// kInvalidArgument, about "tools" (more than kMaxGivenTools; then the body is as it was).
Result<std::vector<std::string>> take_out_other_tools(json::Json& body, std::string_view usual);
// An error where a call is required and no tool is left, for want of those. Behind the choice.
void check_tools_left(api::JsonFields& fields, std::span<const std::string> taken_out,
                      const CompletionRequest& request);

// A conversation while it is read.
class Conversation {
 public:
  // Goes on behind what `messages` holds, which must outlive this.
  explicit Conversation(std::vector<ChatMessage>& messages) : messages_(messages) {}

  std::size_t size() const { return messages_.size(); }
  // The last one, if it is of that role and not among the first `n`; else a new one.
  ChatMessage& of_role(std::string_view role, std::size_t n = 0);
  // Null: there is none.
  const ChatMessage* last() const { return messages_.empty() ? nullptr : &messages_.back(); }

  void add(ChatMessage message) { messages_.push_back(std::move(message)); }
  // Instructions that follow each other are one message: templates take a single one, at the
  // beginning.
  void add_instructions(const std::string& text);
  // `message`: of this conversation, of_role("assistant").
  void add_call(ChatMessage& message, ToolCall call);
  // What came of a call; `place` is where its id stands, which must be one of add_call().
  void add_result(api::JsonFields& fields, const std::string& place, ChatMessage result);

 private:
  std::vector<ChatMessage>& messages_;
  std::map<std::string, std::string> tools_;  // by the call's id
};

// A schema as its text. Fails where it is not an object.
void read_schema(api::JsonFields& fields, std::string_view name, std::string& schema);

// The server's defaults for `body`, whose names are those of `dialect`: without what the body's own
// fields exclude. So a default constraint gives way where the body brings another one, tools (or
// OpenAI's older functions), whose calls have a grammar of their own, or ignore_eos; ignore_eos
// where it brings a constraint or tools; mirostat where it brings a filter, a penalty or a
// temperature of 0, and these where it brings mirostat. Behind take_out_other_tools(): of those
// that are taken out none is called.
CompletionRequest defaults_for(const json::Json& body, const api::Dialect& dialect,
                               const CompletionRequest& defaults);

// What the service does to conversations that grow long, which is not done here.
void read_context_management(api::JsonFields& fields, std::vector<std::string>& ignored);

// What is said keeps to `schema` (null: to any object). `place` is where that was asked for;
// strict: what of it cannot be kept to is refused.
void keep_to_schema(api::JsonFields& fields, const std::string& place, const json::Json* schema,
                    bool strict, CompletionRequest& request);

}  // namespace outrider::http
