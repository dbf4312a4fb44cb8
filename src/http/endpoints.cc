#include "http/endpoints.h"

#include "http/anthropic/anthropic_body.h"
#include "http/completion/completion_task.h"
#include "http/exchange/error_reply.h"
#include "http/llama/llama_endpoints.h"
#include "http/models/metrics_endpoints.h"
#include "http/models/model_endpoints.h"
#include "http/models/rpc_endpoint.h"
#include "http/openai/chat_form.h"
#include "http/openai/responses_body.h"
#include "http/openai/text_form.h"
#include "http/openapi.h"

namespace outrider::http {
namespace {

using json::Json;
using ReadTask = Result<CompletionTask> (*)(Json body, const ServerOptions& options);

// An endpoint whose body is a task.
template <ReadTask kRead>
HttpReply complete(ServerState& server, const HttpRequest& request) {
  Result<Json> body = read_body(request);
  if (!body.ok()) return error_reply(body.status());
  Result<CompletionTask> task = kRead(std::move(*body), server.options());
  if (!task.ok()) return error_reply(task.status());
  return answer_completion(server, request, std::move(*task));
}

constexpr Endpoint kEndpoints[] = {
    {.method = "POST",
     .path = "/v1/chat/completions",
     .summary = "an answer to a conversation (OpenAI)",
     .answer = complete<read_chat_task>,
     .body = chat_parameters,
     .required = {"messages"},
     .answers = "ChatCompletion",
     .streams = true},
    {.method = "POST",
     .path = "/chat/completions",
     .summary = "the same",
     .answer = complete<read_chat_task>,
     .body = chat_parameters,
     .streams = true},
    {.method = "POST",
     .path = "/v1/completions",
     .summary = "how a text goes on (OpenAI)",
     .answer = complete<read_text_task>,
     .body = text_parameters,
     .required = {"prompt"},
     .answers = "TextCompletion",
     .streams = true},
    {.method = "POST",
     .path = "/v1/responses",
     .summary = "an answer to a conversation, as items (OpenAI)",
     .answer = complete<read_responses_task>,
     .body = responses_parameters,
     .required = {"input"},
     .answers = "Response",
     .streams = true},
    {.method = "POST",
     .path = "/responses",
     .summary = "the same",
     .answer = complete<read_responses_task>,
     .body = responses_parameters,
     .streams = true},
    {.method = "POST",
     .path = "/v1/messages",
     .summary = "an answer to a conversation (Anthropic)",
     .answer = complete<read_messages_task>,
     .body = messages_parameters,
     .required = {"messages", "max_tokens"},
     .answers = "Message",
     .streams = true},
    {.method = "POST",
     .path = "/v1/messages/count_tokens",
     .summary = "how many tokens such a conversation has (Anthropic)",
     .answer = count_tokens,
     .body = messages_parameters,
     .required = {"messages"},
     .answers = "TokenCount"},
    {.method = "GET",
     .path = "/v1/models",
     .summary = "the models, and whether they are open (OpenAI, Anthropic)",
     .answer = list_models,
     .answers = "ModelList",
     .anthropic_answers = "AnthropicModelList"},
    {.method = "GET",
     .path = "/v1/models/{model}",
     .summary = "one of them, by its name or another name that it has (OpenAI, Anthropic)",
     .answer = one_model,
     .answers = "Model",
     .anthropic_answers = "AnthropicModel"},
    {.method = "GET",
     .path = "/models",
     .summary = "the same as /v1/models",
     .answer = list_models,
     .answers = "ModelList"},
    {.method = "POST",
     .path = "/models/load",
     .summary = "opens a model, and does not wait for that (llama-server)",
     .answer = load_model,
     .body = model_name_parameters,
     .required = {"model"},
     .answers = "Success"},
    {.method = "POST",
     .path = "/models/unload",
     .summary = "closes a model, once nobody uses it; the next request opens it again "
                "(llama-server)",
     .answer = unload_model,
     .body = model_name_parameters,
     .required = {"model"},
     .answers = "Success"},
    {.method = "GET",
     .path = "/health",
     .summary = "whether the default model can answer",
     .answer = health,
     .open = true,
     .answers = "Health"},
    {.method = "GET",
     .path = "/v1/health",
     .summary = "the same",
     .answer = health,
     .open = true,
     .answers = "Health"},
    {.method = "GET",
     .path = "/metrics",
     .summary = "counters and histograms for Prometheus",
     .answer = metrics,
     .content_type = "text/plain"},
    {.method = "GET",
     .path = "/outrider/speculation",
     .summary = "what guessing has brought; ?model= says whose",
     .answer = speculation},
    {.method = "POST",
     .path = "/rpc",
     .summary = "JSON-RPC 2.0, the methods of system.methods; ?model= says whose",
     .answer = rpc,
     .body_schema = "RpcRequest",
     .silent = true},
    {.method = "GET",
     .path = "/openapi.json",
     .summary = "this description",
     .answer = openapi,
     .open = true},
};

}  // namespace

std::span<const Endpoint> endpoints() {
  static const std::vector<Endpoint> kAll = [] {
    std::vector<Endpoint> all(std::begin(kEndpoints), std::end(kEndpoints));
    const std::span<const Endpoint> more = llama_endpoints();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kAll;
}

}  // namespace outrider::http
