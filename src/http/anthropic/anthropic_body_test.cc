// Bodies of /v1/messages: what they become, and what is refused.
#include "http/anthropic/anthropic_body.h"

#include <gtest/gtest.h>

#include "http/completion/body_test.h"
#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

// With `fields` over a body that is right.
Json body_with(const char* fields) {
  Json body = {{"model", "m"}, {"max_tokens", 7}};
  body["messages"].push_back({{"role", "user"}, {"content", "Hi"}});
  body.update(parsed(fields));
  return body;
}

CompletionRequest read(const Json& body) {
  Result<CompletionTask> task = read_messages_task(body, ServerOptions());
  EXPECT_TRUE(task.ok()) << (task.ok() ? "" : task.status().message());
  return task.ok() ? std::move(task->requests.shared) : CompletionRequest();
}

TEST(AnthropicBody, BlocksBecomeTheMessagesOfAConversation) {
  const Json body = body_with(R"({"system":[
      {"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}},
      {"type":"text","text":"No jokes."}],
    "messages":[
      {"role":"user","content":[{"type":"text","text":"Weather?"}]},
      {"role":"assistant","content":[
        {"type":"thinking","thinking":"Ask.","signature":"s"},
        {"type":"redacted_thinking","data":"x"},
        {"type":"text","text":"I ask."},
        {"type":"tool_use","id":"t1","name":"f","input":{}},
        {"type":"tool_use","id":"t2","name":"g","input":{"a":1}}]},
      {"role":"user","content":[
        {"type":"tool_result","tool_use_id":"t1","content":"one"},
        {"type":"tool_result","tool_use_id":"t2","is_error":true,
         "content":[{"type":"text","text":"no g"}]},
        {"type":"text","text":"Go on."},
        {"type":"text","text":"Please."}]},
      {"role":"assistant","content":"Sun."},
      {"role":"system","content":"Shorter."},
      {"role":"user","content":"Why?"}]})");
  EXPECT_EQ(
      shown(read(body)),
      (std::vector<std::string>{"system|Be brief.\nNo jokes.||| ", "user|Weather?||| ",
                                "assistant|I ask.|Ask.|t1 f{},t2 g{\"a\":1}| ", "tool|one|||t1 f",
                                "tool|Error: no g|||t2 g", "user|Go on.\nPlease.||| ",
                                "assistant|Sun.||| ", "system|Shorter.||| ", "user|Why?||| "}));
  EXPECT_FALSE(read(body).chat.continue_last);
}

TEST(AnthropicBody, AnAssistantsLastMessageGoesOn) {
  const CompletionRequest request = read(body_with(R"({"messages":[
    {"role":"user","content":"Name a sun."},{"role":"assistant","content":"The sun is ("}]})"));
  EXPECT_TRUE(request.chat.continue_last);
  EXPECT_EQ(request.messages.back().content, "The sun is (");
}

// The first message that a body with this "system" becomes.
std::string instructions(const Json& system) {
  Json body = body_with("{}");
  body["system"] = system;
  return read(body).messages.at(0).content;
}

TEST(AnthropicBody, WhatClaudeCodeStampsEachRequestWithKeepsNoPrefixFromBeingReused) {
  const std::string header = "x-anthropic-billing-header: cc_version=2.1.101.e51; cch=";
  const std::string brief = "You are Claude Code.";
  const std::string same = header + "00000;" + brief;
  for (const char* stamp : {"a5145", "0f2e9"}) {
    const std::string stamped = header + stamp + ";" + brief;
    EXPECT_EQ(instructions(stamped), same);
    EXPECT_EQ(instructions(Json::array({Json{{"type", "text"}, {"text", stamped}}})), same);
    EXPECT_EQ(instructions(Json::array({Json{{"type", "text"}, {"text", header + stamp + ";"}},
                                        Json{{"type", "text"}, {"text", brief}}})),
              header + "00000;\n" + brief);
  }
}

TEST(AnthropicBody, WhatIsNotThatStampStaysAsItIs) {
  const std::string header = "x-anthropic-billing-header: cc_version=2;";
  for (const std::string& other :
       {std::string("Be brief. cch=a5145;"), " " + header + " cch=a5145;", header + " cch=a51456;",
        header + " cch=a5145", header + " cch=a51", header + " cch=", header,
        header + "\nSend cch=a5145; with each."}) {
    EXPECT_EQ(instructions(other), other);
  }
  Json body = body_with("{}");
  body["messages"][0]["content"] = header + " cch=a5145;";
  EXPECT_EQ(read(body).messages.at(0).content, header + " cch=a5145;");
  for (const char* wrong : {R"({"system":5})", R"({"system":[5]})", R"({"system":[{"text":5}]})"}) {
    EXPECT_FALSE(read_messages_task(body_with(wrong), ServerOptions()).ok()) << wrong;
  }
}

TEST(AnthropicBody, AToolOfTheServiceTakesNoDefaultGrammarAway) {
  ServerOptions options;
  options.defaults.sampling.grammar = "root ::= \"a\"";
  const auto grammar = [&options](const char* fields) {
    const Result<CompletionTask> task = read_messages_task(body_with(fields), options);
    EXPECT_TRUE(task.ok()) << fields;
    return task.ok() ? task->requests.shared.sampling.grammar : "";
  };
  const std::string kept = options.defaults.sampling.grammar;
  EXPECT_EQ(grammar(R"({"tools":[{"type":"web_search_20250305","name":"web_search"}]})"), kept);
  EXPECT_EQ(grammar(R"({"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"none"}})"),
            kept);
  EXPECT_EQ(grammar(R"({"tools":[{"name":"f","input_schema":{}}]})"), "");
}

TEST(AnthropicBody, ATemperatureOfZeroTakesTheServersMirostatAway) {
  ServerOptions options;
  options.defaults.sampling.mirostat = 2;
  const Result<CompletionTask> task =
      read_messages_task(body_with(R"({"temperature":0})"), options);
  ASSERT_TRUE(task.ok()) << task.status().message();
  EXPECT_EQ(task->requests.shared.sampling.mirostat, 0);
}

TEST(AnthropicBody, SettingsHaveTheApisNamesOrOurs) {
  const CompletionRequest request = read(body_with(R"({"temperature":0.5,"top_p":0.9,"top_k":3,
    "stop_sequences":["END"],"seed":5,"width":1,"metadata":{"user_id":"u"},"service_tier":"auto",
    "thinking":{"type":"disabled"},"output_config":{"effort":"max"}})"));
  EXPECT_FLOAT_EQ(request.sampling.temperature, 0.5F);
  EXPECT_EQ(request.sampling.top_k, 3);
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.stop, std::vector<std::string>{"END"});
  EXPECT_EQ(request.seed, 5);
  EXPECT_EQ(request.width, 1);
  EXPECT_FALSE(request.chat.reasoning);
  EXPECT_EQ(request.chat.template_values, R"({"reasoning_effort":"high"})");
  EXPECT_TRUE(
      read(body_with(R"({"thinking":{"type":"enabled","budget_tokens":1024}})")).chat.reasoning);
  EXPECT_EQ(read(body_with(R"({"output_config":{"format":{"type":"json_schema",
                               "schema":{"type":"array"}}}})"))
                .sampling.json_schema,
            R"({"type":"array"})");
}

TEST(AnthropicBody, FieldsOfTheServiceThatAreNullAskForNothing) {
  EXPECT_EQ(read(body_with(R"({"container":null,"mcp_servers":null,"thread":null,
                              "fallbacks":null})"))
                .max_tokens,
            7);
}

TEST(AnthropicBody, ModelsThinkWhereTheClientAsksForIt) {
  EXPECT_FALSE(read(body_with("{}")).chat.reasoning);
  EXPECT_FALSE(read(body_with(R"({"thinking":null})")).chat.reasoning);
  EXPECT_FALSE(read(body_with(R"({"output_config":{"effort":"max"}})")).chat.reasoning)
      << "which is about how much, not whether";
  EXPECT_TRUE(read(body_with(R"({"thinking":{"type":"adaptive"}})")).chat.reasoning);
}

TEST(AnthropicBody, ToolsAndWhichOfThemMayBeCalled) {
  Json body = body_with(R"({"tools":[
    {"name":"f","description":"F","input_schema":{"type":"object"},"cache_control":null},
    {"type":"custom","name":"g","input_schema":{"type":"object"}}]})");
  CompletionRequest request = read(body);
  ASSERT_EQ(request.chat.tools.size(), 2U);
  EXPECT_EQ(request.chat.tools[0].description, "F");
  EXPECT_EQ(request.chat.tools[0].parameters, R"({"type":"object"})");
  EXPECT_TRUE(request.chat.parallel_tool_calls);
  body["tool_choice"] = {{"type", "auto"}, {"disable_parallel_tool_use", true}};
  EXPECT_FALSE(read(body).chat.parallel_tool_calls);
  body["tool_choice"] = {{"type", "any"}};
  EXPECT_EQ(read(body).chat.tool_choice, ToolChoice::kRequired);
  EXPECT_EQ(read(body).chat.tools.size(), 2U);
  body["tool_choice"] = {{"type", "tool"}, {"name", "g"}};
  request = read(body);
  ASSERT_EQ(request.chat.tools.size(), 1U);
  EXPECT_EQ(request.chat.tools[0].name, "g");
  EXPECT_TRUE(request.chat.one_call);
  body["tool_choice"] = {{"type", "none"}};
  EXPECT_EQ(read(body).chat.tool_choice, ToolChoice::kNone);
}

TEST(AnthropicBody, WhatIsWrongIsNamedAndWhatIsNotDoneIsSaid) {
  struct Case {
    const char* fields;  // a null takes a field away
    const char* field;
    StatusCode code = StatusCode::kInvalidArgument;
  };
  constexpr StatusCode kElsewhere = StatusCode::kUnsupported;
  const Case cases[] = {
      {R"({"max_tokens":null})", "max_tokens"},
      {R"({"model":null})", "model"},
      {R"({"messages":null})", "messages"},
      {R"({"messages":[]})", "messages"},
      {R"({"messages":"Hi"})", "messages"},
      {R"({"messages":[5]})", "messages[0]"},
      {R"({"messages":[{"role":"tool","content":"x"}]})", "messages[0].role"},
      {R"({"messages":[{"role":"user"}]})", "messages[0].content"},
      {R"({"messages":[{"role":"user","content":5}]})", "messages[0].content"},
      {R"({"messages":[{"role":"user","content":[{"text":"x"}]}]})", "messages[0].content[0].type"},
      {R"({"messages":[{"role":"user","content":[{"type":"text","text":5}]}]})",
       "messages[0].content[0].text"},
      {R"({"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]})",
       "messages[0].content[0].type", kElsewhere},
      {R"({"messages":[{"role":"user","content":[{"type":"document","source":{}}]}]})",
       "messages[0].content[0].type", kElsewhere},
      {R"({"messages":[{"role":"user","content":[{"type":"tool_use","id":"t","name":"f",
           "input":{}}]}]})",
       "messages[0].content[0].type"},
      {R"({"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]})",
       "messages[0].content[0].tool_use_id"},
      {R"({"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f",
           "input":"x"}]}]})",
       "messages[0].content[0].input"},
      {R"({"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f",
           "input":{}}]}]})",
       "messages"},
      {R"({"thread":{"type":"create"},"max_tokens":null})", "thread"},
      {R"({"system":5})", "system"},
      {R"({"system":[{"type":"image"}]})", "system[0].type", kElsewhere},
      {R"({"tools":[{"type":5,"name":"f","input_schema":{}}]})", "tools[0].type"},
      {R"({"tools":[{"name":"f"}]})", "tools[0].input_schema"},
      {R"({"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool","name":"g"}})",
       "tool_choice.name"},
      {R"({"tool_choice":"auto"})", "tool_choice"},
      {R"({"tool_choice":{"type":"any"}})", "tool_choice"},
      {R"({"thinking":{"type":"much"}})", "thinking.type"},
      {R"({"output_config":{"format":{"type":"xml","schema":{}}}})", "output_config.format.type"},
      {R"({"output_config":{"format":{"type":"json_schema"}}})", "output_config.format.schema"},
      {R"({"stop_sequences":[5]})", "stop_sequences[0]"},
      {R"({"temperature":-1})", "temperature"},
      {R"({"input":"x"})", "input"}};
  for (const Case& one : cases) {
    Result<CompletionTask> task = read_messages_task(body_with(one.fields), ServerOptions());
    ASSERT_FALSE(task.ok()) << one.fields;
    EXPECT_EQ(task.status().field(), one.field) << task.status().message();
    EXPECT_EQ(task.status().code(), one.code) << one.fields;
    EXPECT_NE(task.status().message().find(one.field), std::string::npos)
        << task.status().message();
  }
}

class ThinkingTest : public ServerTest {
 protected:
  // The types of the blocks of an answer that begins with a thought, whole and streamed.
  std::vector<std::string> blocks(const char* fields) {
    Json body = body_with(fields);
    body["model"] = "fake";
    std::vector<std::string> types;
    const Json message = object(post("/v1/messages", body));
    for (const Json& block : message["content"]) types.push_back(block["type"]);
    body["stream"] = true;
    std::vector<std::string> streamed;
    for (const Json& event : events(post("/v1/messages", body))) {
      if (event["type"] == "content_block_start")
        streamed.push_back(event["content_block"]["type"]);
    }
    EXPECT_EQ(streamed, types) << fields;
    return types;
  }
};

// Of templates that cannot switch thinking off, too.
TEST_F(ThinkingTest, ThoughtsAreShownToThoseWhoAskedForThem) {
  testing::FakeFile thinks{.chat = true};
  for (Token token = 0; token < thinks.n_vocab; ++token) thinks.pieces[token] = "(think hm)";
  start({}, thinks);
  using Types = std::vector<std::string>;
  const Types hidden = {"text"};
  EXPECT_EQ(blocks("{}"), hidden);
  EXPECT_EQ(blocks(R"({"thinking":{"type":"disabled"}})"), hidden);
  EXPECT_EQ(blocks(R"({"thinking":{"type":"enabled","display":"omitted"}})"), hidden);
  EXPECT_EQ(blocks(R"({"thinking":{"type":"enabled","budget_tokens":1024}})"),
            (Types{"thinking", "text"}));
}

}  // namespace
}  // namespace outrider::http
