#include "http/llama/llama_endpoints.h"

#include <string>
#include <utility>

#include "http/endpoint/acquire.h"
#include "http/exchange/build_info.h"
#include "http/exchange/error_reply.h"
#include "http/llama/infill.h"
#include "http/llama/llama_body.h"
#include "http/llama/llama_settings.h"
#include "http/llama/text_endpoints.h"
#include "http/openai/samplers.h"

namespace outrider::http {
namespace {

using json::Json;
using ReadTask = Result<CompletionTask> (*)(Json body, const ServerOptions& options,
                                            const Target& target);

// An endpoint whose body is a task that needs to know the model.
template <ReadTask kRead>
HttpReply complete_on_target(ServerState& server, const HttpRequest& request) {
  Result<Json> body = read_body(request);
  if (!body.ok()) return error_reply(body.status());
  const Result<LeasedModel> model = open_model(server, request, server.model_name(model_of(*body)));
  if (!model.ok()) return model_error_reply(model.status());
  Result<CompletionTask> task = kRead(std::move(*body), server.options(), *model->target);
  if (!task.ok()) return error_reply(task.status());
  return answer_completion(server, request, std::move(*task));
}

std::string name_of(Token token, const Vocabulary& vocabulary) {
  return token == kNoToken ? "" : std::string(vocabulary.spelled(token));
}

HttpReply props(ServerState& server, const HttpRequest& request) {
  const std::string_view asked = request.parameter("model");
  const Result<LeasedModel> model = find_open_target(server, asked);
  if (!model.ok()) return model_error_reply(model.status());
  const Vocabulary& vocabulary = model->target->vocabulary();
  const SpecialTokens special = vocabulary.special();
  return json_reply(
      {{"default_generation_settings",
        {{"n_ctx", model->target->capabilities().n_ctx},
         {"params", llama_settings(server.options().defaults, vocabulary, sampler_names())}}},
       {"total_slots", model->runtime->options().slots},
       {"model_alias", server.model_name(asked)},
       {"model_path", model->target->info().path},
       {"modalities", {{"vision", false}, {"video", false}, {"audio", false}}},
       {"endpoint_slots", true},
       {"endpoint_props", false},
       {"endpoint_metrics", true},
       {"chat_template", vocabulary.chat_template_source()},
       {"chat_template_caps", vocabulary.chat_template_caps()},
       {"bos_token", name_of(special.begin_of_text, vocabulary)},
       {"eos_token", name_of(special.end_of_text, vocabulary)},
       {"build_info", std::string(kBuildInfo)},
       {"is_sleeping", false},
       {"cors_proxy_enabled", false}});
}

HttpReply slots(ServerState& server, const HttpRequest& request) {
  const Result<std::shared_ptr<Runtime>> runtime =
      find_open_model(server, request.parameter("model"));
  if (!runtime.ok()) return model_error_reply(runtime.status());
  const RuntimeStatus status = (*runtime)->status();
  if (!request.parameter("fail_on_no_slot").empty() && status.running >= status.slots) {
    return error_reply(503, "all " + std::to_string(status.slots) + " slots are in use");
  }
  Json list = Json::array();
  for (std::int32_t i = 0; i < status.slots; ++i) {
    list.push_back({{"id", i},
                    {"n_ctx", status.n_ctx},
                    {"speculative", server.options().defaults.speculative},
                    {"is_processing", i < status.running}});
  }
  return json_reply(list);
}

HttpReply no_props(ServerState& /*server*/, const HttpRequest& /*request*/) {
  return error_reply(501,
                     "properties cannot be changed while the server runs; GET /props reads "
                     "them, and options at its start set them");
}

HttpReply no_slot_actions(ServerState& /*server*/, const HttpRequest& /*request*/) {
  return error_reply(501,
                     "slots are not saved, restored or erased one by one: what prompts begin with "
                     "is kept and found by itself, over restarts with the server's --prompt-cache "
                     "FOLDER");
}

// What other servers of models do, and this one is not for.
HttpReply not_done(ServerState& /*server*/, const HttpRequest& request) {
  return error_reply(501, request.path +
                              " is not supported: this server generates text, by "
                              "/v1/chat/completions, /v1/completions and what "
                              "/openapi.json lists");
}

constexpr Endpoint not_done_at(std::string_view path, std::string_view method = "POST") {
  return {.method = method,
          .path = path,
          .summary = "501: this server generates text only",
          .answer = not_done};
}

constexpr Endpoint kEndpoints[] = {
    {.method = "POST",
     .path = "/completion",
     .summary = "how a text goes on (llama-server)",
     .answer = complete_on_target<read_llama_task>,
     .streams = true},
    {.method = "POST",
     .path = "/completions",
     .summary = "the same",
     .answer = complete_on_target<read_llama_task>,
     .streams = true},
    {.method = "POST",
     .path = "/infill",
     .summary = "what belongs between two parts of a text (llama-server)",
     .answer = complete_on_target<read_infill_task>,
     .streams = true},
    {.method = "POST", .path = "/tokenize", .summary = "the tokens of a text", .answer = tokenize},
    {.method = "POST",
     .path = "/detokenize",
     .summary = "the text of tokens",
     .answer = detokenize},
    {.method = "POST",
     .path = "/apply-template",
     .summary = "a conversation as the model reads it",
     .answer = apply_template},
    {.method = "POST",
     .path = "/v1/chat/completions/input_tokens",
     .summary = "how many tokens a conversation has",
     .answer = count_chat_tokens},
    {.method = "POST",
     .path = "/chat/completions/input_tokens",
     .summary = "the same",
     .answer = count_chat_tokens},
    {.method = "POST",
     .path = "/v1/responses/input_tokens",
     .summary = "how many tokens the input of a response has (OpenAI)",
     .answer = count_response_tokens,
     .answers = "TokenCount"},
    {.method = "POST",
     .path = "/responses/input_tokens",
     .summary = "the same",
     .answer = count_response_tokens,
     .answers = "TokenCount"},
    {.method = "GET",
     .path = "/props",
     .summary = "the model, and what a request has that does not say otherwise",
     .answer = props},
    {.method = "POST", .path = "/props", .summary = "501: it is read only", .answer = no_props},
    {.method = "GET",
     .path = "/slots",
     .summary = "how many requests can run at once, and do",
     .answer = slots},
    {.method = "POST",
     .path = "/slots/{slot}",
     .summary = "501: what was read is kept and found by itself",
     .answer = no_slot_actions},
    not_done_at("/v1/embeddings"),
    not_done_at("/embeddings"),
    not_done_at("/embedding"),
    not_done_at("/v1/rerank"),
    not_done_at("/v1/reranking"),
    not_done_at("/rerank"),
    not_done_at("/reranking"),
    not_done_at("/v1/images/generations"),
    not_done_at("/v1/images/edits"),
    not_done_at("/v1/images/variations"),
    not_done_at("/v1/audio/speech"),
    not_done_at("/v1/audio/transcriptions"),
    not_done_at("/v1/audio/translations"),
    not_done_at("/v1/moderations"),
    not_done_at("/lora-adapters", "GET"),
    not_done_at("/lora-adapters"),
};

}  // namespace

std::span<const Endpoint> llama_endpoints() { return kEndpoints; }

}  // namespace outrider::http
