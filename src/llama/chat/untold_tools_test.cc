// Templates that do a part of what tools need: what they leave out is in the prompt.
#include "llama/chat/untold_tools.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/llama_chat_vocabularies.h"

namespace outrider::llama {
namespace {

constexpr const char* kTold = "You can call these tools: ";

const std::vector<ChatMessage> kAsked = {{.role = "user", .content = "How is the weather?"}};

ChatMessage call_with(const std::string& arguments) {
  return {.role = "assistant",
          .content = "",
          .tool_calls = {{.id = "1", .name = "get_weather", .arguments = arguments}}};
}

std::vector<ChatMessage> weather_called(const std::string& arguments) {
  return {
      kAsked[0], call_with(arguments), {.role = "tool", .content = "rain", .tool_call_id = "1"}};
}

ChatOptions weather(ToolChoice choice = ToolChoice::kAuto) {
  ChatOptions options;
  options.tools = {{.name = "get_weather",
                    .description = "The weather in a city",
                    .parameters = R"({"type":"object","properties":{"city":{"type":"string"},)"
                                  R"("days":{"type":"integer"}},"required":["city"]})"}};
  options.tool_choice = choice;
  return options;
}

bool holds(const Result<ChatPrompt>& made, const std::string& text) {
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() && made->text.find(text) != std::string::npos;
}

class UntoldToolsTest : public ChatVocabularies {};

TEST_F(UntoldToolsTest, TheModelIsToldOfToolsThatItsTemplateDoesNotName) {
  for (const char* name : {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek-ai-DeepSeek-V3.1",
                           "fireworks-ai-llama-3-firefunction-v2"}) {
    SCOPED_TRACE(name);
    const LlamaVocabulary& v = vocabulary(name);
    EXPECT_TRUE(v.chat_abilities().tools);
    const Result<ChatPrompt> made = v.chat_prompt(kAsked, weather());
    EXPECT_TRUE(holds(made, kTold + std::string(R"([{"name":"get_weather")")));
    EXPECT_TRUE(holds(made, "Where a tool helps, answer with a call."));
    EXPECT_FALSE(holds(made, R"({"tool_calls":)")) << "calls have a form of its own";
    const Result<ChatPrompt> required = v.chat_prompt(kAsked, weather(ToolChoice::kRequired));
    EXPECT_TRUE(holds(required, "\nAnswer with a call."));
    EXPECT_NE(required->grammar.gbnf, "");
    EXPECT_FALSE(holds(v.chat_prompt(kAsked, weather(ToolChoice::kNone)), kTold));
    EXPECT_FALSE(holds(v.chat_prompt(kAsked, {}), kTold));
    const Result<ChatPrompt> behind =
        v.chat_prompt({{.role = "system", .content = "Be short."}, kAsked[0]}, weather());
    EXPECT_TRUE(holds(behind, "Be short.\n\n" + std::string(kTold)));
  }
}

TEST_F(UntoldToolsTest, EarlierCallsStayInTheFormOfATemplateThatWritesThem) {
  const Result<ChatPrompt> made =
      vocabulary("deepseek-ai-DeepSeek-V3.1")
          .chat_prompt(weather_called(R"({"city":"Paris"})"), weather());
  EXPECT_TRUE(holds(made, kTold));
  EXPECT_TRUE(holds(made, "<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"));
  EXPECT_TRUE(holds(made, "<｜tool▁output▁begin｜>rain<｜tool▁output▁end｜>"));
}

TEST_F(UntoldToolsTest, Lfm2CallsAndItsEarlierCallsHaveItsOwnForm) {
  const std::string call =
      R"(<|tool_call_start|>[get_weather(city="Paris", days=2)]<|tool_call_end|>)";
  for (const char* name : {"LFM2-8B-A1B", "LFM2.5-Instruct", "LFM2.5-8B-A1B"}) {
    SCOPED_TRACE(name);
    const LlamaVocabulary& v = vocabulary(name);
    EXPECT_TRUE(v.chat_abilities().tools);
    const Result<ChatPrompt> made = v.chat_prompt(kAsked, weather());
    EXPECT_TRUE(holds(made, "List of tools: "));
    EXPECT_FALSE(holds(made, kTold));
    const ChatReply reply = made->reader->read(call, /*complete=*/true);
    ASSERT_EQ(reply.tool_calls.size(), 1U);
    EXPECT_EQ(reply.tool_calls[0].arguments, R"({"city":"Paris","days":2})");
    EXPECT_EQ(reply.content, "");
  }
  for (const char* name : {"LFM2-8B-A1B", "LFM2.5-Instruct"}) {
    SCOPED_TRACE(name);
    const std::vector<ChatMessage> messages = weather_called(R"({"city":"Paris","days":2})");
    for (const ChatOptions& options : {weather(), weather(ToolChoice::kNone), ChatOptions()}) {
      const Result<ChatPrompt> made = vocabulary(name).chat_prompt(messages, options);
      EXPECT_TRUE(holds(made, "assistant\n" + call + "<|im_end|>"));
      EXPECT_TRUE(holds(made, "<|im_start|>tool\n"));
      EXPECT_TRUE(holds(made, "rain"));
    }
  }
}

TEST_F(UntoldToolsTest, SeveralCallsAreOneListBehindWhatIsSaid) {
  std::vector<ChatMessage> messages = weather_called(R"({"city":"\"P\"","where":{"a":[1,true]}})");
  messages[1].content = "I look.";
  messages[1].tool_calls.push_back({.id = "2", .name = "now", .arguments = ""});
  const Result<ChatPrompt> made = vocabulary("LFM2-8B-A1B").chat_prompt(messages, weather());
  EXPECT_TRUE(holds(made, R"(assistant
I look.<|tool_call_start|>[get_weather(city="\"P\"", where={"a":[1,true]}), now()]<|tool_call_end|>)"))
      << made->text;
}

TEST_F(UntoldToolsTest, EarlierCallsAreCheckedAsTheyWereGiven) {
  const Status refused =
      vocabulary("LFM2-8B-A1B").chat_prompt(weather_called("{\"city\":}"), weather()).status();
  EXPECT_EQ(refused.field(), "messages");
  EXPECT_NE(refused.message().find("tool call 0 of message 1"), std::string::npos)
      << refused.message();
}

// Its template tells of tools, too, but llama-common knows no form of its calls.
TEST_F(UntoldToolsTest, WhereCallsHaveNoKnownFormTheyAreToldInWords) {
  const LlamaVocabulary& granite = vocabulary("ibm-granite-granite-3.3-2B-Instruct");
  EXPECT_TRUE(granite.chat_template_caps().at("supports_tools"));
  EXPECT_FALSE(granite.chat_abilities().tools);
  EXPECT_TRUE(holds(granite.chat_prompt(kAsked, weather()), R"({"tool_calls":)"));
}

}  // namespace
}  // namespace outrider::llama
