#include "input/corpus.h"

#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "input/prompt_file.h"
#include "json/json.h"

namespace outrider {
namespace {

using json::Json;

// The contents alone: a line to learn from needs no roles. "" or what is wrong with the line.
std::string take_contents(const Json& messages, std::string& text) {
  if (!messages.is_array()) return "'messages' must be an array of messages";
  for (const Json& message : messages) {
    const bool good =
        message.is_object() && message.contains("content") && message["content"].is_string();
    if (!good) return "each of 'messages' must have a 'content' that is a text";
    text += (text.empty() ? "" : "\n") + message["content"].get<std::string>();
  }
  return "";
}

std::string take_line(const Json& line, std::vector<std::string>& texts) {
  if (!line.is_object()) return "must be an object, but is " + std::string(json::kind(line));
  std::string text;
  std::string complaint;
  if (line.contains("turns")) {
    complaint = take_turns(line["turns"], text);
  } else if (line.contains("messages")) {
    complaint = take_contents(line["messages"], text);
  } else if (line.contains("prompt") && line["prompt"].is_string()) {
    text = line["prompt"];
  } else {
    complaint = "has none of 'turns', 'prompt' (a text) and 'messages'";
  }
  if (complaint.empty()) texts.push_back(std::move(text));
  return complaint;
}

}  // namespace

std::string take_turns(const Json& turns, std::string& text) {
  if (!turns.is_array()) return "'turns' must be an array of texts";
  for (const Json& turn : turns) {
    if (!turn.is_string()) return "'turns' must hold texts only";
    text += (text.empty() ? "" : "\n") + turn.get<std::string>();
  }
  return "";
}

std::string take_messages(const Json& messages, std::vector<ChatMessage>& list) {
  if (!messages.is_array()) return "'messages' must be an array of messages";
  const auto is_text = [](const Json& message, const char* field) {
    return message.contains(field) && message[field].is_string();
  };
  for (const Json& message : messages) {
    const bool good =
        message.is_object() && is_text(message, "role") && is_text(message, "content");
    if (!good) return "each of 'messages' must have a 'role' and a 'content', both texts";
    list.push_back({message["role"], message["content"]});
  }
  return "";
}

Result<std::vector<std::string>> read_corpus(const std::string& path, const Watcher& watcher) {
  Result<std::string> contents = read_all(path, watcher);
  if (!contents.ok()) return contents.status();
  std::vector<std::string> texts;
  if (!std::string_view(path).ends_with(".jsonl")) {
    OUTRIDER_RETURN_IF_ERROR(check_utf8(*contents, "'" + path + "'"));
    texts.push_back(*std::move(contents));
    return texts;
  }
  const std::string error = json::parse_lines(
      *contents, [&](const Json& line, std::size_t) { return take_line(line, texts); });
  if (error.empty()) return texts;
  return invalid_argument("'" + path + "', " + error +
                          "; it takes JSON lines with 'turns', 'prompt' or 'messages'");
}

Status for_each_text(const std::vector<std::string>& paths, const Vocabulary& vocabulary,
                     CorpusForm form, const Watcher& watcher, const std::string& title,
                     const std::function<Status(const std::vector<Token>&)>& take) {
  const bool special = form == CorpusForm::kAsLlama;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    watcher.update(title, static_cast<double>(i) / static_cast<double>(paths.size()));
    const Result<std::vector<std::string>> corpus = read_corpus(paths[i], watcher);
    if (!corpus.ok()) return corpus.status();
    for (std::string text : *corpus) {
      if (watcher.interrupted()) return cancelled("interrupted");
      if (special && !text.empty() && text.back() == '\n') text.pop_back();
      const Result<std::vector<Token>> tokens = vocabulary.tokenize(text, special, special);
      const Status status = tokens.ok() ? take(*tokens) : tokens.status();
      if (!status.ok()) return status.with_context("'" + paths[i] + "'");
    }
  }
  return Status();
}

}  // namespace outrider
