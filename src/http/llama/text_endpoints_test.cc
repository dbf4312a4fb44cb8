// Texts to tokens and back, and conversations to texts, over HTTP.
#include "http/llama/text_endpoints.h"

#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

class TextEndpointsTest : public ServerTest {
 protected:
  Json answered(const std::string& path, const Json& asked) {
    const HttpReply reply = post(path, asked);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return object(reply);
  }
  std::string field_of_error(const std::string& path, const Json& asked) {
    const HttpReply reply = post(path, asked);
    EXPECT_EQ(reply.status, 400) << reply.body;
    return object(reply)["error"].value("param", "");
  }
};

TEST_F(TextEndpointsTest, TokensGoThereAndBack) {
  start({}, {});
  EXPECT_EQ(answered("/tokenize", {{"content", "abc"}}), Json({{"tokens", {0, 1, 2}}}));
  EXPECT_EQ(answered("/tokenize", {{"content", {0, "bc"}}})["tokens"], Json({0, 1, 2}));
  EXPECT_EQ(answered("/tokenize", {{"content", {"a", "bc"}}})["tokens"], Json({0, 1, 2}));
  EXPECT_EQ(answered("/detokenize", {{"tokens", {0, 1, 2}}}), Json({{"content", "abc"}}));
  EXPECT_EQ(answered("/detokenize", {{"tokens", Json::array()}})["content"], "");
}

TEST_F(TextEndpointsTest, PiecesAreTextsOrBytesAndControlTokensHaveTheirNames) {
  testing::FakeFile file;
  file.pieces = {{0, "a"}, {1, "\xC3"}, {2, ""}};
  file.chat = true;
  start({}, file);
  const Json tokens =
      answered("/tokenize", {{"content", {0, 1, 2}}, {"with_pieces", true}})["tokens"];
  EXPECT_EQ(tokens, Json::array({{{"id", 0}, {"piece", "a"}},
                                 {{"id", 1}, {"piece", Json::array({0xC3})}},
                                 {{"id", 2}, {"piece", "<2>"}}}));
  EXPECT_EQ(answered("/detokenize", {{"tokens", {0, 2}}})["content"], "a<2>");
}

TEST_F(TextEndpointsTest, ErrorsNameTheField) {
  start({}, {});
  EXPECT_EQ(field_of_error("/tokenize", Json::object()), "content");
  EXPECT_EQ(field_of_error("/tokenize", {{"content", 3}}), "content");
  EXPECT_EQ(field_of_error("/tokenize", {{"content", "a"}, {"with_pieces", "yes"}}), "with_pieces");
  EXPECT_EQ(field_of_error("/tokenize", {{"text", "a"}}), "content");
  EXPECT_EQ(field_of_error("/detokenize", {{"tokens", "ab"}}), "tokens");
  EXPECT_EQ(field_of_error("/detokenize", {{"tokens", {0, 12}}}), "tokens[1]");
  EXPECT_EQ(field_of_error("/detokenize", {{"tokens", {-1}}}), "tokens[0]");
  EXPECT_EQ(post("/tokenize", {{"content", "a"}, {"model", "no"}}).status, 404);
  EXPECT_EQ(post("/tokenize", {{"content", "a"}, {"model", 3}}).status, 400);
}

// A text of 16 MiB may have as many tokens, whose objects take 200 bytes each.
TEST_F(TextEndpointsTest, TokensWithTheirPiecesHaveAMostAndSoHaveIds) {
  start({}, {});
  const std::string text(kMaxListed + 1, 'a');
  EXPECT_EQ(answered("/tokenize", {{"content", text}})["tokens"].size(), kMaxListed + 1);
  EXPECT_EQ(field_of_error("/tokenize", {{"content", text}, {"with_pieces", true}}), "content");
  EXPECT_EQ(field_of_error("/detokenize", {{"tokens", std::vector<Token>(kMaxListed + 1, 0)}}),
            "tokens");
  EXPECT_EQ(answered("/detokenize", {{"tokens", std::vector<Token>(kMaxListed, 0)}})["content"],
            text.substr(1));
}

TEST_F(TextEndpointsTest, AConversationIsShownAndCountedAsTheModelReadsIt) {
  start({}, {.chat = true});
  Json chat = Json::object();
  chat["messages"].push_back({{"role", "user"}, {"content", "abc"}});
  EXPECT_EQ(answered("/apply-template", chat)["prompt"], "user: abc\nassistant: ");
  EXPECT_EQ(answered("/v1/chat/completions/input_tokens", chat)["input_tokens"], 21);
  const Json counted = {{"input_tokens", 21}, {"object", "response.input_tokens"}};
  EXPECT_EQ(answered("/chat/completions/input_tokens", chat), counted);
  for (const char* path : {"/v1/responses/input_tokens", "/responses/input_tokens"}) {
    EXPECT_EQ(answered(path, {{"input", "abc"}}), counted);
    EXPECT_EQ(field_of_error(path, Json::object()), "input");
  }
  EXPECT_EQ(field_of_error("/apply-template", Json::object()), "messages");
  Json open = chat;
  open["messages"].push_back({{"role", "assistant"}, {"content", "Sure, "}});
  const std::string prompt = answered("/apply-template", open)["prompt"];
  EXPECT_TRUE(prompt.ends_with("Sure, ")) << prompt;
  chat["reasoning_effort"] = "low";
  EXPECT_EQ(answered("/apply-template", chat)["prompt"], "user: abc\nassistant: ");
  chat["reasoning_effort"] = "lower";
  EXPECT_EQ(field_of_error("/apply-template", chat), "reasoning_effort");
  chat.erase("reasoning_effort");
  chat["reasoning"] = {{"effort", "low"}};
  EXPECT_EQ(answered("/apply-template", chat)["prompt"], "user: abc\nassistant: ");
}

TEST_F(TextEndpointsTest, WhatAChatMayHaveBesideItsMessagesIsTakenOrRefusedAsThere) {
  start({}, {.chat = true});
  Json chat = Json::object();
  chat["messages"].push_back({{"role", "user"}, {"content", "abc"}});
  chat["samplers"] = Json::array({"top_k", "temperature"});
  chat["reasoning_format"] = "auto";
  EXPECT_EQ(answered("/apply-template", chat)["prompt"], "user: abc\nassistant: ");
  EXPECT_EQ(answered("/v1/chat/completions/input_tokens", chat)["input_tokens"], 21);
  chat["reasoning_format"] = "xml";
  EXPECT_EQ(field_of_error("/apply-template", chat), "reasoning_format");
}

// Clients send the body of the chat that they are about to ask for.
TEST_F(TextEndpointsTest, EveryBodyThatAChatTakesCanBeShownAndCounted) {
  start({}, {.chat = true});
  const Json function = {{"type", "function"}, {"function", {{"name", "look"}}}};
  const Json other = {{"type", "web_search"}};
  const Json bodies =
      Json::array({Json::object(),
                   {{"logprobs", true}},
                   {{"logprobs", true}, {"top_logprobs", 2}},
                   {{"logprobs", false}, {"top_logprobs", 2}},
                   {{"tools", Json::array({function, other})}},
                   {{"tools", Json::array({other})}},
                   {{"tools", Json::array({other})}, {"tool_choice", "auto"}},
                   {{"verbosity", "low"}},
                   {{"n", 2}, {"stream", true}, {"stream_options", {{"include_usage", true}}}},
                   {{"reasoning_effort", "low"}, {"continue_final_message", false}},
                   {{"user", "someone"}, {"store", true}, {"metadata", Json::object()}}});
  for (Json body : bodies) {
    body["messages"] = Json::array({{{"role", "user"}, {"content", "abc"}}});
    body["max_tokens"] = 1;
    EXPECT_EQ(post("/v1/chat/completions", body).status, 200) << body;
    for (const char* path : {"/apply-template", "/v1/chat/completions/input_tokens"}) {
      const HttpReply reply = post(path, body);
      EXPECT_EQ(reply.status, 200) << path << ": " << body << "\n" << reply.body;
    }
  }
  Json refused = {{"tools", Json::array({other})}, {"tool_choice", "required"}};
  refused["messages"] = Json::array({{{"role", "user"}, {"content", "abc"}}});
  for (const char* path :
       {"/v1/chat/completions", "/apply-template", "/v1/chat/completions/input_tokens"}) {
    EXPECT_EQ(field_of_error(path, refused), "tool_choice") << path;
  }
}

}  // namespace
}  // namespace outrider::http
