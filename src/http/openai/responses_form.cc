#include "http/openai/responses_form.h"

#include <cstdint>
#include <ctime>
#include <optional>
#include <utility>

#include "http/exchange/error_reply.h"
#include "http/exchange/random_id.h"
#include "http/openai/openai_form.h"

namespace outrider::http {
namespace {

using json::Json;

enum class Kind { kNone, kReasoning, kMessage, kCall };

// An item's list of parts, and what the API calls the text of one and the events about both.
struct PartNames {
  const char* list;
  const char* index;
  const char* type;  // of the part
  const char* text;  // response.TEXT.delta
  const char* part;  // response.PART.added
};
constexpr PartNames kContent = {"content", "content_index", "output_text", "output_text",
                                "content_part"};
constexpr PartNames kReasoning = {"content", "content_index", "reasoning_text", "reasoning_text",
                                  "content_part"};
constexpr PartNames kSummary = {"summary", "summary_index", "summary_text",
                                "reasoning_summary_text", "reasoning_summary_part"};

// A part that nothing has been said of yet.
Json text_part(Kind kind, const PartNames& names) {
  if (kind == Kind::kReasoning) return {{"type", names.type}, {"text", ""}};
  return {{"type", names.type},
          {"text", ""},
          {"annotations", Json::array()},
          {"logprobs", Json::array()}};
}

// An item that nothing has been said of yet.
Json new_item(Kind kind) {
  if (kind == Kind::kReasoning) {
    return {{"id", random_id("rs_")},
            {"type", "reasoning"},
            {"status", "in_progress"},
            {"summary", Json::array()},
            {"content", Json::array()}};
  }
  return {{"id", random_id("msg_")},
          {"type", "message"},
          {"status", "in_progress"},
          {"role", "assistant"},
          {"content", Json::array()}};
}

Json new_call(const ToolCallDelta& call) {
  return {{"id", random_id("fc_")}, {"type", "function_call"}, {"status", "in_progress"},
          {"call_id", call.id},     {"name", call.name},       {"arguments", ""}};
}

void append(Json& text, const std::string& more) { text.get_ref<std::string&>() += more; }

Json usage_json(const Answer& answer) {
  const Completion& c = answer.result()->completion;
  const std::int64_t said = static_cast<std::int64_t>(c.tokens.size());
  return {{"input_tokens", c.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", c.cached_tokens}, {"cache_write_tokens", 0}}},
          {"output_tokens", said},
          {"output_tokens_details", {{"reasoning_tokens", answer.reasoning_tokens()}}},
          {"total_tokens", c.prompt_tokens + said}};
}

// What of the settings OpenAI's object repeats; these are the defaults.
Json settings_of(const Json& body, const CompletionRequest& request) {
  Json settings = {{"instructions", Json()},
                   {"max_output_tokens", Json()},
                   {"max_tool_calls", Json()},
                   {"metadata", Json::object()},
                   {"parallel_tool_calls", request.chat.parallel_tool_calls},
                   {"previous_response_id", Json()},
                   {"reasoning", {{"effort", Json()}, {"summary", Json()}}},
                   {"store", false},
                   {"temperature", request.sampling.temperature},
                   {"text", {{"format", {{"type", "text"}}}}},
                   {"tool_choice", "auto"},
                   {"tools", Json::array()},
                   {"top_p", request.sampling.top_p},
                   {"truncation", "disabled"},
                   {"user", Json()}};
  for (const char* name :
       {"instructions", "max_output_tokens", "max_tool_calls", "metadata", "reasoning",
        "temperature", "text", "tool_choice", "tools", "top_p", "user"}) {
    const Json::const_iterator given = body.find(name);
    if (given != body.end() && !given->is_null()) settings[name] = *given;
  }
  return settings;
}

class ResponsesForm : public AnswerForm {
 public:
  ResponsesForm(const Json& body, const CompletionRequest& request, bool as_summary)
      : id_(random_id("resp_")),
        created_(std::time(nullptr)),
        settings_(settings_of(body, request)),
        reasoning_(as_summary ? kSummary : kReasoning) {}

  void begin(std::string& out) override {
    streamed_ = true;
    send("response.created", {{"response", response("in_progress")}}, out);
    send("response.in_progress", {{"response", response("in_progress")}}, out);
  }

  void delta(std::size_t /*i*/, const AnswerDelta& delta, std::string& out) override {
    if (!delta.reasoning.empty()) {
      open(Kind::kReasoning, out);
      append(part()["text"], delta.reasoning);
      Json event = place(/*in_part=*/true);
      event["delta"] = delta.reasoning;
      send_of(names().text, "delta", event, out);
    }
    if (!delta.content.empty()) {
      open(Kind::kMessage, out);
      append(part()["text"], delta.content);
      Json logprobs = logprobs_json(delta.tokens);
      for (const Json& token : logprobs) part()["logprobs"].push_back(token);
      Json event = place(/*in_part=*/true);
      event["delta"] = delta.content;
      event["logprobs"] = std::move(logprobs);
      send_of(names().text, "delta", event, out);
    }
    for (const ToolCallDelta& call : delta.tool_calls) say_call(call, out);
  }

  void end(std::size_t /*i*/, const Answer& answer, std::string& out) override {
    // Something of an answer that says nothing.
    if (items_.empty()) open(Kind::kMessage, out);
    close(cut(answer) ? "incomplete" : "completed", out);
  }

  void finish(const std::vector<Answer>& answers, std::string& out) override {
    send(cut(answers.front()) ? "response.incomplete" : "response.completed",
         {{"response", outcome(answers.front())}}, out);
  }

  void fail(const Status& error, std::string& out) override {
    Json failed = response("failed");
    const int status = http_status(error.code());
    const char* code = status == 429   ? "rate_limit_exceeded"
                       : status == 400 ? "invalid_prompt"
                                       : "server_error";
    failed["error"] = {{"code", code}, {"message", error.message()}};
    send("response.failed", {{"response", std::move(failed)}}, out);
  }

  // The items are built as in a stream, without its events.
  void note(std::size_t i, const AnswerDelta& delta) override {
    std::string none;
    this->delta(i, delta, none);
  }
  Json whole(const std::vector<Answer>& answers) override {
    std::string none;
    end(0, answers.front(), none);
    return outcome(answers.front());
  }

 private:
  void send(const char* type, const Json& fields, std::string& out) {
    if (!streamed_) return;  // it was never begun: it is sent at once
    Json event = {{"type", type}};
    event.update(fields);
    event["sequence_number"] = next_event_++;
    append_event(event, out, type);
  }

  void send_of(const char* what, const char* became, const Json& fields, std::string& out) {
    const std::string type = std::string("response.") + what + "." + became;
    send(type.c_str(), fields, out);
  }

  Json response(const char* status) const {
    Json object = {{"id", id_},
                   {"object", "response"},
                   {"created_at", created_},
                   {"status", status},
                   {"background", false},
                   {"error", Json()},
                   {"incomplete_details", Json()},
                   {"model", model()},
                   {"output", items_}};
    object.update(settings_);
    object["usage"] = Json();
    return object;
  }

  Json outcome(const Answer& answer) const {
    Json object = response(cut(answer) ? "incomplete" : "completed");
    if (cut(answer)) {
      // The API's only name for a text that would have gone on, so also that of a time limit or the
      // server's end. A call that a stop text cut has none, and clients take no reason that is
      // null.
      const bool goes_on = answer.result()->completion.finish != FinishReason::kStop;
      if (goes_on) object["incomplete_details"] = {{"reason", "max_output_tokens"}};
    } else {
      object["completed_at"] = std::time(nullptr);
    }
    object["usage"] = usage_json(answer);
    add_outcome(answer, object);
    return object;
  }

  // Whether it would have gone on, or ends in a call that cannot be made.
  static bool cut(const Answer& answer) {
    return answer.result()->completion.finish != FinishReason::kStop || answer.has_cut_call();
  }

  Json& item() { return items_.back(); }
  // Of the open item, which has parts.
  const PartNames& names() const { return open_ == Kind::kReasoning ? reasoning_ : kContent; }
  Json& part() { return items_.back()[names().list].back(); }

  // Where an event belongs.
  Json place(bool in_part) {
    Json fields = {{"item_id", item()["id"]}, {"output_index", items_.size() - 1}};
    if (in_part) fields[names().index] = 0;
    return fields;
  }

  // The open item is of this kind from here on.
  void open(Kind kind, std::string& out) {
    if (kind == open_) return;
    close("completed", out);
    add(kind, new_item(kind), out);
    item()[names().list].push_back(text_part(kind, names()));
    Json event = place(/*in_part=*/true);
    event["part"] = part();
    send_of(names().part, "added", event, out);
  }

  void add(Kind kind, Json item, std::string& out) {
    open_ = kind;
    items_.push_back(std::move(item));
    send("response.output_item.added",
         {{"output_index", items_.size() - 1}, {"item", items_.back()}}, out);
  }

  void say_call(const ToolCallDelta& call, std::string& out) {
    if (!call.id.empty()) {
      close("completed", out);
      add(Kind::kCall, new_call(call), out);
    }
    // A reader's calls end before the next one begins: more of another one cannot come.
    if (open_ != Kind::kCall || call.arguments.empty()) return;
    append(item()["arguments"], call.arguments);
    Json event = place(/*in_part=*/false);
    event["delta"] = call.arguments;
    send("response.function_call_arguments.delta", event, out);
  }

  void close(const char* status, std::string& out) {
    if (open_ == Kind::kNone) return;
    if (open_ == Kind::kCall) {
      Json event = place(/*in_part=*/false);
      event["name"] = item()["name"];
      event["arguments"] = item()["arguments"];
      send("response.function_call_arguments.done", event, out);
    } else {
      close_part(out);
    }
    item()["status"] = status;
    send("response.output_item.done", {{"output_index", items_.size() - 1}, {"item", item()}}, out);
    open_ = Kind::kNone;
  }

  void close_part(std::string& out) {
    Json text = place(/*in_part=*/true);
    text["text"] = part()["text"];
    if (open_ == Kind::kMessage) text["logprobs"] = part()["logprobs"];
    send_of(names().text, "done", text, out);
    Json done = place(/*in_part=*/true);
    done["part"] = part();
    send_of(names().part, "done", done, out);
  }

  const std::string id_;
  const std::int64_t created_;
  const Json settings_;
  const PartNames& reasoning_;
  std::vector<Json> items_;  // in the order in which they were begun
  Kind open_ = Kind::kNone;  // the last of them, while it goes on
  bool streamed_ = false;
  std::int64_t next_event_ = 0;
};

}  // namespace

std::unique_ptr<AnswerForm> make_responses_form(const Json& body, const CompletionRequest& request,
                                                bool as_summary) {
  return std::make_unique<ResponsesForm>(body, request, as_summary);
}

}  // namespace outrider::http
