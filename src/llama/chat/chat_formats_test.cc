// Answers in the formats of real models' templates (llama.cpp's models/templates), read whole and
// at every byte: what a stream shows only grows, and ends as the whole.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

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

// llama-common's parsers stop before what may begin a mark where the text ends.
struct Unfinished {
  const char* file;
  bool tools;
  const char* begin;  // what the format says before content
};
constexpr Unfinished kUnfinished[] = {
    {.file = "openai-gpt-oss-120b", .tools = false, .begin = "<|channel|>final<|message|>"},
    {.file = "google-gemma-4-31B-it", .tools = false, .begin = ""},
    {.file = "google-gemma-4-31B-it", .tools = true, .begin = ""},
    {.file = "Qwen-Qwen3-0.6B", .tools = true, .begin = ""}};

TEST_F(ChatFormatsTest, AnAnswerThatEndsWithTheBeginningOfAMarkKeepsIt) {
  for (const Unfinished& format : kUnfinished) {
    SCOPED_TRACE(format.file);
    const Result<ChatPrompt> made = prompt({.file = format.file, .tools = format.tools});
    ASSERT_TRUE(made.ok()) << made.status().message();
    for (const std::string words : {"a <", "a <<", "<", "a < b", "a\n\n<"}) {
      const std::string text = format.begin + words;
      ChatReply before;
      for (std::size_t n = 0; n <= text.size(); ++n) {
        const ChatReply reply = made->reader->read(text.substr(0, n), /*complete=*/false);
        ASSERT_EQ(shrinks(before, reply), "") << "at byte " << n << " of '" << text << "'";
        before = reply;
      }
      const ChatReply whole = made->reader->read(text, /*complete=*/true);
      EXPECT_EQ(shrinks(before, whole), "");
      EXPECT_EQ(whole.content, words);
      EXPECT_EQ(whole.reasoning, "");
      EXPECT_TRUE(whole.tool_calls.empty());
    }
  }
  const Result<ChatPrompt> qwen = prompt({.file = "Qwen-Qwen3-0.6B", .tools = true});
  ASSERT_TRUE(qwen.ok());
  EXPECT_EQ(qwen->reader->read("<think>\na <", /*complete=*/true).reasoning, "a <");
}

TEST_F(ChatFormatsTest, ALastMessageThatEndsWithTheBeginningOfAMarkIsNotSaidTwice) {
  for (const Unfinished& format : kUnfinished) {
    SCOPED_TRACE(format.file);
    ChatOptions options;
    options.continue_last = true;
    if (format.tools) options.tools = testing::chat_answer_tools();
    const Result<ChatPrompt> made =
        vocabulary(format.file)
            .chat_prompt({{.role = "user", .content = "Hi"}, {.role = "assistant", .content = "<"}},
                         options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(made->reader->given().content, "<");
    EXPECT_EQ(made->reader->read("", true).content, "");
    EXPECT_EQ(made->reader->read("b", false).content, "b");
    EXPECT_EQ(made->reader->read("b>", true).content, "b>");
    EXPECT_EQ(made->reader->read("b> <", true).content, "b> <");
  }
}

// Mistral's take nine letters or digits, and nothing else.
struct ShortIds {
  const char* file;
  std::string before_call;  // its id
  std::string before_result;
};

// What stands behind each `mark`, nine characters of it.
std::vector<std::string> nine_behind(const std::string& text, const std::string& mark) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    found.push_back(text.substr(at + mark.size(), 9));
  }
  return found;
}

TEST_F(ChatFormatsTest, AnEarlierCallIsTakenWhateverItsId) {
  for (const ShortIds& format :
       {ShortIds{"mistralai-Mistral-Nemo-Instruct-2407", "\"id\": \"", "\"call_id\": \""},
        ShortIds{"Mistral-Small-3.2-24B-Instruct-2506", "[CALL_ID]", "[TOOL_RESULTS]"}}) {
    for (const std::string id : {"call_0123456789abcdef", ""}) {
      SCOPED_TRACE(format.file + (": '" + id) + "'");
      const std::string other = id.empty() ? "" : id + "0";
      std::vector<ChatMessage> messages = {
          {.role = "user", .content = "How is the weather?"},
          {.role = "assistant",
           .content = "",
           .tool_calls = {{.id = id, .name = "get_weather", .arguments = R"({"city":"Paris"})"},
                          {.id = other, .name = "add", .arguments = R"({"a":1,"b":2})"}}},
          {.role = "tool", .content = "4", .tool_call_id = id},
          {.role = "tool", .content = "3", .tool_call_id = other}};
      ChatOptions options;
      for (const bool tools : {true, false}) {
        options.tools = tools ? testing::chat_answer_tools() : std::vector<ChatTool>();
        const Result<ChatPrompt> made = vocabulary(format.file).chat_prompt(messages, options);
        ASSERT_TRUE(made.ok()) << made.status().message();
        const std::vector<std::string> calls = nine_behind(made->text, format.before_call);
        ASSERT_EQ(calls.size(), 2U) << made->text;
        EXPECT_EQ(nine_behind(made->text, format.before_result), calls) << made->text;
        EXPECT_NE(calls[0], calls[1]);
        EXPECT_EQ(made->text.find("call_0"), std::string::npos);
      }
      // Beside instructions in the middle, which Nemo's refuses as well.
      messages.insert(messages.end(), {{.role = "assistant", .content = "Rain."},
                                       {.role = "system", .content = "It is late."},
                                       {.role = "user", .content = "Bye"}});
      const Result<ChatPrompt> late = vocabulary(format.file).chat_prompt(messages, options);
      ASSERT_TRUE(late.ok()) << late.status().message();
      EXPECT_NE(late->text.find("It is late."), std::string::npos) << late->text;
    }
  }
}

}  // namespace
}  // namespace outrider::llama
