// What llama-server's clients ask about the server, and what it is not for.
#include "http/llama/llama_endpoints.h"

#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

class LlamaEndpointsTest : public ServerTest {};

TEST_F(LlamaEndpointsTest, PropertiesTellTheModelAndWhatARequestHasUnlessItSaysOtherwise) {
  ServerOptions options;
  options.defaults.seed = 42;
  options.defaults.sampling.top_k = 7;
  testing::FakeFile file{.end = 11};
  file.pieces[10] = "";
  file.special.begin_of_text = 10;  // and no `front`: it is not put in front of texts
  start(options, file);
  const HttpReply reply = ask("GET", "/props");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json told = object(reply);
  EXPECT_EQ(told["total_slots"], 2);
  EXPECT_EQ(told["model_path"], "target");
  EXPECT_EQ(told["model_alias"], "fake");
  EXPECT_EQ(told["default_generation_settings"]["n_ctx"], 256);
  EXPECT_EQ(told["default_generation_settings"]["params"]["seed"], 42);
  EXPECT_EQ(told["default_generation_settings"]["params"]["top_k"], 7);
  EXPECT_TRUE(told["chat_template"].is_string());
  EXPECT_TRUE(told["chat_template_caps"].is_object());
  EXPECT_EQ(told["bos_token"], "<10>");
  EXPECT_EQ(ask("POST", "/props", "{}").status, 501);
}

TEST_F(LlamaEndpointsTest, SlotsTellHowMuchIsGoingOnAndNoPrompts) {
  start();
  const Json slots = object(ask("GET", "/slots"));
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_EQ(slots[1]["id"], 1);
  EXPECT_EQ(slots[0]["n_ctx"], 256);
  EXPECT_EQ(slots[0]["is_processing"], false);
  EXPECT_FALSE(slots[0].contains("prompt"));
}

// Whoever only looks must not load a model, nor put another one away for it.
TEST_F(LlamaEndpointsTest, WhoAsksForPropertiesOrSlotsOpensNoModel) {
  start();
  catalog_->open = false;
  catalog_->state = ModelState::kAbsent;
  for (const char* path : {"/props", "/slots", "/outrider/speculation"}) {
    for (const std::string model : {"fake", ""}) {
      const HttpReply reply =
          server_->answer({.method = "GET", .path = path, .query = {{"model", model}}});
      EXPECT_EQ(reply.status, 404) << path;
      EXPECT_NE(reply.body.find("model 'fake' is not open"), std::string::npos) << reply.body;
    }
  }
  EXPECT_EQ(catalog_->acquired, 0);
}

TEST_F(LlamaEndpointsTest, WhileAModelLoadsItsPropertiesAreASentenceAndNoWait) {
  start();
  catalog_->open = false;
  catalog_->state = ModelState::kLoading;
  for (const char* path : {"/props", "/slots"}) {
    const HttpReply reply = ask("GET", path);
    EXPECT_EQ(reply.status, 503) << path;
    EXPECT_NE(reply.body.find("Loading model 'fake'"), std::string::npos) << reply.body;
  }
  EXPECT_EQ(catalog_->acquired, 0);
}

TEST_F(LlamaEndpointsTest, WhatThisServerIsNotForIs501WithASentence) {
  start();
  for (const char* path : {"/v1/embeddings", "/embedding", "/rerank", "/v1/images/generations",
                           "/v1/audio/transcriptions", "/lora-adapters"}) {
    const HttpReply reply = ask("POST", path, "{}");
    EXPECT_EQ(reply.status, 501) << path;
    EXPECT_NE(object(reply)["error"]["message"].get<std::string>().find("generates text"),
              std::string::npos);
  }
}

TEST_F(LlamaEndpointsTest, SlotsCannotBeSavedOneByOneAndTheErrorSaysWhatKeepsThem) {
  start();
  const HttpReply reply = server_->answer(
      {.method = "POST", .path = "/slots/0", .body = "{}", .query = {{"action", "save"}}});
  EXPECT_EQ(reply.status, 501);
  const std::string message = object(reply)["error"]["message"];
  EXPECT_NE(message.find("--prompt-cache"), std::string::npos) << message;
  EXPECT_EQ(ask("POST", "/slots/", "{}").status, 404);
  const Json paths = object(ask("GET", "/openapi.json"))["paths"];
  EXPECT_EQ(paths["/slots/{slot}"]["post"]["parameters"][0]["name"], "slot");
}

TEST_F(LlamaEndpointsTest, TheShortPathsAreTheLongOnes) {
  start({}, {.chat = true});
  EXPECT_EQ(ask("GET", "/models").body, ask("GET", "/v1/models").body);
  EXPECT_EQ(ask("GET", "/v1/health").body, ask("GET", "/health").body);
  Json chat = {{"max_tokens", 2}};
  chat["messages"].push_back({{"role", "user"}, {"content", "abc"}});
  EXPECT_EQ(post("/chat/completions", chat).status, 200);
}

}  // namespace
}  // namespace outrider::http
