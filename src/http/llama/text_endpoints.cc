#include "http/llama/text_endpoints.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/completion_json.h"
#include "api/completion_params.h"
#include "api/spelling.h"
#include "http/endpoint/acquire.h"
#include "http/exchange/error_reply.h"
#include "http/llama/llama_body.h"
#include "http/llama/llama_settings.h"
#include "http/openai/chat_form.h"
#include "http/openai/responses_body.h"
#include "serve/prompt.h"

namespace outrider::http {
namespace {

using json::Json;

// Reads the body, opens its model, and hands both on.
template <typename Work>
HttpReply with_model(ServerState& server, const HttpRequest& request, Work&& work) {
  Result<Json> body = read_body(request);
  if (!body.ok()) return error_reply(body.status());
  const Result<LeasedModel> model = open_model(server, request, server.model_name(model_of(*body)));
  if (!model.ok()) return model_error_reply(model.status());
  Result<Json> answer = work(*body, *model->target, server.options());
  return answer.ok() ? json_reply(*answer) : error_reply(answer.status());
}

Result<Json> tokens_of(const Json& body, const Target& target, const ServerOptions& /*options*/) {
  const Vocabulary& vocabulary = target.vocabulary();
  bool add_special = false;
  bool parse_special = true;
  bool with_pieces = false;
  std::string model;
  api::JsonFields fields(body, "", &llama_dialect());
  fields.text("model", model);
  fields.boolean("add_special", add_special);
  fields.boolean("parse_special", parse_special);
  fields.boolean("with_pieces", with_pieces);
  fields.require("content");
  const Json* content = fields.any("content");
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  std::vector<Token> tokens;
  if (content->is_string()) {
    Result<std::vector<Token>> read =
        vocabulary.tokenize(content->get<std::string>(), add_special, parse_special);
    if (!read.ok()) return read.status().in_field("content");
    tokens = std::move(*read);
  } else {
    OUTRIDER_ASSIGN_OR_RETURN(
        std::vector<Token> read,
        read_one_prompt(
            *content, "content",
            {.add_special = add_special, .parse_special = parse_special, .joins_texts = true},
            vocabulary));
    tokens = std::move(read);
  }
  if (!with_pieces) return Json{{"tokens", tokens}};
  OUTRIDER_RETURN_IF_ERROR(check_listed(tokens.size(), "content", kListedWithPieces));
  Json list = Json::array();
  for (const Token token : tokens) {
    list.push_back({{"id", token}, {"piece", api::piece_json(vocabulary.spelled(token))}});
  }
  return Json{{"tokens", std::move(list)}};
}

Result<Json> text_of(const Json& body, const Target& target, const ServerOptions& /*options*/) {
  const Vocabulary& vocabulary = target.vocabulary();
  std::string model;
  api::JsonFields fields(body, "", &llama_dialect());
  fields.text("model", model);
  fields.require("tokens");
  const Json* given = fields.any("tokens");
  std::vector<Token> tokens;
  if (given != nullptr && !given->is_array()) fields.refuse("tokens", *given, "an array of ids");
  if (given != nullptr) fields.fail(check_listed(given->size(), "tokens", "token ids"));
  for (std::size_t i = 0; fields.ok() && given != nullptr && i < given->size(); ++i) {
    const std::optional<std::int64_t> id = api::as_integer((*given)[i]);
    if (id && *id >= 0 && *id < vocabulary.size()) {
      tokens.push_back(static_cast<Token>(*id));
    } else {
      fields.refuse("tokens[" + std::to_string(i) + "]", (*given)[i],
                    "a token's id, below " + std::to_string(vocabulary.size()));
    }
  }
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return Json{{"content", spelled_text(tokens, vocabulary)}};
}

Result<Json> prompt_of(const Json& body, const Target& target, const ServerOptions& options) {
  OUTRIDER_ASSIGN_OR_RETURN(const CompletionTask task, read_chat_task(body, options));
  const CompletionRequest& request = task.requests.shared;
  const Result<ChatPrompt> prompt = target.vocabulary().chat_prompt(request.messages, request.chat);
  if (!prompt.ok()) return api::spelled_as_in(prompt.status(), body);
  return Json{{"prompt", prompt->text}};
}

// How many tokens `request`, which `body` asks for, has the model read, as OpenAI's answer.
Result<Json> n_tokens_json(CompletionRequest& request, const Target& target, const Json& body) {
  const Result<Prompt> prompt = read_prompt(request, target);
  if (!prompt.ok()) return api::spelled_as_in(prompt.status(), body);
  return Json{{"input_tokens", prompt->n_asked}, {"object", "response.input_tokens"}};
}

// The body is read as its completion's is, so that both take the same.
template <Result<CompletionTask> (*kRead)(Json body, const ServerOptions& options)>
Result<Json> count_of(const Json& body, const Target& target, const ServerOptions& options) {
  OUTRIDER_ASSIGN_OR_RETURN(CompletionTask task, kRead(body, options));
  return n_tokens_json(task.requests.shared, target, body);
}

}  // namespace

HttpReply tokenize(ServerState& server, const HttpRequest& request) {
  return with_model(server, request, tokens_of);
}

HttpReply detokenize(ServerState& server, const HttpRequest& request) {
  return with_model(server, request, text_of);
}

HttpReply apply_template(ServerState& server, const HttpRequest& request) {
  return with_model(server, request, prompt_of);
}

HttpReply count_chat_tokens(ServerState& server, const HttpRequest& request) {
  return with_model(server, request, count_of<read_chat_task>);
}

HttpReply count_response_tokens(ServerState& server, const HttpRequest& request) {
  return with_model(server, request, count_of<read_responses_task>);
}

}  // namespace outrider::http
