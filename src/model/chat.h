// A conversation, as a model's own chat template writes it, and what it said, taken apart again.
//
// A template fixes both directions: how messages and tools become a prompt, and how the model marks
// reasoning and calls of tools in its answer. So chat_prompt() (model/vocabulary.h) gives the
// prompt together with what the answer must keep to (a grammar) and a reader of the answer.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// A call of a tool, as a model made it.
struct ToolCall {
  std::string id;         // empty: the template has none
  std::string name;       // of the tool
  std::string arguments;  // a JSON object as text; in an unfinished answer its beginning
};

struct ChatMessage {
  std::string role;                       // "system", "user", "assistant", "tool"
  std::string content;                    // UTF-8
  std::string reasoning = {};             // of an assistant's message
  std::vector<ToolCall> tool_calls = {};  // likewise
  std::string tool_call_id = {};          // of a tool's message: the call that it answers
  std::string name = {};                  // of a tool's message: the tool
};

struct ChatTool {
  std::string name;
  std::string description;
  std::string parameters;  // JSON schema of an object, as text
  // Every call keeps to the schema, and one that cannot be kept to is refused. Else calls keep to
  // as much of it as a grammar can say.
  bool strict = false;
};

enum class ToolChoice { kAuto, kRequired, kNone };

// What of a last message goes on; kSaidLast: its content, or its reasoning where it has only that.
enum class ContinuedPart { kSaidLast, kContent, kReasoning };

// What of a conversation is not a message.
struct ChatOptions {
  std::vector<ChatTool> tools;
  ToolChoice tool_choice = ToolChoice::kAuto;
  bool parallel_tool_calls = true;  // several calls in one answer, where the template can
  bool one_call = false;            // not even then: a certain tool is to be called, once
  bool reasoning = true;            // where the template can switch it off: whether it is on
  // Reasoning is not told apart: an answer's content is all that is said, with the template's
  // marks.
  bool reasoning_in_content = false;
  std::string template_values;  // further values for the template, a JSON object; empty: none
  // The last message is the assistant's, and its text goes on. One that says nothing is as if not
  // there.
  bool continue_last = false;
  ContinuedPart continued_part = ContinuedPart::kSaidLast;
  // The content is JSON by this schema (a JSON text); empty: it is free. Where there are tools, an
  // answer is such content or calls.
  std::string json_schema;
  bool json_schema_strict = true;  // as ChatTool::strict
};

// Whether an answer has one call at most.
inline bool takes_one_call(const ChatOptions& options) {
  return options.one_call || !options.parallel_tool_calls;
}

// Most of what a conversation may hold.
inline constexpr std::size_t kMaxChatTools = 128;
inline constexpr std::size_t kMaxToolCalls = 128;                   // of one message
inline constexpr std::size_t kMaxChatBytes = std::size_t{8} << 20;  // all texts together

// An answer taken apart. What it holds grows with the text that it was read from.
struct ChatReply {
  std::string content;
  std::string reasoning;
  std::vector<ToolCall> tool_calls;
};

// Immutable; any thread.
class ChatReader {
 public:
  virtual ~ChatReader() = default;

  // `text`: the answer from its beginning. `complete`: it does not go on. What cannot be read as
  // the template's format is content.
  virtual ChatReply read(std::string_view text, bool complete) const = 0;

  // What the message that goes on (ChatOptions::continue_last) has of the answer already, which
  // read() leaves out; its content and reasoning stand in front of what is read.
  virtual ChatReply given() const { return {}; }
};

// How an answer's reasoning is marked, for what is to look behind it only.
struct ReasoningMarks {
  std::string begin;             // empty: there is no reasoning
  std::vector<std::string> end;  // any of these
  bool open = false;             // the prompt has begun it
};

// What a sampler is to hold the answer to.
struct ChatGrammar {
  std::string gbnf;  // empty: nothing
  // What the prompt's end has said of it already: the grammar describes this text, too.
  std::string said;
  // Where it begins to hold: with one of these texts, or where one of these regular expressions
  // (ECMAScript) finds something (the first group that is not empty is where the grammar begins,
  // without one the whole finding). Neither: from the answer's beginning.
  std::vector<std::string> triggers;
  std::vector<std::string> patterns;
  ReasoningMarks reasoning;  // triggers in it do not count
};

// What a template can express.
struct ChatAbilities {
  bool tools = false;      // tools in the prompt, and calls in answers
  bool reasoning = false;  // reasoning apart from content
};

struct ChatPrompt {
  std::string text;  // control tokens as their texts
  // For tools, or for json_schema where the template marks what stands around the content. Where it
  // is empty, json_schema is the caller's to keep to, from the answer's beginning.
  ChatGrammar grammar;
  std::vector<std::string> stop;             // texts at which the answer ends, beside the request's
  std::vector<std::string> shown;            // control tokens that the answer's text must show,
                                             // because `reader` looks for them
  std::shared_ptr<const ChatReader> reader;  // not null
};

}  // namespace outrider
