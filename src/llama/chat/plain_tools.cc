#include "llama/chat/plain_tools.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "json/json.h"
#include "json/valid_strings.h"
#include "llama/schema/json_schema.h"

namespace outrider::llama {
namespace {

using json::Json;

constexpr std::string_view kBegin = "{\"tool_calls\":";

// How a call may begin: with the spaces that llama-common's grammars of objects have.
constexpr const char* kBegins =
    R"(\{(?: |\n{1,2}[ \t]{0,20})?"tool_calls"(?: |\n{1,2}[ \t]{0,20})?:)";

// An object or text that others wrote, as JSON; what is none is a text.
Json parsed_or_text(const std::string& text) {
  json::Parsed parsed = json::parse(text);
  return parsed.ok() ? std::move(*parsed.value) : Json(text);
}

std::string description(const ChatOptions& options, const std::vector<ToolSchema>& schemas) {
  return tools_in_words(options, schemas) +
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

// What a message of the user's, or a result, says.
std::string text_of(const std::vector<ChatMessage>& messages, const ChatMessage& message) {
  if (message.role != "tool") return message.content;
  return "Result of " + name_of(messages, message) + ": " + message.content;
}

// How far a text is what it should be: it ends before that is decided, it is not, or it is.
enum class Fit : std::uint8_t { kCut, kNo, kYes };

// Goes through the text of an object, which may have spaces where JSON has them.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  // `marks` in this order.
  Fit take(std::initializer_list<std::string_view> marks) {
    for (const std::string_view mark : marks) {
      skip_spaces();
      if (rest_.size() < mark.size() && mark.starts_with(rest_)) return Fit::kCut;
      if (!rest_.starts_with(mark)) return Fit::kNo;
      rest_.remove_prefix(mark.size());
    }
    return Fit::kYes;
  }

  Fit take_string(std::string& text) {
    skip_spaces();
    if (rest_.empty()) return Fit::kCut;
    if (rest_.front() != '"') return Fit::kNo;
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) return Fit::kCut;
    const json::Parsed parsed = json::parse(rest_.substr(0, end + 1));
    if (!parsed.ok()) return Fit::kNo;
    text = parsed.value->get<std::string>();
    rest_.remove_prefix(end + 1);
    return Fit::kYes;
  }

  // As its text; of one that is cut what there is of it.
  Fit take_object(std::string& text) {
    skip_spaces();
    if (rest_.empty()) return Fit::kCut;
    if (rest_.front() != '{') return Fit::kNo;
    const std::size_t length = json::object_length(rest_);
    text = rest_.substr(0, length == 0 ? rest_.size() : length);
    rest_.remove_prefix(text.size());
    return length == 0 ? Fit::kCut : Fit::kYes;
  }

 private:
  void skip_spaces() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n\r\t"), rest_.size()));
  }

  std::string_view rest_;
};

// The calls of the object that `scanner` has the list's beginning of, the last one perhaps cut.
Fit read_calls(Scanner& scanner, std::vector<ToolCall>& calls) {
  for (;;) {
    ToolCall call;
    Fit fit = scanner.take({"{", "\"name\"", ":"});
    if (fit == Fit::kYes) fit = scanner.take_string(call.name);
    if (fit == Fit::kYes) fit = scanner.take({",", "\"arguments\"", ":"});
    if (fit == Fit::kYes) fit = scanner.take_object(call.arguments);
    call.arguments = json::valid_strings(call.arguments);
    if (fit != Fit::kNo && !call.arguments.empty()) calls.push_back(std::move(call));
    if (fit == Fit::kYes) fit = scanner.take({"}"});
    if (fit != Fit::kYes) return fit;
    fit = scanner.take({","});
    if (fit != Fit::kNo) {
      if (fit == Fit::kCut) return fit;
      continue;
    }
    return scanner.take({"]", "}"});
  }
}

// Whether a text that is cut there begins to say calls. With less of it other JSON may have been
// meant.
bool means_calls(std::string_view text) {
  return Scanner(text).take({"{", "\"tool_"}) == Fit::kYes;
}

class PlainToolReader : public ChatReader {
 public:
  PlainToolReader(bool only_calls, std::shared_ptr<const ChatReader> own, bool reads_own)
      : only_calls_(only_calls), own_(std::move(own)), reads_own_(reads_own) {}

  ChatReply read(std::string_view text, bool complete) const override {
    // A call that is spoken of in reasoning is none.
    if (own_ == nullptr || !reads_own_) return read_content(text, complete);
    ChatReply said = own_->read(text, complete);
    ChatReply reply = read_content(said.content, complete);
    reply.reasoning = std::move(said.reasoning);
    return reply;
  }

  ChatReply given() const override { return own_ != nullptr ? own_->given() : ChatReply(); }

 private:
  ChatReply read_content(std::string_view text, bool complete) const {
    ChatReply reply;
    for (std::size_t begin = text.find('{'); begin != std::string_view::npos;
         begin = text.find('{', begin + 1)) {
      Scanner scanner(text.substr(begin));
      Fit fit = scanner.take({"{", "\"tool_calls\"", ":", "["});
      if (fit == Fit::kYes) fit = read_calls(scanner, reply.tool_calls);
      if (fit == Fit::kNo && reply.tool_calls.empty()) continue;
      const bool undecided = complete && !only_calls_ && !means_calls(text.substr(begin));
      if (fit == Fit::kCut && reply.tool_calls.empty() && undecided) break;
      reply.content = text.substr(0, begin);
      return reply;
    }
    reply.content = text;
    return reply;
  }

  const bool only_calls_;
  const std::shared_ptr<const ChatReader> own_;  // of what is no call; null: it is all content
  const bool reads_own_;
};

}  // namespace

bool has_calls_or_results(const std::vector<ChatMessage>& messages) {
  return std::any_of(messages.begin(), messages.end(), [](const ChatMessage& message) {
    return message.role == "tool" || !message.tool_calls.empty();
  });
}

std::string tools_in_words(const ChatOptions& options, const std::vector<ToolSchema>& schemas) {
  Json tools = Json::array();
  for (std::size_t i = 0; i < options.tools.size(); ++i) {
    tools.push_back({{"name", options.tools[i].name},
                     {"description", options.tools[i].description},
                     {"parameters", schemas[i].given}});
  }
  const std::string when = options.tool_choice == ToolChoice::kRequired
                               ? "Answer with a call"
                               : "Where a tool helps, answer with a call";
  return "You can call these tools: " + json::encode(tools) + "\n" + when;
}

std::vector<ChatMessage> calls_as_texts(const std::vector<ChatMessage>& messages) {
  std::vector<ChatMessage> plain;
  bool behind_result = false;
  for (const ChatMessage& message : messages) {
    // Several results, and what the user says behind them, are one message: many templates want
    // roles to alternate.
    const bool joins = behind_result && (message.role == "tool" || message.role == "user");
    behind_result = message.role == "tool" || joins;
    if (joins) {
      plain.back().content += "\n\n" + text_of(messages, message);
      continue;
    }
    ChatMessage& now = plain.emplace_back(message);
    if (message.role == "tool") {
      now = {.role = "user", .content = text_of(messages, message)};
    } else if (!message.tool_calls.empty()) {
      now.tool_calls.clear();
      now.content += (now.content.empty() ? "" : "\n") + calls_text(message.tool_calls);
    }
  }
  return plain;
}

std::vector<ChatMessage> describe_tools(const std::vector<ChatMessage>& messages,
                                        const ChatOptions& options,
                                        const std::vector<ToolSchema>& schemas) {
  std::vector<ChatMessage> plain = calls_as_texts(messages);
  const std::string tools = description(options, schemas);
  if (!plain.empty() && plain.front().role == "system") {
    plain.front().content += "\n\n" + tools;
  } else {
    plain.insert(plain.begin(), {.role = "system", .content = tools});
  }
  return plain;
}

Result<ChatGrammar> plain_tool_grammar(const ChatOptions& options,
                                       const std::vector<ToolSchema>& schemas,
                                       const ValueRules& rules) {
  Json one_of = Json::array();
  Json definitions_of_all = Json::object();
  for (std::size_t i = 0; i < options.tools.size(); ++i) {
    Json own = schemas[i].convertible;
    if (own.contains("$defs")) {  // under names that no other tool has
      definitions_of_all.update(own["$defs"]);
      own.erase("$defs");
    }
    one_of.push_back(
        {{"type", "object"},
         {"properties",
          {{"name", {{"const", options.tools[i].name}}}, {"arguments", std::move(own)}}},
         {"required", Json::array({"name", "arguments"})},
         {"additionalProperties", false}});
  }
  Json calls = {{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", std::move(one_of)}}}};
  if (takes_one_call(options)) calls["maxItems"] = 1;
  const Json schema = {{"type", "object"},
                       {"properties", {{"tool_calls", std::move(calls)}}},
                       {"required", Json::array({"tool_calls"})},
                       {"additionalProperties", false},
                       {"$defs", std::move(definitions_of_all)}};
  Result<std::string> gbnf = grammar_from_convertible(schema, rules);
  if (!gbnf.ok()) return gbnf.status().about("tools");
  ChatGrammar grammar{.gbnf = std::move(*gbnf)};
  if (options.tool_choice != ToolChoice::kRequired) grammar.patterns = {kBegins};
  return grammar;
}

std::shared_ptr<const ChatReader> plain_tool_reader(bool only_calls,
                                                    std::shared_ptr<const ChatReader> own,
                                                    bool reads_own) {
  return std::make_shared<PlainToolReader>(only_calls, std::move(own), reads_own);
}

}  // namespace outrider::llama
