// Routing: the right endpoint, or an error that says what would be right.
#include "http/server.h"

#include <algorithm>

#include "http/endpoints.h"
#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

class RoutingTest : public ServerTest {};

std::string header(const HttpReply& reply, std::string_view name) {
  for (const auto& [key, value] : reply.headers) {
    if (same_name(key, name)) return value;
  }
  return "";
}

TEST_F(RoutingTest, AnUnknownPathIsNotFound) {
  start();
  const HttpReply reply = ask("GET", "/v1/modles");
  EXPECT_EQ(reply.status, 404);
  EXPECT_NE(reply.body.find("/v1/modles"), std::string::npos);
}

TEST_F(RoutingTest, AnotherMethodIsRefusedWithTheRightOnes) {
  start();
  const HttpReply reply = ask("GET", "/v1/chat/completions");
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(header(reply, "Allow"), "POST");
}

TEST_F(RoutingTest, ABodyThatIsNoObjectIsRefusedEverywhere) {
  start();
  for (const Endpoint& endpoint : endpoints()) {
    if (endpoint.body == nullptr) continue;
    for (const char* body : {"", "{", "[]", "7", "\"a\"", "{\"a\":1}{}", "{\"a\":\"\xff\"}"}) {
      const HttpReply reply = ask("POST", std::string(endpoint.path), body);
      EXPECT_EQ(reply.status, 400) << endpoint.path << " " << body;
    }
  }
}

// JSON.stringify makes it of a text that JavaScript cut; it stays in the conversation.
TEST_F(RoutingTest, HalfOfACharacterInABodyEndsNoConversation) {
  start();
  for (const char* body :
       {R"({"model":"fake","max_tokens":1,"messages":[{"role":"user","content":"a\ud83d"}]})",
        R"({"model":"fake","max_output_tokens":1,"input":"a\ud83d"})",
        R"({"prompt":"a\ude00","n_predict":1})"}) {
    const Result<Json> read = read_body({.method = "POST", .path = "/", .body = body});
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_NE(json::encode(*read).find("\"a\xEF\xBF\xBD\""), std::string::npos) << body;
  }
  const HttpReply reply = ask("POST", "/rpc", R"({"jsonrpc":"2.0","id":"\ud83d","method":"x"})");
  EXPECT_EQ(object(reply)["id"], "\xEF\xBF\xBD");
  EXPECT_EQ(ask("POST", "/completion", R"({"prompt":"a\ude00","prompt":"a"})").status, 400);
}

TEST_F(RoutingTest, ThePageAllowsNothingButItself) {
  start();
  const HttpReply page = ask("GET", "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_NE(header(page, "Content-Security-Policy").find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(ask("GET", "/app.js").status, 200);
  EXPECT_EQ(ask("GET", "/../server.cc").status, 404);
}

TEST_F(RoutingTest, HealthSaysWhetherTheModelCanAnswer) {
  start();
  EXPECT_EQ(ask("GET", "/health").status, 200);
  catalog_->state = ModelState::kLoading;
  const HttpReply loading = ask("GET", "/health");
  EXPECT_EQ(loading.status, 503);
  EXPECT_EQ(object(loading)["status"], "loading");
  catalog_->reopening = true;
  EXPECT_EQ(ask("GET", "/health").status, 200) << "it was only closed, and answers who asks";
  catalog_->state = ModelState::kFailed;
  EXPECT_EQ(ask("GET", "/health").status, 503);
}

TEST_F(RoutingTest, TheListOfModelsOffersADraftByItsNameAlone) {
  start();
  EXPECT_EQ(object(ask("GET", "/v1/models"))["data"][0]["offered_draft"], Json());
  catalog_->offered_draft = "/home/someone/small.gguf";
  const Json model = object(ask("GET", "/v1/models"))["data"][0];
  EXPECT_EQ(model["offered_draft"], "small.gguf");
  EXPECT_EQ(model["draft"], Json()) << "it is not taken";
}

TEST_F(RoutingTest, NothingIsAnsweredOnceTheServerIsStopped) {
  start();
  server_->state().stop();
  EXPECT_EQ(ask("GET", "/v1/models").status, 503);
}

TEST_F(RoutingTest, TheDescriptionListsEveryEndpointWithItsFields) {
  start();
  const Json document = object(ask("GET", "/openapi.json"));
  for (const Endpoint& endpoint : endpoints()) {
    EXPECT_TRUE(document["paths"].contains(std::string(endpoint.path))) << endpoint.path;
  }
  const Json& chat = document["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"]
                             ["application/json"]["schema"]["properties"];
  EXPECT_TRUE(chat.contains("messages"));
  EXPECT_FALSE(chat.contains("prompt"));
  EXPECT_EQ(chat["top_p"]["type"], "number");
  EXPECT_EQ(chat["top_p"]["maximum"], 1.0);
  EXPECT_EQ(chat["reasoning"]["anyOf"][0]["type"], "boolean");
  EXPECT_EQ(chat["reasoning"]["anyOf"][1]["type"], "object");
  EXPECT_EQ(chat["rule"]["enum"], Json::array({"coupled", "rejection", "block"}));
}

// A browser shows its page no reply without these headers: "network error" instead of 413.
TEST_F(RoutingTest, AReplyToWhatWasNotReadMayBeReadByAllowedOriginsToo) {
  start({.cors_origins = {"https://app.example"}});
  const HttpRequest request{.method = "POST",
                            .path = "/v1/completions",
                            .body = {},
                            .remote = {},
                            .headers = {{"Origin", "https://app.example"}}};
  for (const int status : {413, 415}) {
    const HttpReply reply = server_->answer_unread(request, status);
    EXPECT_EQ(reply.status, status);
    EXPECT_EQ(header(reply, "Access-Control-Allow-Origin"), "https://app.example");
  }
}

TEST_F(RoutingTest, RpcTakesNoNamesOfFilesUnlessTheOperatorAllowsIt) {
  const char* const load =
      R"({"jsonrpc":"2.0","id":1,"method":"model.load","params":{"role":"draft","path":"other"}})";
  start();
  const Json refused = object(ask("POST", "/rpc", load));
  EXPECT_EQ(refused["error"]["data"]["code"], "unsupported");
  EXPECT_EQ(runtime_->status().draft.state, ModelState::kAbsent);
  ServerOptions allowing;
  allowing.allow_files = true;
  start(allowing);
  EXPECT_EQ(object(ask("POST", "/rpc", load))["result"]["state"], "loading");
}

TEST_F(RoutingTest, RpcAnswersTheMethods) {
  start();
  const HttpReply reply =
      ask("POST", "/rpc", R"({"jsonrpc":"2.0","id":1,"method":"system.status"})");
  EXPECT_EQ(object(reply)["result"]["target"]["state"], "ready");
}

TEST_F(RoutingTest, RpcAnswersANotificationWithNothingAndTheDescriptionSaysSo) {
  start();
  const HttpReply reply = ask("POST", "/rpc", R"({"jsonrpc":"2.0","method":"system.status"})");
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.body, "");
  const Json paths = object(ask("GET", "/openapi.json"))["paths"];
  EXPECT_TRUE(paths["/rpc"]["post"]["responses"].contains("204"));
  EXPECT_FALSE(paths["/v1/completions"]["post"]["responses"].contains("204"));
}

}  // namespace
}  // namespace outrider::http
