// The grammars of real models' templates, as masks: what they are for can be said, and nothing
// else.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "llama/grammar/grammar_mask.h"
#include "llama/grammar/trigger_tokens.h"
#include "testing/llama_chat_vocabularies.h"

namespace outrider::llama {
namespace {

using testing::ChatAnswer;

class ChatGrammarTest : public ChatVocabularies {
 protected:
  Result<ChatPrompt> prompt(const ChatAnswer& answer, ToolChoice choice) {
    ChatOptions options;
    options.tools = testing::chat_answer_tools();
    options.tool_choice = choice;
    return vocabulary(answer.file)
        .chat_prompt({{.role = "user", .content = "How is the weather in Paris?"}}, options);
  }

  // Null, with a failure: there is none.
  static std::unique_ptr<GrammarMask> mask_of(const LlamaVocabulary& vocabulary,
                                              const ChatOptions& options) {
    const Result<ChatPrompt> made =
        vocabulary.chat_prompt({{.role = "user", .content = "Hi"}}, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    if (!made.ok()) return nullptr;
    Result<std::unique_ptr<GrammarMask>> mask = GrammarMask::create(made->grammar, vocabulary);
    EXPECT_TRUE(mask.ok()) << mask.status().message();
    return mask.ok() ? std::move(*mask) : nullptr;
  }

  // Says `text`, token for token; whether the grammar binds at the end.
  static Status say(GrammarMask& mask, const std::string& text, const LlamaVocabulary& vocabulary) {
    const Result<std::vector<Token>> tokens = vocabulary.tokenize(text, false, true);
    if (!tokens.ok()) return tokens.status();
    for (const Token token : *tokens) {
      mask.accept(token);
      if (!mask.status().ok()) {
        return mask.status().with_context("at '" + grammar_text(vocabulary, token) + "'");
      }
    }
    return Status();
  }
};

TEST_F(ChatGrammarTest, EveryAnswerKeepsToItsTemplatesGrammar) {
  for (const ChatAnswer& answer : testing::chat_answers()) {
    if (!answer.tools) continue;
    SCOPED_TRACE(answer.file + ": " + answer.text);
    const Result<ChatPrompt> made = prompt(answer, ToolChoice::kAuto);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const bool calls = !answer.reply.tool_calls.empty();
    const LlamaVocabulary& control = vocabulary(answer.file, made->shown);
    if (made->grammar.gbnf.empty()) {  // a call of Llama 3's begins as any JSON does
      EXPECT_TRUE(answer.file.starts_with("meta-llama"));
      continue;
    }
    for (const LlamaVocabulary* v : {&vocabulary(answer.file), &control}) {
      const Result<std::unique_ptr<GrammarMask>> mask = GrammarMask::create(made->grammar, *v);
      ASSERT_TRUE(mask.ok()) << mask.status().message();
      EXPECT_FALSE((*mask)->binds());
      const Status said = say(**mask, answer.text, *v);
      EXPECT_TRUE(said.ok()) << said.message();
      EXPECT_EQ((*mask)->binds(), calls) << (v == &control ? "as control tokens" : "as text");
    }
  }
}

TEST_F(ChatGrammarTest, ARequiredCallIsAllThatCanBeSaid) {
  for (const ChatAnswer& answer : testing::chat_answers()) {
    if (answer.reply.tool_calls.empty() || !answer.reply.content.empty()) continue;
    SCOPED_TRACE(answer.file + ": " + answer.text);
    const Result<ChatPrompt> made = prompt(answer, ToolChoice::kRequired);
    ASSERT_TRUE(made.ok()) << made.status().message();
    ASSERT_TRUE(made->grammar.triggers.empty() && made->grammar.patterns.empty());
    const Result<std::unique_ptr<GrammarMask>> mask =
        GrammarMask::create(made->grammar, vocabulary(answer.file));
    ASSERT_TRUE(mask.ok()) << mask.status().message();
    EXPECT_TRUE((*mask)->binds());
    const Status said = say(**mask, answer.text, vocabulary(answer.file));
    EXPECT_TRUE(said.ok()) << said.message();
  }
}

// llama-common's own grammar lets any text come before a required call.
TEST_F(ChatGrammarTest, NothingCanBeSaidBeforeARequiredCallButReasoning) {
  for (const ChatAnswer& answer : testing::chat_answers()) {
    if (answer.reply.tool_calls.empty() || !answer.reply.content.empty()) continue;
    for (const bool reasoning : {true, false}) {
      SCOPED_TRACE(answer.file + (reasoning ? ", reasoning: " : ": ") + answer.text);
      ChatOptions options;
      options.tools = testing::chat_answer_tools();
      options.tool_choice = ToolChoice::kRequired;
      options.reasoning = reasoning;
      const LlamaVocabulary& v = vocabulary(answer.file);
      const std::unique_ptr<GrammarMask> mask = mask_of(v, options);
      ASSERT_NE(mask, nullptr);
      EXPECT_TRUE(mask->binds());
      EXPECT_FALSE(say(*mask->clone(), "Hello there", v).ok());
      if (reasoning || answer.reply.reasoning.empty()) {
        const Status said = say(*mask, answer.text, v);
        EXPECT_TRUE(said.ok()) << said.message();
      }
    }
  }
}

// All of llama.cpp's collection, whether or not we have an answer of the format.
TEST_F(ChatGrammarTest, NoTemplateLetsContentComeBeforeARequiredCall) {
  ChatOptions options;
  options.tools = testing::chat_answer_tools();
  options.tool_choice = ToolChoice::kRequired;
  options.reasoning = false;
  std::vector<std::string> wide;
  int narrow = 0;
  for (const auto& entry : std::filesystem::directory_iterator(OUTRIDER_CHAT_TEMPLATES)) {
    if (entry.path().extension() != ".jinja") continue;
    const std::string name = entry.path().stem();
    const LlamaVocabulary& v = vocabulary(name);
    const Result<ChatPrompt> made = v.chat_prompt({{.role = "user", .content = "Hi"}}, options);
    if (!made.ok()) continue;  // what it wants beside this message
    const std::string text = "Hello there";
    const bool reasons = !made->reader->read(text, /*complete=*/false).reasoning.empty();
    const Result<std::unique_ptr<GrammarMask>> mask = GrammarMask::create(made->grammar, v);
    ASSERT_TRUE(mask.ok()) << name << ": " << mask.status().message();
    const bool takes_text = say(**mask, text, v).ok();
    if (takes_text && !reasons) wide.push_back(name);
    narrow += takes_text ? 0 : 1;
  }
  EXPECT_EQ(wide, std::vector<std::string>{});
  EXPECT_GE(narrow, 50);
}

TEST_F(ChatGrammarTest, ANamedToolIsCalledExactlyOnce) {
  for (const ChatAnswer& answer : testing::chat_answers()) {
    if (answer.reply.tool_calls.empty() || !answer.reply.content.empty()) continue;
    SCOPED_TRACE(answer.file + ": " + answer.text);
    ChatOptions options;
    options.tools = {testing::chat_answer_tools().front()};
    options.tool_choice = ToolChoice::kRequired;
    options.one_call = true;
    const LlamaVocabulary& v = vocabulary(answer.file);
    const std::unique_ptr<GrammarMask> mask = mask_of(v, options);
    ASSERT_NE(mask, nullptr);
    EXPECT_EQ(say(*mask, answer.text, v).ok(), answer.reply.tool_calls.size() == 1);
    if (answer.reply.tool_calls.size() > 1) continue;
    for (const std::string& more : {answer.text, "\n" + answer.text, std::string("Hello")}) {
      EXPECT_FALSE(say(*mask->clone(), more, v).ok()) << more;
    }
  }
}

// Tools beside a schema for the content: an answer is calls, or content by the schema.
TEST_F(ChatGrammarTest, AnAnswerIsCallsOrContentByASchema) {
  for (const ChatAnswer& answer : testing::chat_answers()) {
    if (answer.reply.tool_calls.empty() || !answer.reply.content.empty()) continue;
    SCOPED_TRACE(answer.file + ": " + answer.text);
    ChatOptions options;
    options.tools = testing::chat_answer_tools();
    options.json_schema =
        R"({"type":"object","properties":{"sure":{"type":"number","minimum":0,"maximum":1}},)"
        R"("required":["sure"]})";
    const LlamaVocabulary& v = vocabulary(answer.file);
    const std::unique_ptr<GrammarMask> mask = mask_of(v, options);
    ASSERT_NE(mask, nullptr);
    EXPECT_TRUE(mask->binds());
    const Status called = say(*mask->clone(), answer.text, v);
    EXPECT_TRUE(called.ok()) << called.message();
    EXPECT_FALSE(say(*mask->clone(), "{\"sure\": 2", v).ok());

    options.tool_choice = ToolChoice::kRequired;
    const std::unique_ptr<GrammarMask> calls = mask_of(v, options);
    ASSERT_NE(calls, nullptr);
    EXPECT_TRUE(say(*calls, answer.text, v).ok());
  }
  for (const char* name : {"Qwen-Qwen3-0.6B", "Qwen-Qwen2.5-7B-Instruct", "google-gemma-2-2b-it",
                           "meta-llama-Llama-3.1-8B-Instruct"}) {
    SCOPED_TRACE(name);
    ChatOptions options;
    options.tools = testing::chat_answer_tools();
    options.json_schema =
        R"({"type":"object","properties":{"sure":{"type":"number","minimum":0,"maximum":1}},)"
        R"("required":["sure"]})";
    const LlamaVocabulary& v = vocabulary(name);
    const std::unique_ptr<GrammarMask> mask = mask_of(v, options);
    ASSERT_NE(mask, nullptr);
    const Status said = say(*mask->clone(), "{\"sure\": 0.75}", v);
    EXPECT_TRUE(said.ok()) << said.message();
    EXPECT_FALSE(say(*mask->clone(), "{\"sure\": 1.5", v).ok());
    EXPECT_FALSE(say(*mask->clone(), "Hello", v).ok());
    const Result<ChatPrompt> made = v.chat_prompt({{.role = "user", .content = "Hi"}}, options);
    EXPECT_EQ(made->reader->read("{\"sure\": 0.75}", true).content, "{\"sure\": 0.75}");
  }
}

// llama-common makes one grammar of all tools, and knows a definition by its name alone.
TEST_F(ChatGrammarTest, ADefinitionIsItsOwnTools) {
  const LlamaVocabulary& v = vocabulary("Qwen-Qwen3-0.6B");
  const auto tool = [](const std::string& name, const std::string& item) {
    return ChatTool{.name = name,
                    .description = "",
                    .parameters = R"({"type":"object","properties":{"x":{"$ref":"#/$defs/Item"}},)"
                                  R"("required":["x"],"$defs":{"Item":{"const":")" +
                                  item + "\"}}}",
                    .strict = true};
  };
  ChatOptions options;
  options.tools = {tool("a", "first"), tool("b", "second")};
  options.tool_choice = ToolChoice::kRequired;
  const std::unique_ptr<GrammarMask> mask = mask_of(v, options);
  ASSERT_NE(mask, nullptr);
  const auto call = [](const std::string& name, const std::string& item) {
    return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": {\"x\": \"" + item +
           "\"}}\n</tool_call>";
  };
  EXPECT_TRUE(say(*mask->clone(), call("a", "first"), v).ok());
  EXPECT_TRUE(say(*mask->clone(), call("b", "second"), v).ok());
  EXPECT_FALSE(say(*mask->clone(), call("a", "second"), v).ok());
  EXPECT_FALSE(say(*mask->clone(), call("b", "first"), v).ok());
}

// parallel_tool_calls says so, too, where calls may be made and need not.
TEST_F(ChatGrammarTest, WithoutParallelCallsTheSecondOneCannotBeSaid) {
  const LlamaVocabulary& v = vocabulary("Qwen-Qwen2.5-7B-Instruct");
  const std::string call =
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
      "\"Paris\"}}\n</tool_call>";
  for (const bool parallel : {true, false}) {
    ChatOptions options;
    options.tools = testing::chat_answer_tools();
    options.parallel_tool_calls = parallel;
    const std::unique_ptr<GrammarMask> mask = mask_of(v, options);
    ASSERT_NE(mask, nullptr);
    ASSERT_TRUE(say(*mask, "I look. " + call, v).ok());
    EXPECT_EQ(say(*mask, "\n" + call, v).ok(), parallel);
  }
}

// As agents with several MCP servers have.
TEST_F(ChatGrammarTest, AsManyToolsAsThereMayBeWithTenPropertiesEachAreHeldTo) {
  ChatOptions options;
  for (int i = 0; i < static_cast<int>(kMaxChatTools); ++i) {
    const std::string number = std::to_string(i);
    std::string properties;
    for (int k = 0; k < 10; ++k) {
      properties += (k == 0 ? "\"property_of_tool_" : ",\"property_of_tool_") + number +
                    "_number_" + std::to_string(k) + R"(":{"type":")" +
                    (k % 2 == 0 ? "integer" : "string") + R"("})";
    }
    options.tools.push_back({.name = "tool_number_" + number,
                             .description = "Does something.",
                             .parameters = R"({"type":"object","properties":{)" + properties +
                                           R"(},"required":["property_of_tool_)" + number +
                                           "_number_0\"]}"});
  }
  struct Format {
    const char* name;
    std::string before;
  };
  for (const Format& format : {Format{"Qwen-Qwen3-0.6B", "<tool_call>\n"},
                               Format{"google-gemma-2-2b-it", R"({"tool_calls":[)"}}) {
    SCOPED_TRACE(format.name);
    const LlamaVocabulary& v = vocabulary(format.name);
    for (const ToolChoice choice : {ToolChoice::kAuto, ToolChoice::kRequired}) {
      options.tool_choice = choice;
      const std::unique_ptr<GrammarMask> mask = mask_of(v, options);
      ASSERT_NE(mask, nullptr);
      const std::string call = format.before + R"({"name": "tool_number_127", "arguments": )";
      const Status said = say(*mask->clone(), call + R"({"property_of_tool_127_number_0": 3)", v);
      EXPECT_TRUE(said.ok()) << said.message();
      EXPECT_FALSE(say(*mask->clone(), call + R"({"property_of_tool_127_number_0": "a)", v).ok());
      EXPECT_FALSE(say(*mask->clone(), call + R"({"property_of_tool_126)", v).ok());
    }
  }
}

TEST_F(ChatGrammarTest, AToolThatIsNotThereCannotBeCalled) {
  const ChatAnswer answer{.file = "Qwen-Qwen3-0.6B"};
  const Result<ChatPrompt> made = prompt(answer, ToolChoice::kAuto);
  ASSERT_TRUE(made.ok());
  const LlamaVocabulary& v = vocabulary(answer.file);
  for (const char* text : {"<tool_call>\n{\"name\": \"delete\"",
                           "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": \"x"}) {
    const Result<std::unique_ptr<GrammarMask>> mask = GrammarMask::create(made->grammar, v);
    ASSERT_TRUE(mask.ok());
    EXPECT_FALSE(say(**mask, text, v).ok()) << text;
  }
}

TEST_F(ChatGrammarTest, WhatIsSaidInReasoningTriggersNothing) {
  const ChatAnswer answer{.file = "Qwen-Qwen3-0.6B"};
  const Result<ChatPrompt> made = prompt(answer, ToolChoice::kAuto);
  ASSERT_TRUE(made.ok());
  const LlamaVocabulary& v = vocabulary(answer.file);
  const Result<std::unique_ptr<GrammarMask>> mask = GrammarMask::create(made->grammar, v);
  ASSERT_TRUE(mask.ok());
  ASSERT_TRUE(say(**mask, "<think>\nI could <tool_call> something", v).ok());
  EXPECT_FALSE((*mask)->binds());
  const std::unique_ptr<GrammarMask> copy = (*mask)->clone();
  ASSERT_TRUE(say(*copy, " else.\n</think>\n\n<tool_call>\n", v).ok());
  EXPECT_TRUE(copy->binds());
  EXPECT_FALSE((*mask)->binds());
}

}  // namespace
}  // namespace outrider::llama
