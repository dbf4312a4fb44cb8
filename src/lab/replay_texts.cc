#include "lab/replay_texts.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "input/corpus.h"
#include "input/prompt_file.h"
#include "json/json.h"

namespace outrider::lab {
namespace {

using json::Json;

bool is_json_lines(const std::string& path, std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool object = first != std::string_view::npos && text[first] == '{';
  return path.ends_with(".jsonl") || object;
}

class TextReader {
 public:
  TextReader(const Vocabulary& vocabulary, ReplayTexts& corpus)
      : vocabulary_(vocabulary), corpus_(corpus) {}

  Status add_text(std::string_view text) {
    Result<std::vector<Token>> tokens =
        vocabulary_.tokenize(text, /*add_special=*/true, /*parse_special=*/true);
    if (!tokens.ok()) return tokens.status();
    if (!tokens->empty()) corpus_.texts.push_back({.tokens = std::move(*tokens), .given = 1});
    return Status();
  }

  // "" or what is wrong with the line.
  std::string add_line(const Json& line) {
    if (!line.is_object()) return "must be an object, but is " + std::string(json::kind(line));
    if (line.contains("messages")) return add_messages(line["messages"]);
    for (const char* field : {"prompt", "text"}) {
      if (!line.contains(field)) continue;
      if (!line[field].is_string()) {
        return "'" + std::string(field) + "' must be a text, but is " +
               std::string(json::kind(line[field]));
      }
      return add_text(line[field].get<std::string>()).message();
    }
    if (!line.contains("turns")) return "has none of 'messages', 'turns', 'prompt' and 'text'";
    std::string joined;
    const std::string complaint = take_turns(line["turns"], joined);
    if (!complaint.empty()) return complaint;
    return add_text(joined).message();
  }

 private:
  std::string add_messages(const Json& messages) {
    std::vector<ChatMessage> all;
    std::string complaint = take_messages(messages, all);
    if (!complaint.empty()) return complaint;
    std::vector<ChatMessage> before;
    for (const ChatMessage& turn : all) {
      if (turn.role == "assistant") {
        const Status added = add_turn(before, turn.content);
        if (!added.ok()) return added.message();
      }
      before.push_back(turn);
    }
    return "";
  }

  Status add_turn(const std::vector<ChatMessage>& before, const std::string& said) {
    Result<std::vector<Token>> prompt = vocabulary_.tokenize(prompt_text(before), true, true);
    if (!prompt.ok()) return prompt.status();
    Result<std::vector<Token>> tokens = vocabulary_.tokenize(said, false, false);
    if (!tokens.ok()) return tokens.status();
    ReplayText text{.tokens = std::move(*prompt)};
    text.tokens.insert(text.tokens.end(), tokens->begin(), tokens->end());
    text.given = std::max<std::size_t>(1, text.tokens.size() - tokens->size());
    if (text.tokens.size() > text.given) corpus_.texts.push_back(std::move(text));
    return Status();
  }

  // By the model's template; where it has none, or refuses these roles, line by line.
  std::string prompt_text(const std::vector<ChatMessage>& before) {
    if (before.empty()) return "";
    Result<std::string> text = vocabulary_.chat_text(before);
    if (text.ok()) return *text;
    if (corpus_.notes.empty()) {
      corpus_.notes.push_back("conversations are joined by newlines, without a chat template: " +
                              text.status().message());
    }
    std::string joined;
    for (const ChatMessage& message : before) joined += message.content + "\n";
    return joined;
  }

  const Vocabulary& vocabulary_;
  ReplayTexts& corpus_;
};

}  // namespace

Result<ReplayTexts> read_replay_texts(const std::string& path, const Vocabulary& vocabulary,
                                      const Watcher& watcher) {
  Result<std::string> text = read_all(path, watcher);
  if (!text.ok()) return text.status();
  const std::string name = path == "-" ? "standard input" : "'" + path + "'";
  ReplayTexts corpus;
  TextReader reader(vocabulary, corpus);
  if (is_json_lines(path, *text)) {
    const std::string error = json::parse_lines(
        *text, [&reader](const Json& line, std::size_t) { return reader.add_line(line); });
    if (!error.empty()) return invalid_argument(name + ", " + error);
  } else {
    corpus.plain = true;
    if (!text->empty() && text->back() == '\n') text->pop_back();
    const Status added = reader.add_text(*text);
    if (!added.ok()) return added.with_context(name);
  }
  if (corpus.texts.empty()) return invalid_argument(name + " holds no text");
  return corpus;
}

}  // namespace outrider::lab
