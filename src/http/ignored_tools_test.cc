// Agents send tools that nobody here can call, and ask for nothing by it: they get their answer. So
// they do where they wish something of it that nothing comes of here.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "http/completion/body_test.h"
#include "http/completion/completion_task.h"
#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kResponses = "/v1/responses";
constexpr const char* kMessages = "/v1/messages";

class IgnoredToolsTest : public ServerTest {
 protected:
  // A request of the API at `path`, with these fields besides.
  static Json body(const std::string& path, const char* more) {
    Json body = parsed(path == kResponses ? R"({"input":"abc","max_output_tokens":4,"seed":7})"
                                          : R"({"messages":[{"role":"user","content":"abc"}],
                                                "max_tokens":4,"seed":7,"model":"fake"})");
    body.update(parsed(more));
    return body;
  }
  HttpReply reply_to(const std::string& path, const char* more) {
    return post(path, body(path, more));
  }
  static std::string ignored(const HttpReply& reply,
                             std::string_view header = kIgnoredToolsHeader) {
    for (const auto& [name, value] : reply.headers) {
      if (name == header) return value;
    }
    return "";
  }
};

// What Codex, Claude Code and others send beside their functions.
constexpr const char* kOwnOfResponses = R"({"tool_choice":"auto","tools":[
  {"type":"web_search"},{"type":"function","name":"f","parameters":{"type":"object"}},
  {"type":"local_shell"},{"type":"namespace","name":"mcp","tools":[]},
  {"type":"custom","name":"apply_patch","format":{"type":"grammar"}},{"type":"web_search"}]})";
constexpr const char* kOwnOfMessages = R"({"tool_choice":{"type":"auto"},"tools":[
  {"type":"web_search_20250305","name":"web_search","max_uses":5},
  {"name":"f","input_schema":{"type":"object"}}]})";
constexpr const char* kOwnOfChat = R"({"tool_choice":"auto","tools":[
  {"type":"custom","custom":{"name":"g"}},{"type":"function","function":{"name":"f"}}]})";

TEST_F(IgnoredToolsTest, AreSaidInAHeaderAndDoNotDisturbTheAnswer) {
  start();
  struct Case {
    const char* path;
    const char* fields;
    const char* function;  // the one alone
    const char* ignored;
  };
  const Case cases[] = {
      {kResponses, kOwnOfResponses,
       R"({"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]})",
       "web_search, local_shell, namespace, custom"},
      {kMessages, kOwnOfMessages, R"({"tools":[{"name":"f","input_schema":{"type":"object"}}]})",
       "web_search_20250305"},
      {kChat, kOwnOfChat, R"({"tools":[{"type":"function","function":{"name":"f"}}]})", "custom"}};
  for (const Case& one : cases) {
    const HttpReply reply = reply_to(one.path, one.fields);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(ignored(reply), one.ignored);
    const HttpReply alone = reply_to(one.path, one.function);
    EXPECT_EQ(alone.status, 200) << alone.body;
    EXPECT_EQ(ignored(alone), "");
    for (const char* name : {"output", "content", "choices"}) {
      Json said = object(reply).value(name, Json::array());
      Json alike = object(alone).value(name, Json::array());
      for (Json* list : {&said, &alike}) {
        for (Json& item : *list) item.erase("id");
      }
      EXPECT_EQ(said, alike) << one.path;
    }
    Json streamed = body(one.path, one.fields);
    streamed["stream"] = true;
    const HttpReply stream = post(one.path, streamed);
    EXPECT_EQ(ignored(stream), one.ignored);
    EXPECT_FALSE(events(stream).empty());
  }
}

TEST_F(IgnoredToolsTest, AResponseRepeatsOnlyTheToolsThatCanBeCalled) {
  start();
  const Json response = object(reply_to(kResponses, kOwnOfResponses));
  ASSERT_EQ(response["tools"].size(), 1U);
  EXPECT_EQ(response["tools"][0]["name"], "f");
}

TEST_F(IgnoredToolsTest, MayBeAllThatThereAre) {
  start();
  for (const auto& [path, fields] :
       {std::pair(kResponses, R"({"tools":[{"type":"web_search"}]})"),
        std::pair(kMessages, R"({"tools":[{"type":"bash_20250124","name":"bash"}]})"),
        std::pair(kChat, R"({"tools":[{"type":"web_search"}],"tool_choice":"none"})")}) {
    EXPECT_EQ(reply_to(path, fields).status, 200) << path;
  }
}

TEST_F(IgnoredToolsTest, AreRefusedAlikeWhereOneIsToBeCalled) {
  start();
  struct Case {
    const char* path;
    const char* fields;
    const char* field;
  };
  const Case cases[] = {
      {kResponses, R"({"tools":[{"type":"web_search"}],"tool_choice":"required"})", "tool_choice"},
      {kMessages, R"({"tools":[{"type":"bash_20250124","name":"bash"}],
                      "tool_choice":{"type":"any"}})",
       "tool_choice"},
      {kChat, R"({"tools":[{"type":"web_search"}],"tool_choice":"required"})", "tool_choice"},
      {kResponses, R"({"tools":[{"type":"web_search"},{"type":"function","name":"f"}],
                       "tool_choice":{"type":"web_search"}})",
       "tool_choice.type"},
      {kMessages, R"({"tools":[{"type":"bash_20250124","name":"bash"}],
                      "tool_choice":{"type":"tool","name":"bash"}})",
       "tool_choice.name"},
      {kChat, R"({"tools":[{"type":"custom","custom":{"name":"g"}}],
                  "tool_choice":{"type":"custom","custom":{"name":"g"}}})",
       "tool_choice.type"}};
  for (const Case& one : cases) {
    const HttpReply reply = reply_to(one.path, one.fields);
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_NE(reply.body.find(one.field), std::string::npos) << reply.body;
  }
}

TEST_F(IgnoredToolsTest, WishesOfTheAnswerThatNothingComesOfAreSaidInAHeader) {
  start();
  struct Case {
    const char* path;
    const char* fields;
    const char* ignored;
  };
  const Case cases[] = {
      {kResponses, R"({"text":{"verbosity":"low"},"max_tool_calls":3,"include":[
                       "reasoning.encrypted_content","message.output_text.logprobs"]})",
       "include=reasoning.encrypted_content, text.verbosity"},
      {kMessages, R"({"thinking":{"type":"enabled","budget_tokens":1024}})",
       "thinking.budget_tokens"},
      {kChat, R"({"verbosity":"high"})", "verbosity"},
      {kMessages, R"({"context_management":{"edits":[{"type":"clear_thinking_20251015"}]}})",
       "context_management"},
      {kMessages, R"({"context_management":null})", ""},
      {kResponses, R"({"context_management":[{"type":"compaction"}]})", "context_management"},
      {kResponses, R"({"reasoning":{"summary":"concise"}})", "reasoning.summary=concise"},
      {kResponses, R"({"reasoning":{"summary":"auto"}})", ""},
      {kResponses, R"({"truncation":"auto"})", "truncation"},
      {kResponses, R"({"truncation":"disabled"})", ""},
      {kResponses, R"({"text":{"format":{"type":"text"}}})", ""},
      {kMessages, R"({"thinking":{"type":"adaptive"}})", ""},
      {kChat, R"({"verbosity":null})", ""}};
  for (const Case& one : cases) {
    Json asked = body(one.path, one.fields);
    for (const bool stream : {false, true}) {
      asked["stream"] = stream;
      const HttpReply reply = post(one.path, asked);
      EXPECT_EQ(reply.status, 200) << reply.body;
      EXPECT_EQ(ignored(reply, kIgnoredHeader), one.ignored) << one.fields;
    }
  }
}

// A body has room for a million, which were compared with each other: minutes of a core.
TEST_F(IgnoredToolsTest, HaveAMostTogetherWithTheOthersWhereverTheyAreRead) {
  start();
  for (const char* path :
       {kChat, "/apply-template", "/v1/chat/completions/input_tokens", kResponses,
        "/v1/responses/input_tokens", kMessages, "/v1/messages/count_tokens"}) {
    const bool is_response = std::string_view(path).starts_with(kResponses);
    Json asked = body(is_response ? kResponses : path, "{}");
    Json& tools = asked["tools"] = Json::array();
    for (int i = 0; i < 1024; ++i) tools.push_back({{"type", "own_" + std::to_string(i)}});
    const HttpReply reply = post(path, asked);
    EXPECT_EQ(reply.status, 200) << path << reply.body;
    if (path == std::string_view(kChat)) {
      EXPECT_TRUE(ignored(reply).starts_with("own_0, own_1, own_2")) << ignored(reply);
    }
    tools.push_back({{"type", "own_0"}});
    const HttpReply refused = post(path, asked);
    EXPECT_EQ(refused.status, 400) << path;
    EXPECT_NE(refused.body.find("tools holds 1025, at most 1024 can be"), std::string::npos)
        << path << refused.body;
  }
}

// The type is the client's text, and becomes part of a header.
TEST_F(IgnoredToolsTest, CannotWriteHeadersOfTheirOwn) {
  start();
  const HttpReply reply =
      reply_to(kResponses, R"({"tools":[{"type":"a\r\nSet-Cookie: b=1, c\u00e4"}]})");
  EXPECT_EQ(ignored(reply), "a__Set-Cookie:_b=1__c__");
}

}  // namespace
}  // namespace outrider::http
