#include "llama/chat/chat_inputs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace outrider::llama {
namespace {

std::string times(const std::string& text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

ChatOptions with_parameters(std::string parameters, bool strict = false) {
  ChatOptions options;
  options.tools = {
      {.name = "t", .description = "", .parameters = std::move(parameters), .strict = strict}};
  return options;
}

const std::vector<ChatMessage> kHello = {{.role = "user", .content = "Hi"}};

TEST(ChatInputsTest, WhatIsGivenArrives) {
  ChatOptions options = with_parameters("");
  options.tool_choice = ToolChoice::kRequired;
  options.template_values = R"({"enable_thinking": false, "x": [1, "y"]})";
  ChatMessage call{.role = "assistant", .content = "", .reasoning = "hm"};
  call.tool_calls = {{.id = "7", .name = "t", .arguments = ""}};
  const ChatMessage result{.role = "tool", .content = "4", .tool_call_id = "7", .name = "t"};
  const Result<ChatInputs> made = chat_inputs({kHello[0], call, result}, options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const common_chat_templates_inputs* inputs = &made->common;
  ASSERT_EQ(inputs->messages.size(), 3u);
  EXPECT_EQ(inputs->messages[1].reasoning_content, "hm");
  EXPECT_EQ(inputs->messages[1].tool_calls[0].arguments, "{}");
  EXPECT_EQ(inputs->messages[2].tool_call_id, "7");
  // An answer never begins so, however it is cut.
  call.tool_calls[0].arguments = "{\"a\": [1}";
  EXPECT_FALSE(chat_inputs({kHello[0], call, result}, options).ok());
  // As an answer hands it out that ends with its limit of tokens.
  for (const char* cut : {"{", "{\"a\": \"cut", "{\"a\": [1, \"}", "{\"a\": \"\\"}) {
    call.tool_calls[0].arguments = cut;
    const Result<ChatInputs> with_cut = chat_inputs({kHello[0], call, result}, options);
    ASSERT_TRUE(with_cut.ok()) << with_cut.status().message();
    EXPECT_EQ(with_cut->common.messages[1].tool_calls[0].arguments, "{}") << cut;
  }
  // What grammars let a model say, and JSON readers refuse.
  const std::pair<const char*, const char*> kOdd[] = {
      {R"({"a":"\ud83d"})", "{\"a\":\"\xEF\xBF\xBD\"}"},
      {R"({"o":{"a": 1, "b": 2, "a": 3}})", R"({"o":{"a":3,"b":2}})"},
      {"{\"a\":\"b\nc\\ \"}", R"({"a":"b\nc "})"},
      {R"({"a": "\ud83d\ude00"})", R"({"a": "\ud83d\ude00"})"}};
  for (const auto& [said, taken] : kOdd) {
    call.tool_calls[0].arguments = said;
    const Result<ChatInputs> with_odd = chat_inputs({kHello[0], call, result}, options);
    ASSERT_TRUE(with_odd.ok()) << with_odd.status().message();
    EXPECT_EQ(with_odd->common.messages[1].tool_calls[0].arguments, taken) << said;
  }
  EXPECT_EQ(inputs->tools[0].parameters, R"({"type":"object","properties":{}})");
  EXPECT_EQ(inputs->tool_choice, COMMON_CHAT_TOOL_CHOICE_REQUIRED);
  EXPECT_FALSE(inputs->enable_thinking);
  EXPECT_EQ(inputs->chat_template_kwargs.at("x"), R"([1,"y"])");
}

TEST(ChatInputsTest, WhatLlamaCppWouldNotSurviveIsRefusedWithItsField) {
  ChatMessage call{.role = "assistant", .content = ""};
  call.tool_calls = {{.id = "", .name = "t", .arguments = "{\"a\":}"}};
  ChatMessage deep = call;
  deep.tool_calls[0].arguments = "{\"a\":" + times("[", 3000) + times("]", 3000) + "}";
  ChatMessage many{.role = "assistant", .content = "", .tool_calls = {}};
  many.tool_calls.resize(kMaxToolCalls + 1);
  ChatOptions many_tools;
  many_tools.tools.resize(kMaxChatTools + 1);
  ChatOptions twins = with_parameters("{}");
  twins.tools.push_back(twins.tools[0]);
  ChatOptions nameless = with_parameters("{}");
  nameless.tools[0].name = "";
  ChatOptions values;
  values.template_values = "[1]";
  ChatOptions thinking;
  thinking.template_values = R"({"enable_thinking": "yes"})";
  ChatOptions continues;
  continues.continue_last = true;
  const std::string huge(kMaxChatBytes + 1, 'x');

  struct Case {
    std::vector<ChatMessage> messages;
    ChatOptions options;
    std::string field;
    std::string says;
  };
  const std::vector<Case> cases = {
      {{{.role = "user", .content = "\xC3("}}, {}, "messages", "message 0 is not valid UTF-8"},
      {{{.role = "user", .content = huge}}, {}, "messages", "more than"},
      {{call}, {}, "messages", "tool call 0 of message 0 is not JSON"},
      {{deep}, {}, "messages", "not JSON"},
      {{many}, {}, "messages", "tool calls, more than"},
      {kHello, many_tools, "tools", "more than"},
      {kHello, twins, "tools", "two tools of the name 't'"},
      {kHello, nameless, "tools", "must have 1 to"},
      {kHello, with_parameters("{\"a\":" + times("[", 3000) + times("]", 3000) + "}"), "tools",
       "the parameters of 't'"},
      {kHello, with_parameters("[]"), "tools", "not a JSON object"},
      {kHello, with_parameters("{" + std::string(300 * 1024, ' ') + "}"), "tools",
       "the parameters of 't' have 307202 bytes, more than 262144"},
      {kHello, with_parameters(R"({"properties":{"x":{"$ref":"#/properties/x"}}})", true), "tools",
       "leads"},
      {kHello, with_parameters(R"({"type":"string","pattern":"^(?=a)$"})", true), "tools",
       "pattern"},
      {kHello, values, "chat_template_kwargs", "not a JSON object"},
      {kHello, thinking, "chat_template_kwargs", "true or false"},
      {kHello, continues, "messages", "the assistant's"},
  };
  for (const Case& c : cases) {
    const Status status = chat_inputs(c.messages, c.options).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.says;
    EXPECT_EQ(status.field(), c.field) << status.message();
    EXPECT_NE(status.message().find(c.says), std::string::npos) << status.message();
  }
}

// What OpenAI's clients, MCP and zod write into tools' parameters.
TEST(ChatInputsTest, AToolThatIsNotStrictMayHoldAnySchema) {
  const std::string usual =
      R"({"type":"object","properties":{"city":{"type":"string","minLength":1},)"
      R"("days":{"type":"array","items":{"enum":[1,2]},"uniqueItems":true}},"required":["city"]})";
  const std::string beyond =
      R"({"type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":0,)"
      R"("maximum":9007199254740991},"name":{"type":"string","pattern":"^(?=a).$","maxLength":10000},)"
      R"("any":true,"item":{"$ref":"#/$defs/Item"}},"$defs":{"Item":{"type":"object"}}})";
  Result<ChatInputs> made = chat_inputs(kHello, with_parameters(usual));
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(made->given_parameters.empty());
  EXPECT_EQ(made->common.tools[0].parameters, usual);

  made = chat_inputs(kHello, with_parameters(beyond));
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_EQ(made->given_parameters, std::vector<std::string>{beyond});
  EXPECT_EQ(made->common.tools[0].parameters.find("maxLength"), std::string::npos);
  ASSERT_EQ(made->tool_schemas.size(), 1U);
  EXPECT_EQ(json::encode(made->tool_schemas[0].given), beyond);
  EXPECT_EQ(json::encode(made->tool_schemas[0].convertible), made->common.tools[0].parameters);

  ChatOptions none = with_parameters(beyond);
  none.tool_choice = ToolChoice::kNone;
  made = chat_inputs(kHello, none);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(made->given_parameters.empty());
  EXPECT_EQ(made->common.tools[0].parameters, beyond);
  EXPECT_TRUE(made->tool_schemas[0].convertible.is_null());
}

}  // namespace
}  // namespace outrider::llama
