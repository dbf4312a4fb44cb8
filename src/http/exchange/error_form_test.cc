// What clients of each API find in a failure.
#include "http/exchange/error_form.h"

#include "http/exchange/error_reply.h"
#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

const Failure kTooLong{
    .message = "the prompt has 300 tokens", .field = "prompt", .excess = Excess{300, 256}};

TEST(ErrorForm, OpenAisCodeIsATextOrNullAndLlamaServersIsTheStatus) {
  struct Case {
    int status;
    Failure failure;
    Json code;
  };
  const Case cases[] = {
      {400, {.message = "x", .field = "top_p"}, Json()},
      {400, kTooLong, "context_length_exceeded"},
      {401, {.message = "x", .field = ""}, "invalid_api_key"},
      {404, {.message = "x", .field = "model"}, "model_not_found"},
      {404, {.message = "x", .field = ""}, Json()},
      {429, {.message = "x", .field = ""}, "rate_limit_exceeded"},
      {500, {.message = "x", .field = ""}, Json()},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(error_object(one.status, one.failure, ErrorForm::kOpenAi)["error"]["code"], one.code);
    EXPECT_EQ(error_object(one.status, one.failure, ErrorForm::kLlama)["error"]["code"],
              one.status);
  }
}

TEST(ErrorForm, APromptThatIsTooLongSaysSoInTheWordsOfEachApi) {
  const Json openai = error_object(400, kTooLong, ErrorForm::kOpenAi)["error"];
  const Json llama = error_object(400, kTooLong, ErrorForm::kLlama)["error"];
  for (const Json& error : {openai, llama}) {
    EXPECT_EQ(error["type"], "exceed_context_size_error");
    EXPECT_EQ(error["n_prompt_tokens"], 300);
    EXPECT_EQ(error["n_ctx"], 256);
  }
  EXPECT_EQ(openai["message"],
            "This model's maximum context length is 256 tokens, so this prompt is too long: the "
            "prompt has 300 tokens");
  EXPECT_EQ(llama["message"], "the prompt has 300 tokens");
  const Json anthropic = error_object(400, kTooLong, ErrorForm::kAnthropic);
  EXPECT_EQ(anthropic["type"], "error");
  EXPECT_EQ(anthropic["error"]["type"], "invalid_request_error");
  EXPECT_EQ(anthropic["error"]["message"],
            "prompt is too long: 300 tokens > 256 maximum; the prompt has 300 tokens");
}

// By the details the client of Anthropic sees that it has to go on without a thread.
TEST(ErrorForm, AThreadIsRefusedInTheWordsThatAnthropicsClientGoesOnAfter) {
  const Failure failure{.message = "thread is not supported", .field = "thread"};
  const Json error = error_object(400, failure, ErrorForm::kAnthropic)["error"];
  EXPECT_EQ(error["type"], "invalid_request_error");
  EXPECT_EQ(error["details"]["error_code"], "thread_unsupported_request");
  EXPECT_EQ(error["details"]["unsupported"], Json::array({"thread"}));
  EXPECT_FALSE(error_object(400, failure, ErrorForm::kOpenAi)["error"].contains("details"));
  EXPECT_FALSE(error_object(400, kTooLong, ErrorForm::kAnthropic)["error"].contains("details"));
}

TEST(ErrorForm, EachPathHasTheFormOfItsApi) {
  for (const char* path :
       {"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/models", "/v1/models/a/b",
        "/v1/what", "/chat/completions", "/responses", "/models"}) {
    EXPECT_EQ(error_form_at(path), ErrorForm::kOpenAi) << path;
  }
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches"}) {
    EXPECT_EQ(error_form_at(path), ErrorForm::kAnthropic) << path;
  }
  for (const char* path : {"/completion", "/completions", "/infill", "/v10/models", "/", "/rpc"}) {
    EXPECT_EQ(error_form_at(path), ErrorForm::kLlama) << path;
  }
  EXPECT_EQ(error_form_at("/v1/messages2"), ErrorForm::kOpenAi);
  HttpRequest request{.method = "GET", .path = "/v1/models/x"};
  EXPECT_EQ(error_form_of(request), ErrorForm::kOpenAi);
  request.headers = {{"Anthropic-Version", "2023-06-01"}};
  EXPECT_EQ(error_form_of(request), ErrorForm::kAnthropic);
  request.path = "/v1/chat/completions";
  EXPECT_EQ(error_form_of(request), ErrorForm::kOpenAi) << "which only one API has";
}

class ErrorFormTest : public ServerTest {};

TEST_F(ErrorFormTest, APromptThatIsTooLongIsAskedForAndRefusedInEveryForm) {
  start();
  const std::string text(400, 'a');
  Json chat = {{"model", "fake"}, {"max_tokens", 4}};
  chat["messages"].push_back({{"role", "user"}, {"content", text}});
  for (const bool streamed : {false, true}) {
    chat["stream"] = streamed;
    for (const char* path : {"/v1/chat/completions", "/chat/completions", "/v1/messages",
                             "/completion", "/v1/completions"}) {
      const std::string_view name = path;
      const bool of_text = name.ends_with("/completion") || name == "/v1/completions";
      const HttpReply reply =
          post(path, of_text ? Json{{"prompt", text}, {"stream", streamed}} : chat);
      EXPECT_EQ(reply.status, 400) << path << reply.body;
      const Json error = object(reply)["error"];
      const std::string message = error["message"];
      if (error_form_at(path) == ErrorForm::kAnthropic) {
        EXPECT_EQ(message.find("prompt is too long: "), 0U) << path << message;
        continue;
      }
      EXPECT_EQ(error["n_ctx"], 256) << path;
      EXPECT_GE(error["n_prompt_tokens"], 400) << path;
      EXPECT_EQ(error["code"],
                of_text && name == "/completion" ? Json(400) : Json("context_length_exceeded"));
      EXPECT_NE(message.find("exceeds the available context size"), std::string::npos) << path;
    }
  }
}

TEST_F(ErrorFormTest, APromptOfResponsesThatIsTooLongIsItsInput) {
  start();
  const HttpReply reply =
      post("/v1/responses", {{"model", "fake"}, {"input", std::string(400, 'a')}});
  EXPECT_EQ(reply.status, 400) << reply.body;
  EXPECT_EQ(object(reply)["error"]["param"], "input");
}

TEST_F(ErrorFormTest, AThreadIsRefusedBeforeAllElse) {
  start();
  const HttpReply reply =
      post("/v1/messages", {{"model", "fake"}, {"thread", {{"type", "create"}}}});
  EXPECT_EQ(reply.status, 400) << reply.body;
  EXPECT_EQ(object(reply)["error"]["details"]["error_code"], "thread_unsupported_request");
}

// Agents ask it to know when a conversation has to be made shorter.
TEST_F(ErrorFormTest, APromptThatIsTooLongIsCounted) {
  start();
  Json chat = {{"model", "fake"}, {"max_tokens", 4}};
  chat["messages"].push_back({{"role", "user"}, {"content", std::string(400, 'a')}});
  for (const char* path : {"/v1/messages/count_tokens", "/v1/chat/completions/input_tokens"}) {
    const HttpReply reply = post(path, chat);
    EXPECT_EQ(reply.status, 200) << path << reply.body;
    EXPECT_GE(object(reply)["input_tokens"], 400) << path;
  }
}

TEST_F(ErrorFormTest, WhoIsNotLetInIsToldInTheFormOfTheApi) {
  ServerOptions options;
  options.api_keys = {"sk-of-the-tests"};
  start(options);
  EXPECT_EQ(object(post("/v1/completions", Json::object()))["error"]["code"], "invalid_api_key");
  EXPECT_EQ(object(post("/completion", Json::object()))["error"]["code"], 401);
  EXPECT_EQ(object(post("/v1/messages", Json::object()))["error"]["type"], "authentication_error");
  const HttpReply cut = server_->answer_unread({.method = "POST", .path = "/v1/messages"}, 413);
  EXPECT_EQ(object(cut)["error"]["type"], "request_too_large");
}

}  // namespace
}  // namespace outrider::http
