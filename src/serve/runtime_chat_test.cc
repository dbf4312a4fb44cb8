// Conversations: the template's prompt, what it asks for, and the reader of what is said.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "testing/runtime_fixture.h"

namespace outrider {
namespace {

using testing::FakeFile;
using testing::RuntimeTest;

class RuntimeChatTest : public RuntimeTest {
 protected:
  RuntimeChatTest() {
    FakeFile file;
    file.chat = true;
    file.pieces = {{0, "(call get {}) "}, {1, "Hello. "}};
    loader_.add("chat", file);
  }

  static CompletionRequest chat(int max_tokens = 20) {
    CompletionRequest r;
    r.messages = {{.role = "user", .content = "Hi"}};
    r.seed = 3;
    r.sampling.temperature = 1.0f;
    r.max_tokens = max_tokens;
    r.width = 4;
    return r;
  }

  static ChatTool tool() { return {.name = "get", .description = "", .parameters = "{}"}; }
};

TEST_F(RuntimeChatTest, AConversationHasAReaderAndAPromptHasNone) {
  const std::unique_ptr<Runtime> runtime = make({}, "chat");
  const Result<StartedCompletion> started = runtime->start(chat());
  ASSERT_TRUE(started.ok()) << started.status().message();
  ASSERT_NE(started->reader, nullptr);
  std::string said;
  ChatReply before;
  std::shared_ptr<const CompletionResult> result;
  while (!result) {
    const Result<PolledCompletion> polled = runtime->poll(started->id, 1000);
    ASSERT_TRUE(polled.ok());
    for (const SaidToken& token : polled->tokens) said += token.text;
    const ChatReply reply = started->reader->read(said, /*complete=*/false);
    EXPECT_TRUE(reply.content.starts_with(before.content));
    EXPECT_GE(reply.tool_calls.size(), before.tool_calls.size());
    before = reply;
    result = polled->result;
  }
  EXPECT_EQ(result->completion.text, said);
  EXPECT_EQ(result->reader, started->reader);

  const Result<StartedCompletion> plain = runtime->start(testing::ask({1, 2}, 3, 5));
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->reader, nullptr);
}

TEST_F(RuntimeChatTest, ToolsAreOfThePrompt) {
  const std::unique_ptr<Runtime> runtime = make({}, "chat", 256);
  CompletionRequest with = chat(1);
  with.chat.tools = {tool()};
  CompletionRequest without = with;
  without.chat.tool_choice = ToolChoice::kNone;
  const Result<StartedCompletion> a = runtime->start(with);
  const Result<StartedCompletion> b = runtime->start(without);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status().message() << b.status().message();
  EXPECT_GT(a->prompt.n_tokens, b->prompt.n_tokens);
}

TEST_F(RuntimeChatTest, WhatDoesNotGoTogetherIsRefusedByItsField) {
  const std::unique_ptr<Runtime> runtime = make({}, "chat");
  CompletionRequest schema = chat();
  schema.chat.tools = {tool()};
  schema.sampling.json_schema = "{}";
  schema.sampling.grammar_triggers = {"{"};
  CompletionRequest grammar = chat();
  grammar.chat.tools = {tool()};
  grammar.sampling.grammar = "root ::= \"a\"";
  CompletionRequest no_messages = testing::ask({1}, 1, 1);
  no_messages.chat.tools = {tool()};
  CompletionRequest values = testing::ask({1}, 1, 1);
  values.chat.template_values = "{\"a\":1}";
  CompletionRequest nothing = chat();
  nothing.chat.tool_choice = ToolChoice::kRequired;
  CompletionRequest role = chat();
  role.messages[0].role = "refused";
  const std::pair<CompletionRequest*, const char*> cases[] = {
      {&schema, "grammar_trigger"},      {&grammar, "grammar"},     {&no_messages, "tools"},
      {&values, "chat_template_kwargs"}, {&nothing, "tool_choice"}, {&role, "messages"}};
  for (const auto& [request, field] : cases) {
    const Status status = runtime->start(*request).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << field;
    EXPECT_EQ(status.field(), field) << status.message();
  }
  schema.chat.tool_choice = ToolChoice::kNone;
  EXPECT_TRUE(runtime->start(schema).ok()) << "no calls, so nothing to keep apart";
  schema.chat.tool_choice = ToolChoice::kAuto;
  schema.sampling.grammar_triggers.clear();
  EXPECT_TRUE(runtime->start(schema).ok()) << "calls, or content by the schema";
}

}  // namespace
}  // namespace outrider
