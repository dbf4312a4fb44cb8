// Answers in the formats of real models' templates (llama.cpp's models/templates), read whole and
// at every byte: what a stream shows only grows, and ends as the whole.
#include <gtest/gtest.h>

#include <string>

#include "testing/llama_chat_vocabularies.h"

namespace outrider::llama {
namespace {

using testing::ChatAnswer;

// What is wrong between an earlier reply and a later one; empty: it has only grown.
std::string shrinks(const ChatReply& before, const ChatReply& after) {
  if (!after.content.starts_with(before.content)) {
    return "content '" + before.content + "' became '" + after.content + "'";
  }
  if (!after.reasoning.starts_with(before.reasoning)) {
    return "reasoning '" + before.reasoning + "' became '" + after.reasoning + "'";
  }
  if (after.tool_calls.size() < before.tool_calls.size()) return "a call is gone";
  for (std::size_t i = 0; i < before.tool_calls.size(); ++i) {
    const ToolCall& a = before.tool_calls[i];
    const ToolCall& b = after.tool_calls[i];
    if (a.name != b.name) return "the name '" + a.name + "' became '" + b.name + "'";
    if (!a.id.empty() && a.id != b.id) return "the id '" + a.id + "' became '" + b.id + "'";
    if (!b.arguments.starts_with(a.arguments)) {
      return "arguments '" + a.arguments + "' became '" + b.arguments + "'";
    }
  }
  return "";
}

class ChatFormatsTest : public ChatVocabularies {
 protected:
  Result<ChatPrompt> prompt(const ChatAnswer& answer) {
    ChatOptions options;
    if (answer.tools) options.tools = testing::chat_answer_tools();
    return vocabulary(answer.file)
        .chat_prompt({{.role = "user", .content = "How is the weather in Paris?"}}, options);
  }
};

TEST_F(ChatFormatsTest, AnAnswerIsTakenApart) {
  for (const ChatAnswer& answer : testing::chat_answers()) {
    SCOPED_TRACE(answer.file + ": " + answer.text);
    const Result<ChatPrompt> made = prompt(answer);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const ChatReply reply = made->reader->read(answer.text, /*complete=*/true);
    EXPECT_EQ(reply.content, answer.reply.content);
    EXPECT_EQ(reply.reasoning, answer.reply.reasoning);
    ASSERT_EQ(reply.tool_calls.size(), answer.reply.tool_calls.size());
    for (std::size_t i = 0; i < reply.tool_calls.size(); ++i) {
      EXPECT_EQ(reply.tool_calls[i].name, answer.reply.tool_calls[i].name);
      EXPECT_EQ(reply.tool_calls[i].arguments, answer.reply.tool_calls[i].arguments);
      EXPECT_EQ(reply.tool_calls[i].id, answer.reply.tool_calls[i].id);
    }
  }
}

TEST_F(ChatFormatsTest, WhatAStreamShowsOnlyGrowsAndEndsAsTheWhole) {
  for (const ChatAnswer& answer : testing::chat_answers()) {
    SCOPED_TRACE(answer.file + ": " + answer.text);
    const Result<ChatPrompt> made = prompt(answer);
    ASSERT_TRUE(made.ok()) << made.status().message();
    ChatReply before;
    for (std::size_t n = 0; n <= answer.text.size() + 1; ++n) {
      const bool complete = n > answer.text.size();
      const std::string text = answer.text.substr(0, n);
      const ChatReply reply = made->reader->read(text, complete);
      ASSERT_EQ(shrinks(before, reply), "") << "at byte " << n << ": '" << text << "'";
      before = reply;
    }
  }
}

}  // namespace
}  // namespace outrider::llama
