#include "http/openai/chat_form.h"

#include <optional>
#include <utility>

#include "api/chat_params.h"
#include "http/completion/conversation_body.h"
#include "http/completion/timings.h"
#include "http/openai/older_calls.h"
#include "http/openai/openai_body.h"
#include "http/openai/openai_form.h"

namespace outrider::http {
namespace {

using json::Json;

Json delta_json(const AnswerDelta& delta, bool older_calls) {
  Json object = Json::object();
  if (!delta.content.empty()) object["content"] = delta.content;
  if (!delta.reasoning.empty()) object["reasoning_content"] = delta.reasoning;
  if (older_calls) {
    add_function_call(delta, object);
    return object;
  }
  for (const ToolCallDelta& call : delta.tool_calls) {
    Json function = Json::object();
    if (!call.name.empty()) function["name"] = call.name;
    function["arguments"] = call.arguments;
    Json item = {{"index", call.index}};
    if (!call.id.empty()) item["id"] = call.id;
    if (!call.id.empty()) item["type"] = "function";
    item["function"] = std::move(function);
    object["tool_calls"].push_back(std::move(item));
  }
  return object;
}

Json logprobs_or_null(const std::vector<SaidToken>& tokens) {
  Json list = logprobs_json(tokens);
  return list.empty() ? Json() : Json{{"content", std::move(list)}};
}

class ChatForm : public OpenAiForm {
 public:
  explicit ChatForm(const AnswerWishes& wishes)
      : OpenAiForm("chatcmpl-", "chat.completion", "chat.completion.chunk", wishes) {}

  void begin(std::string& out) override {
    for (std::size_t i = 0; i < prompts().size(); ++i) progress(i, prompts()[i], 0.0, out);
  }

  void progress(std::size_t i, const PromptStats& prompt, double fraction,
                std::string& out) override {
    read_of(i) = fraction;
    if (!wishes().return_progress) return;
    say_role(i, out);
    Json chunk = chunk_of(i, Json::object());
    chunk["prompt_progress"] = prompt_progress_json(prompt, fraction, since_begin_ms());
    append_event(chunk, out);
  }

  void delta(std::size_t i, const AnswerDelta& delta, std::string& out) override {
    if (read_of(i) < 1.0) progress(i, prompts()[i], 1.0, out);
    say_role(i, out);
    count(i, delta);
    if (tells_nothing(delta)) return;
    Json chunk = chunk_of(i, delta_json(delta, wishes().older_calls));
    chunk["choices"][0]["logprobs"] = logprobs_or_null(delta.tokens);
    add_sources(delta, chunk);
    add_timings(i, chunk);
    append_event(chunk, out);
  }

  void end(std::size_t i, const Answer& answer, std::string& out) override {
    say_role(i, out);
    append_end(answer, chunk_of(i, Json::object()), out);
  }

 private:
  Json choice(const Answer& answer) const override {
    Json message = api::message_json(answer.reply());
    if (wishes().older_calls) use_function_call(message);
    return {{"message", std::move(message)}, {"logprobs", logprobs_or_null(answer.tokens())}};
  }

  Json chunk_of(std::size_t i, Json delta) const {
    return chunk_with({{"index", i},
                       {"delta", std::move(delta)},
                       {"logprobs", Json()},
                       {"finish_reason", Json()}});
  }

  double& read_of(std::size_t i) {
    if (read_.size() <= i) read_.resize(i + 1, 0.0);
    return read_[i];
  }

  // Once for each answer, in front of everything else of it.
  void say_role(std::size_t i, std::string& out) {
    if (begun_.size() <= i) begun_.resize(i + 1, false);
    if (begun_[i]) return;
    begun_[i] = true;
    append_event(chunk_of(i, {{"role", "assistant"}, {"content", Json()}}), out);
  }

  std::vector<bool> begun_;   // whose role has been said
  std::vector<double> read_;  // of each prompt, as was told
};

}  // namespace

Result<CompletionTask> read_chat_task(Json body, const ServerOptions& options) {
  unify_logprobs(body);
  CompletionTask task;
  OUTRIDER_ASSIGN_OR_RETURN(task.ignored_tools, take_out_other_tools(body, "function"));
  if (body.is_object() && !body.value("verbosity", Json()).is_null()) {
    task.ignored.emplace_back("verbosity");
  }
  CompletionRequest request = defaults_for(body, openai_dialect(), options.defaults);
  AnswerWishes wishes;
  api::JsonFields fields(body, "", &openai_dialect());
  fields.require("messages");
  const std::string effort = read_reasoning_effort(fields);
  read_openai_fields(fields, wishes, request);
  check_tools_left(fields, task.ignored_tools, request);
  wishes.older_calls = read_functions(fields, request);
  OUTRIDER_RETURN_IF_ERROR(api::finish_completion(fields, body, request));
  api::set_effort(request, effort);
  set_wishes(wishes, task);
  task.set_requests(std::move(request), wishes.n);
  task.form = std::make_unique<ChatForm>(wishes);
  return task;
}

}  // namespace outrider::http
