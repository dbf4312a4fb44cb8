// The models of a server, as clients of each API list them, and which one answers to a name.
#include "http/models/model_endpoints.h"

#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

class ModelEndpointsTest : public ServerTest {
 protected:
  HttpReply ask_anthropics(const std::string& path) {
    return server_->answer(
        {.method = "GET", .path = path, .headers = {{"anthropic-version", "2023-06-01"}}});
  }
};

TEST_F(ModelEndpointsTest, OneModelIsToldAsItIsInTheList) {
  start();
  const Json list = object(ask("GET", "/v1/models"));
  EXPECT_EQ(list["object"], "list");
  const HttpReply one = ask("GET", "/v1/models/fake");
  EXPECT_EQ(one.status, 200);
  EXPECT_EQ(object(one), list["data"][0]);
  EXPECT_EQ(object(one)["object"], "model");
}

TEST_F(ModelEndpointsTest, AnOpenModelTellsItsFactsAndNoneIsOpenedForThem) {
  start();
  const Json meta = object(ask("GET", "/v1/models/fake"))["meta"];
  EXPECT_EQ(meta["n_vocab"], 12);
  EXPECT_EQ(meta["n_ctx"], 256);
  EXPECT_EQ(meta["n_ctx_train"], 256);
  EXPECT_EQ(meta["n_params"], 0);
  EXPECT_EQ(meta["size"], 0);
  catalog_->open = false;
  EXPECT_TRUE(object(ask("GET", "/v1/models/fake"))["meta"].is_null());
  EXPECT_EQ(catalog_->acquired, 0);
}

TEST_F(ModelEndpointsTest, ClientsOfLlamaServersRouterReadWhetherAModelIsLoaded) {
  start();
  struct Case {
    ModelState state;
    const char* value;
    const char* ours;
  };
  for (const Case& one : {Case{ModelState::kAbsent, "unloaded", "absent"},
                          Case{ModelState::kLoading, "loading", "loading"},
                          Case{ModelState::kReady, "loaded", "ready"},
                          Case{ModelState::kFailed, "unloaded", "failed"}}) {
    catalog_->state = one.state;
    const Json status = object(ask("GET", "/models"))["data"][0]["status"];
    EXPECT_EQ(status["value"], one.value);
    EXPECT_EQ(status["state"], one.ours);
    EXPECT_EQ(status.value("failed", false), one.state == ModelState::kFailed) << one.ours;
  }
}

TEST_F(ModelEndpointsTest, ANameMayHaveSlashes) {
  start();
  catalog_->aliases = {"user/repo:Q4_K_M"};
  EXPECT_EQ(object(ask("GET", "/v1/models/user/repo:Q4_K_M"))["id"], "fake");
  for (const char* path : {"/v1/models/user", "/v1/models/user/repo:Q4_K_M/", "/v1/models/Fake"}) {
    const HttpReply reply = ask("GET", path);
    EXPECT_EQ(reply.status, 404) << path;
    EXPECT_EQ(object(reply)["error"]["code"], "model_not_found") << path;
    EXPECT_EQ(object(reply)["error"]["param"], "model") << path;
  }
  EXPECT_EQ(ask("GET", "/v1/models/").status, 404) << "no name is not the default one's";
  EXPECT_EQ(ask("POST", "/v1/models/fake").status, 405);
}

TEST_F(ModelEndpointsTest, ClientsOfAnthropicsApiGetItsForm) {
  start();
  const Json list = object(ask_anthropics("/v1/models"));
  EXPECT_EQ(list["has_more"], false);
  EXPECT_EQ(list["first_id"], "fake");
  EXPECT_EQ(list["last_id"], "fake");
  ASSERT_EQ(list["data"].size(), 1U);
  const Json one = object(ask_anthropics("/v1/models/fake"));
  EXPECT_EQ(one, list["data"][0]);
  EXPECT_EQ(one["type"], "model");
  EXPECT_EQ(one["id"], "fake");
  EXPECT_EQ(one["display_name"], "fake");
  EXPECT_EQ(one["lifecycle"], "active");
  const std::string created = one["created_at"];
  EXPECT_EQ(created.size(), std::string("2026-01-01T00:00:00Z").size()) << created;
  const Json error = object(ask_anthropics("/v1/models/none"));
  EXPECT_EQ(error["type"], "error");
  EXPECT_EQ(error["error"]["type"], "not_found_error");
}

TEST_F(ModelEndpointsTest, TheDescriptionSaysWhatIsInThePathAndBothForms) {
  start();
  const Json paths = object(ask("GET", "/openapi.json"))["paths"];
  const Json one = paths["/v1/models/{model}"]["get"];
  EXPECT_EQ(one["parameters"][0]["name"], "model");
  EXPECT_EQ(one["parameters"][0]["in"], "path");
  EXPECT_EQ(one["parameters"][1]["name"], "anthropic-version");
  const Json answer = paths["/v1/models"]["get"]["responses"]["200"]["content"];
  EXPECT_EQ(answer["application/json"]["schema"]["anyOf"].size(), 2U);
  EXPECT_FALSE(paths["/v1/completions"]["post"].contains("parameters"));
}

TEST_F(ModelEndpointsTest, TheOnlyModelAnswersToAnyNameWhereTheOperatorNamedIt) {
  ServerOptions options;
  options.any_model_name = true;
  start(options);
  Json asked = {{"model", "gpt-4o"}, {"max_tokens", 2}};
  asked["messages"].push_back({{"role", "user"}, {"content", "abc"}});
  for (const char* path : {"/v1/chat/completions", "/v1/messages"}) {
    const HttpReply reply = post(path, asked);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(object(reply)["model"], "fake") << "who really answered";
  }
  EXPECT_EQ(post("/v1/messages/count_tokens", asked).status, 200);
  asked.erase("model");
  EXPECT_EQ(object(post("/v1/messages", asked))["model"], "fake") << "nor is it missed";
  EXPECT_EQ(post("/v1/messages/count_tokens", asked).status, 200);
  const Json text = {{"model", "gpt-4o"}, {"prompt", "abc"}, {"max_tokens", 2}};
  EXPECT_EQ(object(post("/v1/completions", text))["model"], "fake");
  EXPECT_EQ(object(post("/completion", text))["model"], "fake");
  EXPECT_EQ(post("/tokenize", {{"model", "gpt-4o"}, {"content", "abc"}}).status, 200);
}

TEST_F(ModelEndpointsTest, WhereNoAnswerWouldSayWhichModelItWasAWrongNameIsAnError) {
  ServerOptions options;
  options.any_model_name = true;
  start(options);
  const auto with_model = [this](const char* method, const char* path, const char* body) {
    return server_
        ->answer({.method = method, .path = path, .body = body, .query = {{"model", "gpt-4o"}}})
        .status;
  };
  EXPECT_EQ(with_model("POST", "/rpc", R"({"jsonrpc":"2.0","id":1,"method":"system.status"})"),
            404);
  EXPECT_EQ(with_model("GET", "/outrider/speculation", ""), 404);
  for (const char* path : {"/models/load", "/models/unload"}) {
    EXPECT_EQ(post(path, {{"model", "gpt-4o"}}).status, 404) << path;
    EXPECT_EQ(post(path, {{"model", "fake"}}).status, 200) << path;
  }
  EXPECT_EQ(catalog_->changed, (std::vector<std::string>{"load fake", "unload fake"}));
  EXPECT_EQ(ask("GET", "/v1/models/gpt-4o").status, 404);
}

TEST_F(ModelEndpointsTest, AModelWhoseFileIsMissingIsTheServersFaultAndNoUnknownName) {
  start();
  catalog_->aliases = {"team/fake"};
  catalog_->state = ModelState::kFailed;
  const Json asked = {{"prompt", "a"}, {"model", "team/fake"}};
  for (const Status& error :
       {not_found("there is no file '/m/a.gguf'"), invalid_argument("'/m/a.gguf' is no GGUF file"),
        unsupported("'/m/a.gguf' is an encoder"), data_loss("'/m/a.gguf' is cut off")}) {
    catalog_->error = error;
    const HttpReply reply = post("/v1/completions", asked);
    EXPECT_EQ(reply.status, 500) << error.message();
    const Json told = object(reply)["error"];
    EXPECT_EQ(told["type"], "server_error");
    EXPECT_EQ(told["code"], Json());
    EXPECT_EQ(told["param"], Json());
    const std::string message = told["message"];
    EXPECT_EQ(message.find("model 'fake' cannot be opened: "), 0U) << message;
    EXPECT_NE(message.find("'a.gguf'"), std::string::npos) << message;
    const Json listed = object(ask("GET", "/v1/models"))["data"][0]["status"];
    EXPECT_EQ(listed["state"], "failed");
    EXPECT_NE(listed["error"].get<std::string>().find("'a.gguf'"), std::string::npos);
  }
  const HttpReply anthropics = post(
      "/v1/messages/count_tokens",
      {{"model", "fake"}, {"messages", Json::array({Json{{"role", "user"}, {"content", "a"}}})}});
  EXPECT_EQ(anthropics.status, 500) << anthropics.body;
  EXPECT_EQ(object(anthropics)["error"]["type"], "api_error");
  for (const char* path : {"/props", "/slots"}) EXPECT_EQ(ask("GET", path).status, 500) << path;
  EXPECT_EQ(post("/v1/completions", {{"prompt", "a"}, {"model", "other"}}).status, 404);
  catalog_->error = resource_exhausted("no room");  // which there may be again
  EXPECT_EQ(post("/v1/completions", asked).status, 429);
}

TEST_F(ModelEndpointsTest, AModelThatNoWaitingMakesRoomForIsNoReasonToAskAgain) {
  start();
  catalog_->error = unsupported("model 'fake' needs about 9.00 GiB, more than the 8.00 GiB");
  const HttpReply reply = post("/v1/completions", {{"prompt", "a"}});
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(object(reply)["error"]["message"], catalog_->error.message());
  for (const auto& [name, value] : reply.headers) EXPECT_NE(name, "Retry-After") << value;
}

TEST_F(ModelEndpointsTest, AModelThatCannotBeOpenedTellsItsFileByNameAlone) {
  start();
  catalog_->state = ModelState::kFailed;
  catalog_->error = not_found("'/home/someone/large.gguf' does not exist");
  for (const HttpReply& reply :
       {ask("GET", "/v1/models"), ask("GET", "/health"), post("/v1/completions", {{"prompt", "a"}}),
        post("/tokenize", {{"content", "a"}})}) {
    EXPECT_NE(reply.body.find("'large.gguf' does not exist"), std::string::npos) << reply.body;
    EXPECT_EQ(reply.body.find("someone"), std::string::npos) << reply.body;
  }
  const HttpReply other = post("/v1/completions", {{"prompt", "a"}, {"model", "/a/b"}});
  EXPECT_NE(other.body.find("'/a/b'"), std::string::npos) << "what the client said itself";
}

}  // namespace
}  // namespace outrider::http
