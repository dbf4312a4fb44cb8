#include "http/anthropic/anthropic_form.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "http/exchange/error_form.h"
#include "http/exchange/error_reply.h"
#include "http/exchange/random_id.h"
#include "http/openai/openai_form.h"

namespace outrider::http {
namespace {

using json::Json;

enum class Kind { kNone, kThinking, kText, kToolUse };

// A block that nothing has been said of yet.
Json new_block(Kind kind) {
  if (kind == Kind::kThinking) return {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
  return {{"type", "text"}, {"text", ""}};
}

Json new_tool_use(const std::string& id, const std::string& name) {
  return {{"type", "tool_use"}, {"id", id}, {"name", name}, {"input", Json::object()}};
}

// A call's arguments as its input; nothing: they are no object, because the call was cut short or
// is beyond a limit of ours (json/json.h).
std::optional<Json> input_of(const std::string& arguments) {
  json::Parsed parsed = json::parse_written(arguments);
  if (!parsed.ok() || !parsed.value->is_object()) return std::nullopt;
  return std::move(parsed.value);
}

Json usage_json(std::int64_t prompt, std::int64_t cached, std::int64_t said) {
  return {{"input_tokens", prompt - cached},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached},
          {"output_tokens", said}};
}

Json usage_of(const Answer& answer) {
  const Completion& c = answer.result()->completion;
  Json usage =
      usage_json(c.prompt_tokens, c.cached_tokens, static_cast<std::int64_t>(c.tokens.size()));
  usage["output_tokens_details"] = {{"thinking_tokens", answer.reasoning_tokens()}};
  return usage;
}

class AnthropicForm : public AnswerForm {
 public:
  AnthropicForm(std::vector<std::string> stops, bool show_thinking)
      : id_(random_id("msg_")), stops_(std::move(stops)), show_thinking_(show_thinking) {}

  void begin(std::string& out) override {
    Json message = head();
    message["content"] = Json::array();
    message["stop_reason"] = Json();
    message["stop_sequence"] = Json();
    const PromptStats prompt = prompts().empty() ? PromptStats() : prompts().front();
    message["usage"] = usage_json(prompt.n_tokens, prompt.n_cached, 0);
    send("message_start", {{"message", std::move(message)}}, out);
    send("ping", Json::object(), out);
  }

  // Clients give up a connection that is silent for long.
  void progress(std::size_t /*i*/, const PromptStats& /*prompt*/, double /*fraction*/,
                std::string& out) override {
    send("ping", Json::object(), out);
  }

  void ping(std::string& out) const override { send("ping", Json::object(), out); }

  void delta(std::size_t /*i*/, const AnswerDelta& delta, std::string& out) override {
    if (!delta.reasoning.empty() && show_thinking_) {
      open(Kind::kThinking, new_block(Kind::kThinking), out);
      say({{"type", "thinking_delta"}, {"thinking", delta.reasoning}}, out);
    }
    if (!delta.content.empty()) {
      open(Kind::kText, new_block(Kind::kText), out);
      say({{"type", "text_delta"}, {"text", delta.content}}, out);
    }
    for (const ToolCallDelta& call : delta.tool_calls) {
      if (!call.id.empty()) {
        close(out);
        open(Kind::kToolUse, new_tool_use(call.id, call.name), out);
      }
      // A reader's calls end before the next one begins: more of another one cannot come.
      if (open_ != Kind::kToolUse || call.arguments.empty()) continue;
      say({{"type", "input_json_delta"}, {"partial_json", call.arguments}}, out);
    }
  }

  void end(std::size_t /*i*/, const Answer& answer, std::string& out) override {
    close(out);
    Json event = {{"delta", stop_of(answer)}, {"usage", usage_of(answer)}};
    add_outcome(answer, event);
    send("message_delta", event, out);
  }

  void finish(const std::vector<Answer>& /*answers*/, std::string& out) override {
    send("message_stop", Json::object(), out);
  }

  void fail(const Status& error, std::string& out) override {
    const int status = http_status(error.code());
    append_event(error_object(status, failure_of(error), ErrorForm::kAnthropic), out, "error");
  }

  Json whole(const std::vector<Answer>& answers) override {
    const Answer& answer = answers.front();
    const ChatReply& reply = answer.reply();
    Json message = head();
    Json& content = message["content"] = Json::array();
    if (!reply.reasoning.empty() && show_thinking_) {
      content.push_back(new_block(Kind::kThinking));
      content.back()["thinking"] = reply.reasoning;
    }
    if (!reply.content.empty()) {
      content.push_back(new_block(Kind::kText));
      content.back()["text"] = reply.content;
    }
    for (const ToolCall& call : reply.tool_calls) {
      content.push_back(new_tool_use(call.id, call.name));
      if (std::optional<Json> input = input_of(call.arguments)) {
        content.back()["input"] = *std::move(input);
      }
    }
    message.update(stop_of(answer));
    message["usage"] = usage_of(answer);
    add_outcome(answer, message);
    return message;
  }

 private:
  static void send(const char* type, const Json& fields, std::string& out) {
    Json event = {{"type", type}};
    event.update(fields);
    append_event(event, out, type);
  }

  Json head() const {
    return {{"id", id_}, {"type", "message"}, {"role", "assistant"}, {"model", model()}};
  }

  // {"stop_reason","stop_sequence"}
  Json stop_of(const Answer& answer) const {
    const Completion& c = answer.result()->completion;
    const bool client_stop = std::find(stops_.begin(), stops_.end(), c.stop) != stops_.end();
    // Who is told "tool_use" makes all calls, also one whose input could not be told.
    const std::vector<ToolCall>& all = answer.reply().tool_calls;
    const bool lost = std::any_of(all.begin(), all.end(), [](const ToolCall& call) {
      return !call.arguments.empty() && !input_of(call.arguments);
    });
    const bool calls = answer.has_calls() && !answer.has_cut_call() && !lost;
    // A time limit or the server's end has no name in this API.
    const char* reason = c.finish != FinishReason::kStop ? "max_tokens"
                         : calls                         ? "tool_use"
                         : client_stop                   ? "stop_sequence"
                                                         : "end_turn";
    return {{"stop_reason", reason}, {"stop_sequence", client_stop ? Json(c.stop) : Json()}};
  }

  // The open block is of this kind from here on; `block` where it has to be begun.
  void open(Kind kind, const Json& block, std::string& out) {
    if (kind == open_) return;
    close(out);
    open_ = kind;
    send("content_block_start", {{"index", index_}, {"content_block", block}}, out);
  }

  void say(const Json& delta, std::string& out) const {
    send("content_block_delta", {{"index", index_}, {"delta", delta}}, out);
  }

  void close(std::string& out) {
    if (open_ == Kind::kNone) return;
    if (open_ == Kind::kThinking) say({{"type", "signature_delta"}, {"signature", ""}}, out);
    send("content_block_stop", {{"index", index_}}, out);
    open_ = Kind::kNone;
    ++index_;
  }

  const std::string id_;
  const std::vector<std::string> stops_;
  const bool show_thinking_;
  Kind open_ = Kind::kNone;
  std::int64_t index_ = 0;  // of the open block, or of the next one
};

}  // namespace

std::unique_ptr<AnswerForm> make_anthropic_form(std::vector<std::string> stops,
                                                bool show_thinking) {
  return std::make_unique<AnthropicForm>(std::move(stops), show_thinking);
}

}  // namespace outrider::http
