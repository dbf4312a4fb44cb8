#include "tools/chat/chat_state.h"

#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/one_line.h"
#include "base/utf8.h"
#include "input/prompt_file.h"
#include "tools/answer_text.h"
#include "tools/chat/chat_settings.h"
#include "tools/output_file.h"
#include "tools/report.h"

namespace outrider::tools {
namespace {

constexpr const char* kFullHint =
    "/clear begins anew, /undo takes the last turn back, and '/set shift_keep 64' (--shift-keep) "
    "goes on without the oldest text behind the first 64 tokens";

void say(std::string text) {
  if (text.empty() || text.back() != '\n') text += '\n';
  print_text(text);
}

// `text` with U+FFFD for what is not UTF-8, and without a character that its end cuts short.
std::string valid_utf8(std::string text) {
  text.resize(complete_utf8_prefix(text));
  while (const std::optional<std::size_t> at = first_invalid_utf8(text)) {
    text.replace(*at, 1, "\xEF\xBF\xBD");
  }
  return text;
}

// The one place that decides what of an answer the next turns see. A model may say bytes that are
// no text, or be stopped inside a character; templates refuse both.
ChatMessage assistant_message(const CompletionResult& result) {
  ChatReply reply = read_reply(result);
  return {.role = "assistant",
          .content = valid_utf8(std::move(reply.content)),
          .reasoning = valid_utf8(std::move(reply.reasoning))};
}

std::string first_words(const std::string& text) {
  constexpr std::size_t kMost = 60;
  const std::string line = one_line(text);
  if (line.size() <= kMost) return line;
  std::size_t end = kMost;  // not inside a character
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
  return line.substr(0, end) + "...";
}

// Of a turn in which nothing was said: `before` is the conversation again, `asked` ends with the
// question.
const char* what_stays(const Conversation& before, const Conversation& asked) {
  const std::size_t n = before.messages().size();
  if (n > asked.messages().size()) return "the earlier answer stays)";
  return n < asked.messages().size() ? "the question is taken back)" : "the question stays)";
}

// A full context ended it, and not a limit that was asked for.
bool filled_context(const CompletionResult& result, std::int32_t max_tokens) {
  const Completion& c = result.completion;
  return c.finish == FinishReason::kLength &&
         (max_tokens < 0 || static_cast<std::int64_t>(c.tokens.size()) < max_tokens);
}

}  // namespace

ChatState::ChatState(const ChatParts& parts)
    : parts_(parts), output_(STDOUT_FILENO, use_color(parts.answer.color), /*whole_lines=*/true) {}

Status ChatState::ask(const std::string& text) {
  const Status valid = check_utf8(text, "the message");
  if (!valid.ok()) {
    put_error(valid);
    return valid;
  }
  Conversation before = conversation_;
  conversation_.add_user(text);
  return answer(std::move(before));
}

void ChatState::put_error(const Status& status) {
  if (!parts_.answer.output.json) return;
  output_.write(error_line(status));
  ended_ = ended_ || output_.failed();
}

Status ChatState::retry() {
  Conversation before = conversation_;
  if (!conversation_.drop_answer()) return not_found("there is no question to answer again");
  return answer(std::move(before));
}

Status ChatState::answer(Conversation before) {
  CompletionRequest request = named_request(parts_.request, parts_.model, parts_.local.target());
  request.messages = conversation_.messages();
  const Result<std::shared_ptr<const CompletionResult>> result = print_answer(
      parts_.local, parts_.terminal, parts_.answer, std::move(request), output_, Apart::kThoughts);
  if (output_.failed()) {
    ended_ = true;
    return output_.status();
  }
  if (!result.ok()) {
    conversation_ = std::move(before);
    const Status& status = result.status();
    if (status.field() == "prompt") say(std::string("the conversation is too long: ") + kFullHint);
    put_error(status);
    return status;
  }
  const Completion& completion = (*result)->completion;
  last_ = *result;
  last_width_ = parts_.request.request.width;
  stats_.add(completion);
  if (parts_.answer.stats) {
    std::fputs(answer_stats(*last_, parts_.local, last_width_).c_str(), stderr);
  }
  ChatMessage said = assistant_message(*last_);
  // A mark that begins a thought is no word yet.
  const bool nothing =
      said.content.empty() && said.reasoning.empty() && completion.finish != FinishReason::kStop;
  if (!nothing && completion.error.ok()) {
    tell_about(*last_, said);
    conversation_.add_answer(std::move(said));
    return Status();
  }
  if (nothing && completion.error.ok()) {
    const bool stopped = completion.finish == FinishReason::kCancelled;
    say(std::string(stopped ? "(stopped" : "(it ended") + " before anything was said; " +
        what_stays(before, conversation_));
    tell_of_context(*last_);
  }
  conversation_ = std::move(before);
  return completion.error;
}

void ChatState::tell_about(const CompletionResult& result, const ChatMessage& said) const {
  if (said.content.empty() && !said.reasoning.empty()) {
    say("(it ended while the model was thinking, before it answered)");
  }
  if (result.completion.finish == FinishReason::kCancelled) {
    say(result.ended_by == EndedBy::kTimeout ? "(stopped by timeout_ms)" : "(stopped)");
  }
  tell_of_context(result);
}

void ChatState::tell_of_context(const CompletionResult& result) const {
  if (result.prompt.truncated() || result.shifted) {
    say("(the context was full; the oldest text was left out)");
  }
  if (filled_context(result, parts_.request.request.max_tokens)) {
    say("(the context of " + std::to_string(result.prompt.n_ctx) + " tokens is full: " + kFullHint +
        ")");
  }
}

Status ChatState::show_stats() const {
  if (last_ == nullptr) {
    say("no answer yet");
    return Status();
  }
  say("last answer\n" + answer_stats(*last_, parts_.local, last_width_) +
      drafter_rows(last_->completion.speculation.drafters) + "\nthis chat\n" + stats_.table());
  return Status();
}

std::string ChatState::color_help() const {
  if (!use_color(parts_.answer.color)) {
    return "Started with --color, answers show by their colours who guessed each token.";
  }
  const std::vector<DrafterStatus> drafters = parts_.local.runtime().status().drafters;
  // Of those that are there. A draft that is ready is attached with the next step.
  std::vector<std::string_view> names;
  for (const DrafterStatus& drafter : drafters) {
    if (drafter.attached || drafter.state == ModelState::kReady) names.push_back(drafter.name);
  }
  if (names.empty()) return "No token is guessed here: there is no drafter.";
  return "Colours of guessed tokens: " + color_legend(names) +
         "; what the model itself had to say has none.";
}

Status ChatState::set(const std::string& argument) {
  CompletionRequest& request = parts_.request.request;
  const std::size_t blank = argument.find_first_of(" \t");
  const std::string name = argument.substr(0, blank);
  if (name.empty()) {
    const std::string changed = changed_settings(request);
    say(changed.empty() ? "all settings have their defaults" : changed);
    return Status();
  }
  if (blank == std::string::npos) {
    const Result<std::string> text = setting_text(request, name);
    if (text.ok()) say(name + " is " + *text);
    return text.status();
  }
  CompletionRequest changed = request;
  const std::string value = argument.substr(argument.find_first_not_of(" \t", blank));
  OUTRIDER_RETURN_IF_ERROR(change_setting(changed, name, value));
  OUTRIDER_RETURN_IF_ERROR(check_rule(changed, parts_.model.target.exact));
  request = std::move(changed);
  say(name + " is " + *setting_text(request, name));
  return Status();
}

Status ChatState::set_system(const std::string& argument) {
  if (argument.empty()) {
    say(conversation_.system().empty() ? "there is no system message" : conversation_.system());
    return Status();
  }
  OUTRIDER_RETURN_IF_ERROR(check_utf8(argument, "the system message"));
  conversation_.set_system(argument == "\"\"" ? "" : argument);
  return Status();
}

Status ChatState::save(const std::string& path) const {
  OUTRIDER_RETURN_IF_ERROR(check_output_file(
      {.option = "/save",
       .path = path,
       .reads = files_read(parts_.request, parts_.model),
       .check_old = [](const std::string& old) { return Conversation::load(old).status(); }}));
  OUTRIDER_RETURN_IF_ERROR(conversation_.save(path));
  say("saved " + std::to_string(conversation_.messages().size()) + " messages to '" + path + "'");
  return Status();
}

Status ChatState::load(const std::string& path) {
  OUTRIDER_ASSIGN_OR_RETURN(Conversation read, Conversation::load(path, parts_.terminal.watcher()));
  conversation_ = std::move(read);
  const std::vector<ChatMessage>& messages = conversation_.messages();
  const bool open = !messages.empty() && messages.back().role == "user";
  say("loaded " + std::to_string(messages.size()) + " messages from '" + path + "'" +
      (open ? "; the last one has no answer, /retry asks it" : ""));
  return Status();
}

Status ChatState::undo() {
  const std::string* question = conversation_.last_question();
  if (question == nullptr) return not_found("there is nothing to take back");
  say("taken back: " + first_words(*question));
  conversation_.undo();
  return Status();
}

Status ChatState::clear() {
  conversation_.clear();
  say(conversation_.system().empty() ? "a new conversation"
                                     : "a new conversation, with the same system message");
  return Status();
}

}  // namespace outrider::tools
