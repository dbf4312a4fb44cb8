#include "api/chat_params.h"

#include <gtest/gtest.h>

#include <string>

#include "api/completion_params.h"

namespace outrider::api {
namespace {

using json::Json;

Result<CompletionRequest> read(const std::string& fields) {
  const json::Parsed parsed = json::parse("{" + fields + "}");
  EXPECT_TRUE(parsed.ok()) << fields << ": " << parsed.error;
  return read_completion(*parsed.value);
}

std::string wrong_field(const std::string& fields) {
  const Result<CompletionRequest> request = read(fields);
  return request.ok() ? "" : request.status().field();
}

const std::string kHi = R"("messages":[{"role":"user","content":"Hi"}])";
const std::string kTool =
    R"({"type":"function","function":{"name":"get","description":"d","strict":true,)"
    R"("parameters":{"type":"object"}}})";

TEST(ChatParams, EveryFieldOfAConversationArrives) {
  Result<CompletionRequest> request =
      read(R"("messages":[{"role":"developer","content":[{"type":"text","text":"a"},)"
           R"({"type":"text","text":"b"}]},{"role":"user","content":"Hi","name":"Ann"},)"
           R"({"role":"assistant","content":null,"reasoning_content":"hm","refusal":null,)"
           R"("tool_calls":[{"id":"7","type":"function","index":0,"function":{"name":"get",)"
           R"("arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"7","content":"4"}],)"
           R"("tools":[)" +
           kTool +
           R"(],"tool_choice":"required","parallel_tool_calls":false,)"
           R"("reasoning":false,"chat_template_kwargs":{"x":[1]})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  const CompletionRequest& r = *request;
  ASSERT_EQ(r.messages.size(), 4u);
  EXPECT_EQ(r.messages[0].role, "system");
  EXPECT_EQ(r.messages[0].content, "a\nb");
  EXPECT_EQ(r.messages[1].name, "Ann");
  EXPECT_EQ(r.messages[2].reasoning, "hm");
  EXPECT_EQ(r.messages[2].tool_calls.at(0).id, "7");
  EXPECT_EQ(r.messages[2].tool_calls.at(0).name, "get");
  EXPECT_EQ(r.messages[2].tool_calls.at(0).arguments, "{\"a\":1}");
  EXPECT_EQ(r.messages[3].tool_call_id, "7");
  EXPECT_EQ(r.chat.tools.at(0).name, "get");
  EXPECT_EQ(r.chat.tools.at(0).description, "d");
  EXPECT_EQ(r.chat.tools.at(0).parameters, R"({"type":"object"})");
  EXPECT_EQ(r.chat.tool_choice, ToolChoice::kRequired);
  EXPECT_FALSE(r.chat.parallel_tool_calls);
  EXPECT_FALSE(r.chat.reasoning);
  EXPECT_EQ(r.chat.template_values, R"({"x":[1]})");
}

TEST(ChatParams, AChosenToolIsTheOnlyOneAndCalledOnce) {
  const std::string other = R"({"type":"function","function":{"name":"other"}})";
  Result<CompletionRequest> request =
      read(kHi + R"(,"tools":[)" + other + "," + kTool +
           R"(],"tool_choice":{"type":"function","function":{"name":"get"}})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  ASSERT_EQ(request->chat.tools.size(), 1u);
  EXPECT_EQ(request->chat.tools[0].name, "get");
  EXPECT_EQ(request->chat.tool_choice, ToolChoice::kRequired);
  EXPECT_TRUE(request->chat.one_call) << "once, and parallel_tool_calls cannot change that";
}

TEST(ChatParams, WhatIsWrongIsNamedByItsPath) {
  const auto messages = [](const std::string& list) { return "\"messages\":" + list; };
  const auto call = [&](const std::string& c) {
    return messages(R"([{"role":"user","content":"a"},{"role":"assistant","content":null,)"
                    R"("tool_calls":[)" +
                    c + "]}]");
  };
  const auto tool = [](const std::string& t) { return kHi + ",\"tools\":[" + t + "]"; };
  const std::pair<std::string, std::string> cases[] = {
      {messages("[]"), "messages"},
      {messages("{}"), "messages"},
      {messages("[1]"), "messages[0]"},
      {messages(R"([{"content":"a"}])"), "messages[0].role"},
      {messages(R"([{"role":"what","content":"a"}])"), "messages[0].role"},
      {messages(R"([{"role":"user"}])"), "messages[0].content"},
      {messages(R"([{"role":"tool","tool_call_id":"7"}])"), "messages[0].content"},
      {messages(R"([{"role":"user","content":7}])"), "messages[0].content"},
      {messages(R"([{"role":"user","content":"a","contnet":"b"}])"), "messages[0].contnet"},
      {messages(R"([{"role":"user","content":[{"text":"a"}]}])"), "messages[0].content[0].type"},
      {messages(R"([{"role":"user","content":[{"type":"text"}]}])"), "messages[0].content[0].text"},
      {messages(R"([{"role":"user","content":"a","tool_calls":[{}]}])"), "messages[0].tool_calls"},
      {call("{}"), "messages[1].tool_calls[0].function"},
      {call(R"({"function":{"arguments":"{}"}})"), "messages[1].tool_calls[0].function.name"},
      {call(R"({"function":{"name":7,"arguments":"{}"}})"),
       "messages[1].tool_calls[0].function.name"},
      {call(R"({"function":{"name":"a","arguments":[]}})"),
       "messages[1].tool_calls[0].function.arguments"},
      {call(R"({"function":{"name":"a"}})"), "messages[1].tool_calls[0].function.arguments"},
      {call(R"({"type":"what","function":{}})"), "messages[1].tool_calls[0].type"},
      {tool("1"), "tools[0]"},
      {tool("{}"), "tools[0].type"},
      {tool(R"({"type":"function"})"), "tools[0].function"},
      {tool(R"({"type":"function","function":{}})"), "tools[0].function.name"},
      {tool(R"({"type":"function","function":{"name":"a","parameters":[]}})"),
       "tools[0].function.parameters"},
      {kHi + R"(,"tools":{})", "tools"},
      {kHi + R"(,"tool_choice":"required")", "tool_choice"},
      {kHi + R"(,"tool_choice":"all")", "tool_choice"},
      {kHi + R"(,"tool_choice":{"type":"function","function":{"name":"a"}})",
       "tool_choice.function.name"},
      {kHi + R"(,"parallel_tool_calls":1)", "parallel_tool_calls"},
      {kHi + R"(,"reasoning":"low")", "reasoning"},
      {kHi + R"(,"chat_template_kwargs":[])", "chat_template_kwargs"},
      {kHi + R"(,"chat_template_kwargs":{"enable_thinking":1})",
       "chat_template_kwargs.enable_thinking"},
      {R"("prompt":"a","tools":[)" + kTool + "]", "tools"},
      {R"("prompt":"a","tool_choice":"required")", "tool_choice"},
      {R"("prompt":"a","tool_choice":"auto")", ""},
      {R"("prompt":"a","tool_choice":"none")", ""},
  };
  for (const auto& [fields, field] : cases) EXPECT_EQ(wrong_field(fields), field) << fields;
}

TEST(ChatParams, WhatClientsSendBackOfAnAnswerIsTakenAndChangesNothing) {
  const Result<CompletionRequest> request = read(
      R"("messages":[{"role":"user","content":[{"type":"text","text":"a",)"
      R"("cache_control":{"type":"ephemeral"}}],"cache_control":null},)"
      R"({"id":"msg_1","role":"assistant","content":"b","status":"completed","refusal":null,)"
      R"("annotations":[],"audio":null,"function_call":null,"parsed":{},"reasoning":"hm",)"
      R"("reasoning_details":[{"text":"hm"}],"provider_specific_fields":{"x":1}},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"7","type":"function","function":)"
      R"({"name":"get","arguments":"{}","parsed_arguments":{}}}]},)"
      R"({"role":"tool","tool_call_id":"7","content":"4"},)"
      R"({"role":"assistant","content":"c","reasoning_content":"so","reasoning":"otherwise"}],)"
      R"("tools":[{"type":"function","function":{"name":"get"},"cache_control":{}}])");
  ASSERT_TRUE(request.ok()) << request.status().message();
  ASSERT_EQ(request->messages.size(), 5u);
  EXPECT_EQ(request->messages[0].content, "a");
  EXPECT_EQ(request->messages[1].content, "b");
  EXPECT_EQ(request->messages[1].reasoning, "hm");
  EXPECT_EQ(request->messages[4].reasoning, "so");
}

// One class of the client's for all parts, calls and tools has the others' fields as null.
TEST(ChatParams, FieldsOfOtherServicesThatAreNullAskForNothing) {
  const Result<CompletionRequest> request =
      read(R"("messages":[{"role":"user","images":null,"content":[{"type":"text","text":"a",)"
           R"("image_url":null,"parsed":null,"prompt_cache_breakpoint":{"mode":"explicit"}}]},)"
           R"({"role":"assistant","content":null,"tool_calls":[{"id":"7","type":"function",)"
           R"("custom":null,"function":{"name":"get","arguments":"{}","x":null}}]},)"
           R"({"role":"tool","tool_call_id":"7","content":"4"}],)"
           R"("tools":[{"type":"function","strict":null,)"
           R"("function":{"name":"get","returns":null}}])");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->messages[0].content, "a");
  EXPECT_EQ(request->messages[1].tool_calls.at(0).name, "get");
  EXPECT_EQ(wrong_field(R"("messages":[{"role":null,"content":"a"}])"), "messages[0].role");
  EXPECT_EQ(wrong_field(kHi + R"(,"audio":null)"), "audio") << "the API's own parameters";
}

TEST(ChatParams, ARefusalIsWhatTheAssistantSaid) {
  const auto second = [](const std::string& fields) {
    const Result<CompletionRequest> request =
        read(R"("messages":[{"role":"user","content":"a"},{"role":"assistant",)" + fields + "}]");
    return request.ok() ? request->messages[1].content : "error: " + request.status().field();
  };
  EXPECT_EQ(second(R"("refusal":"No.")"), "No.");
  EXPECT_EQ(second(R"("content":null,"refusal":"No.")"), "No.");
  EXPECT_EQ(second(R"("content":"b","refusal":"No.")"), "b");
  EXPECT_EQ(second(R"("content":[{"type":"text","text":"b"},{"type":"refusal","refusal":"No."}])"),
            "b\nNo.");
  EXPECT_EQ(second(R"("content":[{"type":"refusal"}])"), "error: messages[1].content[0].refusal");
  EXPECT_EQ(second(R"("refusal":null)"), "error: messages[1].content");
  EXPECT_EQ(wrong_field(R"("messages":[{"role":"user","refusal":"No."}])"), "messages[0].content");
  EXPECT_EQ(
      wrong_field(R"("messages":[{"role":"user","content":[{"type":"refusal","refusal":"No."}]}])"),
      "messages[0].content[0].type");
}

// As llama-server takes them.
TEST(ChatParams, ArgumentsMayBeTheObjectAndContentNull) {
  const Result<CompletionRequest> request =
      read(R"("messages":[{"role":"system","content":null},{"role":"user","content":null},)"
           R"({"role":"assistant","content":null,"tool_calls":[{"id":"7","type":"function",)"
           R"("function":{"name":"get","arguments":{"b":[1,"x"],"a":null}}}]},)"
           R"({"role":"tool","tool_call_id":"7","content":null},)"
           R"({"role":"assistant","content":null,"function_call":{"name":"f","arguments":{}}},)"
           R"({"role":"function","name":"f","content":null},{"role":"user","content":"a"}])");
  ASSERT_TRUE(request.ok()) << request.status().message();
  ASSERT_EQ(request->messages.size(), 7u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(request->messages[i].content, "") << i;
  EXPECT_EQ(request->messages[2].tool_calls.at(0).arguments, R"({"b":[1,"x"],"a":null})");
  EXPECT_EQ(request->messages[4].tool_calls.at(0).arguments, "{}");
}

TEST(ChatParams, WhatOfAnAnswerWouldSaySomethingIsRefusedByName) {
  const auto back = [](const std::string& field) {
    return R"("messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b",)" +
           field + "}]";
  };
  const Result<CompletionRequest> audio = read(back(R"("audio":{})"));
  ASSERT_FALSE(audio.ok());
  EXPECT_EQ(audio.status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(audio.status().field(), "messages[1].audio");
  EXPECT_EQ(wrong_field(back(R"("anotations":[])")), "messages[1].anotations");
  EXPECT_EQ(wrong_field(back(R"("reasoning":7)")), "messages[1].reasoning");
}

TEST(ChatParams, ACallInOpenAisOlderFormIsACall) {
  const auto with = [](const std::string& call, const std::string& result) {
    return R"("messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,)"
           R"("function_call":)" +
           call + "}," + result + "]";
  };
  const std::string call = R"({"name":"get","arguments":"{\"a\":1}"})";
  const Result<CompletionRequest> request =
      read(with(call, R"({"role":"function","name":"get","content":"4"})"));
  ASSERT_TRUE(request.ok()) << request.status().message();
  ASSERT_EQ(request->messages.size(), 3u);
  ASSERT_EQ(request->messages[1].tool_calls.size(), 1u);
  EXPECT_EQ(request->messages[1].tool_calls[0].name, "get");
  EXPECT_EQ(request->messages[1].tool_calls[0].arguments, R"({"a":1})");
  EXPECT_EQ(request->messages[2].role, "tool");
  EXPECT_EQ(request->messages[2].name, "get");
  EXPECT_EQ(request->messages[2].content, "4");
  const std::string result = R"({"role":"function","name":"get","content":"4"})";
  EXPECT_EQ(wrong_field(with("{}", result)), "messages[1].function_call.name");
  EXPECT_EQ(wrong_field(with("7", result)), "messages[1].function_call");
  EXPECT_EQ(wrong_field(with(call, R"({"role":"function","content":"4"})")), "messages[2].name");
  EXPECT_EQ(wrong_field(with(call, R"({"role":"user","content":"4","function_call":{}})")),
            "messages[2].function_call");
}

TEST(ChatParams, TheToolsMayBeRestrictedToSome) {
  const auto named = [](const std::string& name) {
    return R"({"type":"function","function":{"name":")" + name + R"("}})";
  };
  const auto with = [&named](const std::string& allowed) {
    return kHi + R"(,"tools":[)" + named("f") + "," + named("g") + "," + named("h") +
           R"(],"tool_choice":{"type":"allowed_tools","allowed_tools":)" + allowed + "}";
  };
  const std::string two = R"("tools":[)" + named("h") + "," + named("f") + "]";
  for (const bool required : {false, true}) {
    const Result<CompletionRequest> request = read(
        with(R"({"mode":")" + std::string(required ? "required" : "auto") + "\"," + two + "}"));
    ASSERT_TRUE(request.ok()) << request.status().message();
    ASSERT_EQ(request->chat.tools.size(), 2u);
    EXPECT_EQ(request->chat.tools[0].name, "f");
    EXPECT_EQ(request->chat.tools[1].name, "h");
    EXPECT_EQ(request->chat.tool_choice, required ? ToolChoice::kRequired : ToolChoice::kAuto);
    EXPECT_FALSE(request->chat.one_call);
  }
  const std::string place = "tool_choice.allowed_tools";
  EXPECT_EQ(wrong_field(with("7")), place);
  EXPECT_EQ(wrong_field(with("{" + two + "}")), place + ".mode");
  EXPECT_EQ(wrong_field(with(R"({"mode":"none",)" + two + "}")), place + ".mode");
  EXPECT_EQ(wrong_field(with(R"({"mode":"auto"})")), place + ".tools");
  EXPECT_EQ(wrong_field(with(R"({"mode":"auto","tools":{}})")), place + ".tools");
  EXPECT_EQ(wrong_field(with(R"({"mode":"auto","tools":[)" + named("x") + "]}")), place + ".tools");
  EXPECT_EQ(wrong_field(with(R"({"mode":"auto","tools":[{"type":"custom"}]})")),
            place + ".tools[0].type");
}

TEST(ChatParams, HowHardToThinkMayBeAnObjectOfReasoning) {
  const auto chat_of = [](const std::string& fields) {
    const Result<CompletionRequest> request = read(kHi + "," + fields);
    EXPECT_TRUE(request.ok()) << fields << ": " << request.status().message();
    return request.ok() ? request->chat : ChatOptions();
  };
  EXPECT_EQ(chat_of(R"("reasoning":{"effort":"xhigh","summary":"auto"})").template_values,
            R"({"reasoning_effort":"high"})");
  EXPECT_EQ(
      chat_of(R"("reasoning":{"effort":"minimal"},"chat_template_kwargs":{"a":1})").template_values,
      R"({"a":1,"reasoning_effort":"low"})");
  EXPECT_FALSE(chat_of(R"("reasoning":{"effort":"none"})").reasoning);
  const ChatOptions nothing = chat_of(R"("reasoning":{"effort":null})");
  EXPECT_TRUE(nothing.reasoning);
  EXPECT_EQ(nothing.template_values, "");
  EXPECT_EQ(wrong_field(kHi + R"(,"reasoning":{"effort":"much"})"), "reasoning.effort");
  EXPECT_EQ(wrong_field(kHi + R"(,"reasoning":{"efort":"low"})"), "reasoning.efort");
  EXPECT_EQ(wrong_field(R"("prompt":"a","reasoning":{"effort":"low"})"), "reasoning");
}

TEST(ChatParams, APartThatIsNoTextIsUnsupported) {
  const Result<CompletionRequest> request =
      read(R"("messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}])");
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(request.status().field(), "messages[0].content[0].type");
  EXPECT_NE(request.status().message().find("images"), std::string::npos);
}

TEST(ChatParams, AReplyIsAMessageAsOpenAiHasIt) {
  EXPECT_EQ(message_json({.content = "a", .reasoning = "", .tool_calls = {}}).dump(),
            R"({"role":"assistant","content":"a"})");
  EXPECT_EQ(
      message_json({.content = "", .reasoning = "hm", .tool_calls = {{"", "get", "{}"}}}).dump(),
      R"({"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":)"
      R"([{"id":null,"type":"function","function":{"name":"get","arguments":"{}"}}]})");
}

}  // namespace
}  // namespace outrider::api
