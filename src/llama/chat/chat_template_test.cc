#include "llama/chat/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "json/json.h"
#include "testing/llama_chat_vocabularies.h"
#include "testing/tiny_vocabulary.h"

namespace outrider::llama {
namespace {

const std::vector<ChatMessage> kHello = {{.role = "user", .content = "Hi"}};
constexpr const char* kSchema = R"({"type":"object","properties":{"a":{"type":"integer"}}})";

class ChatTemplateTest : public ChatVocabularies {};

TEST_F(ChatTemplateTest, WhatATemplateCanExpressIsKnown) {
  const ChatAbilities qwen = vocabulary("Qwen-Qwen3-0.6B").chat_abilities();
  EXPECT_TRUE(qwen.tools);
  EXPECT_TRUE(qwen.reasoning);
  EXPECT_TRUE(vocabulary("Qwen-Qwen3-0.6B").chat_template_caps().at("supports_tool_calls"));
  const ChatAbilities gemma = vocabulary("google-gemma-2-2b-it").chat_abilities();
  EXPECT_FALSE(gemma.tools);
  EXPECT_FALSE(gemma.reasoning);
  EXPECT_FALSE(vocabulary("google-gemma-2-2b-it").chat_template_caps().at("supports_tool_calls"));
}

TEST_F(ChatTemplateTest, EveryTemplateOfLlamaCppsCollectionGivesAPrompt) {
  for (const char* name :
       {"Apertus-8B-Instruct", "ByteDance-Seed-OSS", "CohereForAI-c4ai-command-r-plus-tool_use",
        "GigaChat3-10B-A1.8B", "HuggingFaceTB-SmolLM3-3B", "Kimi-K2-Thinking", "LFM2-8B-A1B",
        "MiniMax-M2", "NVIDIA-Nemotron-Nano-v2", "Qwen3.5-4B", "deepseek-ai-DeepSeek-V3.2",
        "fireworks-ai-llama-3-firefunction-v2", "meetkai-functionary-medium-v3.2",
        "microsoft-Phi-3.5-mini-instruct", "tencent-Hy3", "upstage-Solar-Open-100B"}) {
    const Result<ChatPrompt> made = vocabulary(name).chat_prompt(kHello, ChatOptions());
    ASSERT_TRUE(made.ok()) << name << ": " << made.status().message();
    EXPECT_NE(made->text.find("Hi"), std::string::npos) << name;
    EXPECT_NE(made->reader, nullptr);
  }
}

TEST_F(ChatTemplateTest, ReasoningIsSwitchedOffWhereTheTemplateCan) {
  ChatOptions options;
  options.reasoning = false;
  const LlamaVocabulary& qwen = vocabulary("Qwen-Qwen3-0.6B");
  const std::string with = qwen.chat_prompt(kHello, ChatOptions())->text;
  const std::string without = qwen.chat_prompt(kHello, options)->text;
  EXPECT_EQ(without, with + "<think>\n\n</think>\n\n");
  ChatOptions values;
  values.template_values = R"({"enable_thinking": false})";
  EXPECT_EQ(qwen.chat_prompt(kHello, values)->text, without);
}

TEST_F(ChatTemplateTest, ASchemaIsTheTemplatesOnlyWhereItMarksWhatStandsAroundTheContent) {
  ChatOptions options;
  options.json_schema = kSchema;
  const Result<ChatPrompt> plain = vocabulary("google-gemma-2-2b-it").chat_prompt(kHello, options);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(plain->grammar.gbnf, "");
  const Result<ChatPrompt> reasons = vocabulary("Qwen-Qwen3-0.6B").chat_prompt(kHello, options);
  ASSERT_TRUE(reasons.ok()) << reasons.status().message();
  EXPECT_NE(reasons->grammar.gbnf, "");
  const ChatReply reply = reasons->reader->read("<think>\nHm.\n</think>\n\n{\"a\": 1}", true);
  EXPECT_EQ(reply.content, "{\"a\": 1}");
}

// A prompt says of the tools what was given, whatever the grammar can say of it.
TEST_F(ChatTemplateTest, EveryTemplateSaysTheParametersAsTheyWereGiven) {
  ChatTool tool{.name = "look", .description = "Looks."};
  int n_with_tools = 0;
  int n_told = 0;
  for (const auto& entry : std::filesystem::directory_iterator(OUTRIDER_CHAT_TEMPLATES)) {
    if (entry.path().extension() != ".jinja") continue;
    const std::string name = entry.path().stem();
    const LlamaVocabulary& v = vocabulary(name);
    const auto prompt = [&](const std::string& words, ToolChoice choice) {
      tool.parameters = R"({"type":"object","properties":{"name":{"type":"string")" + words +
                        R"(},"n":)" + R"({"type":"integer"}},"required":["name"]})";
      ChatOptions options;
      options.tools = {tool};
      options.tool_choice = choice;
      return v.chat_prompt(kHello, options);
    };
    const Result<ChatPrompt> known = prompt("", ToolChoice::kAuto);
    if (!known.ok()) continue;  // what it wants beside this message
    EXPECT_NE(known->text.find("look"), std::string::npos) << name << ": the model knows no tool";
    ++n_told;
    const Result<ChatPrompt> beyond = prompt(R"(,"maxLength":98765)", ToolChoice::kAuto);
    ASSERT_TRUE(beyond.ok()) << name << ": " << beyond.status().message();
    EXPECT_EQ(beyond->grammar.gbnf, known->grammar.gbnf) << name;
    // Some write their own words for a schema, and not all of it.
    const Result<ChatPrompt> shown = prompt(R"(,"maxLength":1987)", ToolChoice::kAuto);
    ASSERT_TRUE(shown.ok());
    std::string expected = shown->text;
    for (std::size_t at; (at = expected.find("1987")) != std::string::npos;) {
      expected.replace(at, 4, "98765");
    }
    EXPECT_EQ(beyond->text, expected) << name;
    n_with_tools += expected.find("98765") != std::string::npos ? 1 : 0;
    const Result<ChatPrompt> none = prompt(R"(,"maxLength":98765)", ToolChoice::kNone);
    EXPECT_TRUE(none.ok()) << name << ": " << none.status().message();
  }
  EXPECT_GE(n_with_tools, 20);
  EXPECT_GE(n_told, 60);
}

// Which it may not be able to convert: it is read for the grammar alone, and once.
TEST_F(ChatTemplateTest, APromptSaysTheSchemaAsItWasGiven) {
  ChatOptions options;
  options.json_schema_strict = false;
  const std::string schema = R"({"properties":{"a":true,"b":{"pattern":"^(?=x)y$"}}})";
  options.json_schema = schema;
  for (const char* name : {"deepseek-ai-DeepSeek-V4", "deepseek-ai-DeepSeek-V4-Flash-0731"}) {
    for (const bool tools : {false, true}) {
      if (tools) options.tools = {{.name = "look", .description = "Looks."}};
      const Result<ChatPrompt> made = vocabulary(name).chat_prompt(kHello, options);
      ASSERT_TRUE(made.ok()) << name << ": " << made.status().message();
      const json::Json said = json::parse(schema).value.value();
      const std::size_t at = made->text.find("following schema to reply:\n");
      ASSERT_NE(at, std::string::npos) << made->text;
      const std::string behind = made->text.substr(made->text.find('\n', at) + 1);
      const json::Parsed repeated = json::parse(behind.substr(0, json::object_length(behind)));
      ASSERT_TRUE(repeated.ok()) << behind;
      EXPECT_EQ(*repeated.value, said) << name;
    }
    options.tools.clear();
  }
}

// Its reader is the sampler, once: no prompt depends on it.
TEST_F(ChatTemplateTest, ASchemaThatIsNotTheTemplatesIsNotReadForThePrompt) {
  ChatOptions options;
  options.json_schema = R"({"type":"object","uniqueItems":true,"not":{}})";
  const LlamaVocabulary& plain = vocabulary("google-gemma-2-2b-it");
  const Result<ChatPrompt> left = plain.chat_prompt(kHello, options);
  ASSERT_TRUE(left.ok()) << left.status().message();
  EXPECT_EQ(left->text, plain.chat_prompt(kHello, ChatOptions())->text);
  const Result<ChatPrompt> refused = vocabulary("Qwen-Qwen3-0.6B").chat_prompt(kHello, options);
  EXPECT_EQ(refused.status().field(), "json_schema");
}

TEST_F(ChatTemplateTest, ReasoningStaysInTheContentWhereThatIsAskedFor) {
  ChatOptions options;
  const LlamaVocabulary& qwen = vocabulary("Qwen-Qwen3-0.6B");
  const std::string text = "<think>\nHm.\n</think>\n\nHello.";
  const std::string prompt = qwen.chat_prompt(kHello, options)->text;
  EXPECT_EQ(qwen.chat_prompt(kHello, options)->reader->read(text, true).reasoning, "Hm.\n");
  options.reasoning_in_content = true;
  for (const bool schema : {false, true}) {
    if (schema) options.json_schema = kSchema;
    const Result<ChatPrompt> raw = qwen.chat_prompt(kHello, options);
    ASSERT_TRUE(raw.ok()) << raw.status().message();
    EXPECT_EQ(raw->text, prompt);
    std::string before;
    for (std::size_t n = 0; n <= text.size(); ++n) {
      const ChatReply reply = raw->reader->read(text.substr(0, n), n == text.size());
      EXPECT_EQ(reply.reasoning, "");
      EXPECT_TRUE(reply.content.starts_with(before)) << n << ": '" << reply.content << "'";
      before = reply.content;
    }
    EXPECT_EQ(before, text);
  }
  options.json_schema.clear();
  options.tools = {{.name = "look", .description = "Looks."}};
  const ChatReply reply = qwen.chat_prompt(kHello, options)
                              ->reader->read(
                                  "<think>\nHm.\n</think>\n\n<tool_call>\n{\"name\": "
                                  "\"look\", \"arguments\": {}}\n</tool_call>",
                                  true);
  ASSERT_EQ(reply.tool_calls.size(), 1U);
  EXPECT_EQ(reply.tool_calls[0].name, "look");
  EXPECT_NE(reply.content.find("Hm."), std::string::npos);
}

// What stands for values in the grammar's schema stands in no prompt.
TEST_F(ChatTemplateTest, NoPromptHoldsAMark) {
  ChatOptions options;
  options.json_schema = R"({"type":"object","properties":{"p":{"type":"string","pattern":"^a+$"},)"
                        R"("n":{"type":"integer","minimum":3}},"required":["p","n"]})";
  int n_prompts = 0;
  for (const auto& entry : std::filesystem::directory_iterator(OUTRIDER_CHAT_TEMPLATES)) {
    if (entry.path().extension() != ".jinja") continue;
    const std::string name = entry.path().stem();
    const Result<ChatPrompt> made = vocabulary(name).chat_prompt(kHello, options);
    if (!made.ok()) continue;  // what it wants beside this message
    EXPECT_EQ(made->text.find("u0001"), std::string::npos) << name;
    EXPECT_EQ(made->text.find("8907123456"), std::string::npos) << name;
    ++n_prompts;
  }
  EXPECT_GE(n_prompts, 40);
}

TEST_F(ChatTemplateTest, AnAnswerThatIsGoneOnWithShowsOnlyWhatIsNew) {
  ChatOptions options;
  options.continue_last = true;
  const std::vector<ChatMessage> messages = {kHello[0],
                                             {.role = "assistant", .content = "The sky is"}};
  for (const char* name : {"Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B", "google-gemma-2-2b-it"}) {
    const Result<ChatPrompt> made = vocabulary(name).chat_prompt(messages, options);
    ASSERT_TRUE(made.ok()) << name << ": " << made.status().message();
    EXPECT_TRUE(made->text.ends_with("The sky is")) << made->text;
    EXPECT_EQ(made->reader->read(" blue.", true).content, " blue.") << name;
    EXPECT_EQ(made->reader->given().content, "The sky is") << name;
  }
  // Where tools are described in words, calls have another reader.
  options.tools = testing::chat_answer_tools();
  const Result<ChatPrompt> made = vocabulary("google-gemma-2-2b-it").chat_prompt(messages, options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->reader->read(" blue.", true).content, " blue.");
  EXPECT_EQ(made->reader->given().content, "The sky is");
  EXPECT_EQ(vocabulary("Qwen-Qwen3-0.6B").chat_prompt(kHello, {})->reader->given().content, "");
}

TEST_F(ChatTemplateTest, ASchemaHoldsWhatGoesOnTogetherWithWhatIsSaidOfIt) {
  ChatOptions options;
  options.continue_last = true;
  options.json_schema = R"({"type":"object"})";
  const std::vector<ChatMessage> messages = {kHello[0],
                                             {.role = "assistant", .content = "{\"a\":"}};
  for (const char* name : {"Qwen-Qwen2.5-7B-Instruct", "google-gemma-2-2b-it"}) {
    const Result<ChatPrompt> made = vocabulary(name).chat_prompt(messages, options);
    ASSERT_TRUE(made.ok()) << name << ": " << made.status().message();
    EXPECT_FALSE(made->grammar.gbnf.empty()) << name;
    EXPECT_EQ(made->grammar.said, "{\"a\":") << name;
  }
  options.continue_last = false;
  EXPECT_EQ(vocabulary("google-gemma-2-2b-it").chat_prompt(kHello, options)->grammar.gbnf, "")
      << "left to the caller";
}

TEST_F(ChatTemplateTest, ALastMessageThatSaysNothingIsAsIfItWereNotThere) {
  ChatOptions options;
  options.continue_last = true;
  const ChatMessage nothing{.role = "assistant", .content = ""};
  for (const char* name : {"Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B", "google-gemma-2-2b-it"}) {
    const LlamaVocabulary& v = vocabulary(name);
    for (const bool with_tools : {false, true}) {
      options.tools = with_tools ? testing::chat_answer_tools() : std::vector<ChatTool>();
      ChatOptions begins = options;
      begins.continue_last = false;
      const Result<ChatPrompt> without = v.chat_prompt(kHello, begins);
      ASSERT_TRUE(without.ok()) << name << ": " << without.status().message();
      for (const ContinuedPart part :
           {ContinuedPart::kSaidLast, ContinuedPart::kContent, ContinuedPart::kReasoning}) {
        options.continued_part = part;
        const Result<ChatPrompt> made = v.chat_prompt({kHello[0], nothing}, options);
        ASSERT_TRUE(made.ok()) << name << ": " << made.status().message();
        EXPECT_EQ(made->text, without->text) << name;
        EXPECT_EQ(made->reader->given().content, "") << name;
        EXPECT_EQ(made->reader->read("Yes.", true).content, "Yes.") << name;
      }
    }
  }
}

TEST_F(ChatTemplateTest, WhereNothingElseIsLeftTheErrorNamesTheMessages) {
  ChatOptions options;
  options.continue_last = true;
  const Status refused = vocabulary("Qwen-Qwen3-0.6B")
                             .chat_prompt({{.role = "assistant", .content = ""}}, options)
                             .status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.field(), "messages");
  EXPECT_EQ(refused.message().find("the only message says nothing"), 0U) << refused.message();
}

TEST_F(ChatTemplateTest, ThePartThatGoesOnMayBeNamed) {
  ChatOptions options;
  options.continue_last = true;
  const std::vector<ChatMessage> messages = {
      kHello[0], {.role = "assistant", .content = "", .reasoning = "The sky is"}};
  const LlamaVocabulary& qwen = vocabulary("Qwen-Qwen3-0.6B");
  for (const ContinuedPart part : {ContinuedPart::kSaidLast, ContinuedPart::kReasoning}) {
    options.continued_part = part;
    const Result<ChatPrompt> made = qwen.chat_prompt(messages, options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_TRUE(made->text.ends_with("The sky is")) << made->text;
    EXPECT_EQ(made->reader->given().reasoning, "The sky is");
    EXPECT_EQ(made->reader->read(" blue.</think>Yes", true).content, "Yes");
  }
  options.continued_part = ContinuedPart::kContent;
  const Result<ChatPrompt> made = qwen.chat_prompt(messages, options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_NE(made->text.find("The sky is"), std::string::npos) << made->text;
  EXPECT_FALSE(made->text.ends_with("The sky is")) << "the reasoning has ended";
  EXPECT_EQ(made->reader->read("Yes", true).content, "Yes");
}

TEST_F(ChatTemplateTest, InstructionsInTheMiddleAreAUsersWhereTheTemplateRefusesThem) {
  const std::vector<ChatMessage> messages = {{.role = "system", .content = "Be brief."},
                                             {.role = "user", .content = "Hi"},
                                             {.role = "assistant", .content = "Hello"},
                                             {.role = "system", .content = "It is late."},
                                             {.role = "user", .content = "Bye"}};
  ChatOptions with_tool;
  with_tool.tools = {{.name = "look", .description = "Looks.", .parameters = "{}"}};
  for (const ChatOptions& options : {ChatOptions(), with_tool}) {
    const Result<ChatPrompt> made = vocabulary("Qwen3.5-4B").chat_prompt(messages, options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_NE(made->text.find("user\n[system] It is late.\n\nBye<|im_end|>"), std::string::npos)
        << made->text;
  }
  // A template that takes them gets them as they are.
  const Result<ChatPrompt> made = vocabulary("Qwen-Qwen3-0.6B").chat_prompt(messages, {});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_NE(made->text.find("<|im_start|>system\nIt is late.<|im_end|>"), std::string::npos);
}

TEST_F(ChatTemplateTest, ARefusalOfSomethingElseThanInstructionsIsTold) {
  // Qwen3.5's wants a user's message.
  const Result<ChatPrompt> made = vocabulary("Qwen3.5-4B")
                                      .chat_prompt({{.role = "assistant", .content = "Hello"},
                                                    {.role = "refused", .content = "Hm"},
                                                    {.role = "system", .content = "It is late."}},
                                                   {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().field(), "messages");
  EXPECT_NE(made.status().message().find("refuses"), std::string::npos) << made.status().message();
}

const std::vector<ChatMessage> kCalled = {
    {.role = "user", .content = "Is it raining?"},
    {.role = "assistant",
     .content = "",
     .tool_calls = {{.id = "1", .name = "get_weather", .arguments = R"({"city":"Paris"})"}}},
    {.role = "tool", .content = "rain", .tool_call_id = "1"}};

TEST_F(ChatTemplateTest, EarlierCallsAndResultsAreSaidWhereNoCallMayFollow) {
  ChatOptions forbidden;
  forbidden.tools = testing::chat_answer_tools();
  forbidden.tool_choice = ToolChoice::kNone;
  const LlamaVocabulary& chatml =
      with_template("chatml", std::string(testing::tiny_chat_template()));
  for (const LlamaVocabulary* v : {&vocabulary("google-gemma-2-2b-it"), &chatml}) {
    for (const ChatOptions& options : {forbidden, ChatOptions()}) {
      const Result<ChatPrompt> made = v->chat_prompt(kCalled, options);
      ASSERT_TRUE(made.ok()) << made.status().message();
      const std::string& text = made->text;
      const std::string call =
          R"({"tool_calls":[{"name":"get_weather","arguments":{"city":"Paris"}}]})";
      EXPECT_NE(text.find(call), std::string::npos) << text;
      EXPECT_NE(text.find("user\nResult of get_weather: rain"), std::string::npos) << text;
      EXPECT_EQ(text.find("You can call"), std::string::npos) << text;
      EXPECT_EQ(made->grammar.gbnf, "");
      EXPECT_TRUE(made->reader->read(call, true).tool_calls.empty());
    }
  }
  // A template that knows tools gets them as they are.
  const Result<ChatPrompt> made = vocabulary("Qwen-Qwen3-0.6B").chat_prompt(kCalled, forbidden);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_NE(made->text.find("<tool_response>\nrain"), std::string::npos) << made->text;
}

TEST_F(ChatTemplateTest, EarlierCallsAreCheckedAsTheyWereGivenWhereNoneMayFollow) {
  std::vector<ChatMessage> messages = kCalled;
  messages.pop_back();
  ChatOptions options;
  options.continue_last = true;
  const Status refused = vocabulary("google-gemma-2-2b-it").chat_prompt(messages, options).status();
  EXPECT_EQ(refused.field(), "messages");
  EXPECT_NE(refused.message().find("without tool calls"), std::string::npos) << refused.message();
}

TEST_F(ChatTemplateTest, WhatIsNotOfTheFormatIsContent) {
  ChatOptions options;
  options.tools = testing::chat_answer_tools();
  for (const char* name : {"Qwen-Qwen3-0.6B", "openai-gpt-oss-120b", "moonshotai-Kimi-K2"}) {
    const Result<ChatPrompt> made = vocabulary(name).chat_prompt(kHello, options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    for (const std::string text : {"<tool_call>\n{\"name\": \"what", "\xFF\xFE", "",
                                   "<|channel|><|channel|>", "</think></think>"}) {
      for (const bool complete : {false, true}) {
        static_cast<void>(made->reader->read(text, complete));  // lives
      }
    }
  }
}

}  // namespace
}  // namespace outrider::llama
