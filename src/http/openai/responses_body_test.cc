// Bodies of /v1/responses: what they become, and what is refused.
#include "http/openai/responses_body.h"

#include <gtest/gtest.h>

#include "http/completion/body_test.h"

namespace outrider::http {
namespace {

using json::Json;

CompletionRequest read(const Json& body) {
  Result<CompletionTask> task = read_responses_task(body, ServerOptions());
  EXPECT_TRUE(task.ok()) << (task.ok() ? "" : task.status().message());
  return task.ok() ? std::move(task->requests.shared) : CompletionRequest();
}

TEST(ResponsesBody, ATextIsAUsersMessageBehindTheInstructions) {
  const Json body = {{"input", "Hi"}, {"instructions", "Be brief."}};
  EXPECT_EQ(shown(read(body)), (std::vector<std::string>{"system|Be brief.||| ", "user|Hi||| "}));
}

TEST(ResponsesBody, TheItemsOfAnAnswerAreOneMessageOfTheAssistant) {
  const Json body = parsed(R"({"instructions":"Be brief.","input":[
    {"role":"developer","content":"No jokes."},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"Wea"},
                                               {"type":"input_text","text":"ther?"}]},
    {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null,
     "content":[{"type":"reasoning_text","text":"Ask."}]},
    {"type":"message","id":"msg_1","role":"assistant","status":"completed",
     "content":[{"type":"output_text","text":"I ask.","annotations":[],"logprobs":[],"parsed":null}]},
    {"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}",
     "status":"completed","parsed_arguments":{},"async":null,"caller_kind":null},
    {"type":"function_call","call_id":"c2","name":"g","arguments":"{\"a\":1}"},
    {"type":"function_call_output","call_id":"c2","output":"two"},
    {"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"one"}]},
    {"type":"reasoning","summary":[{"type":"summary_text","text":"Done."}]},
    {"role":"assistant","content":"Sun."},
    {"role":"assistant","content":"And wind."}]})");
  EXPECT_EQ(shown(read(body)),
            (std::vector<std::string>{"system|Be brief.\n\nNo jokes.||| ", "user|Wea\nther?||| ",
                                      "assistant|I ask.|Ask.|c1 f{},c2 g{\"a\":1}| ",
                                      "tool|two|||c2 g", "tool|one|||c1 f",
                                      "assistant|Sun.|Done.|| ", "assistant|And wind.||| "}));
}

TEST(ResponsesBody, WhatTheServicesCacheAndOtherServicesAreToldChangesNothing) {
  const CompletionRequest request = read(parsed(R"({"input":[{"role":"user","content":[
      {"type":"input_text","text":"Hi","prompt_cache_breakpoint":{"mode":"explicit"}}]}],
    "moderation":null,"background_options":null,"access_programs":null,"image":null,
    "tools":[{"type":"function","name":"f","parameters":{},"async":true}]})"));
  EXPECT_EQ(shown(request), (std::vector<std::string>{"user|Hi||| "}));
  EXPECT_EQ(request.chat.tools.size(), 1U);
}

TEST(ResponsesBody, ARefusalIsATextOfTheAssistant) {
  const CompletionRequest request = read(parsed(R"({"input":[{"role":"user","content":"Hi"},
    {"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]})"));
  EXPECT_EQ(shown(request), (std::vector<std::string>{"user|Hi||| ", "assistant|No.||| "}));
}

TEST(ResponsesBody, SettingsHaveTheApisNamesOrOurs) {
  const CompletionRequest request = read(parsed(R"({"input":"Hi","temperature":0.5,"top_p":0.9,
    "max_output_tokens":7,"top_k":3,"seed":5,"speculative":false,"store":false,"user":"me",
    "metadata":{"a":"b"},"truncation":"disabled","include":["reasoning.encrypted_content"],
    "reasoning":{"effort":"minimal","summary":"auto"},"parallel_tool_calls":false,
    "text":{"format":{"type":"text"},"verbosity":"low"},"previous_response_id":null})"));
  EXPECT_FLOAT_EQ(request.sampling.temperature, 0.5F);
  EXPECT_FLOAT_EQ(request.sampling.top_p, 0.9F);
  EXPECT_EQ(request.sampling.top_k, 3);
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.seed, 5);
  EXPECT_FALSE(request.speculative);
  EXPECT_FALSE(request.chat.parallel_tool_calls);
  EXPECT_EQ(request.chat.template_values, R"({"reasoning_effort":"low"})");
  EXPECT_EQ(request.logprobs, -1);
  EXPECT_FALSE(read({{"input", "Hi"}, {"reasoning", {{"effort", "none"}}}}).chat.reasoning);
  const Json logprobs = {{"input", "Hi"},
                         {"include", Json::array({"message.output_text.logprobs"})}};
  EXPECT_EQ(read(logprobs).logprobs, 0);
}

TEST(ResponsesBody, AToolOfTheServiceTakesNoDefaultGrammarAway) {
  ServerOptions options;
  options.defaults.sampling.grammar = "root ::= \"a\"";
  const auto grammar = [&options](const char* body) {
    const Result<CompletionTask> task = read_responses_task(parsed(body), options);
    EXPECT_TRUE(task.ok()) << body;
    return task.ok() ? task->requests.shared.sampling.grammar : "";
  };
  EXPECT_EQ(grammar(R"({"input":"x","tools":[{"type":"web_search"}]})"),
            options.defaults.sampling.grammar);
  EXPECT_EQ(grammar(R"({"input":"x","tools":[{"type":"web_search"},
                                             {"type":"function","name":"f"}]})"),
            "");
}

TEST(ResponsesBody, ASummaryOfTheReasoningIsAskedForByEitherName) {
  const auto told_as = [](const char* reasoning) -> std::string {
    Json body = {{"input", "Hi"}};
    body["reasoning"] = parsed(reasoning);
    Result<CompletionTask> task = read_responses_task(body, ServerOptions());
    EXPECT_TRUE(task.ok()) << reasoning;
    if (!task.ok()) return "";
    AnswerForm& form = *task->form;
    std::string out;
    form.begin(out);
    form.delta(0, {.content = {}, .reasoning = "hm", .tool_calls = {}, .tokens = {}}, out);
    return out.find("response.reasoning_summary_text.delta") != std::string::npos ? "summary"
                                                                                  : "content";
  };
  for (const char* reasoning : {R"({"summary":"auto"})", R"({"effort":"low","summary":"detailed"})",
                                R"({"summary":"concise"})", R"({"generate_summary":"auto"})"}) {
    EXPECT_EQ(told_as(reasoning), "summary") << reasoning;
  }
  for (const char* reasoning :
       {"{}", "null", R"({"effort":"low"})", R"({"summary":null})", R"({"summary":"none"})"}) {
    EXPECT_EQ(told_as(reasoning), "content") << reasoning;
  }
}

TEST(ResponsesBody, ToolsAndWhichOfThemMayBeCalled) {
  Json body = parsed(R"({"input":"Hi","tools":[
    {"type":"function","name":"f","description":"F","parameters":{"type":"object"},"strict":true},
    {"type":"function","name":"g","parameters":null}]})");
  CompletionRequest request = read(body);
  ASSERT_EQ(request.chat.tools.size(), 2U);
  EXPECT_EQ(request.chat.tools[0].description, "F");
  EXPECT_EQ(request.chat.tools[0].parameters, R"({"type":"object"})");
  EXPECT_EQ(request.chat.tool_choice, ToolChoice::kAuto);
  body["tool_choice"] = "required";
  EXPECT_EQ(read(body).chat.tool_choice, ToolChoice::kRequired);
  body["tool_choice"] = {{"type", "function"}, {"name", "g"}};
  request = read(body);
  ASSERT_EQ(request.chat.tools.size(), 1U);
  EXPECT_EQ(request.chat.tools[0].name, "g");
  EXPECT_EQ(request.chat.tool_choice, ToolChoice::kRequired);
  EXPECT_TRUE(request.chat.one_call);
  body["tool_choice"] = parsed(R"({"type":"allowed_tools","mode":"auto","tools":
    [{"type":"function","name":"f"}]})");
  request = read(body);
  ASSERT_EQ(request.chat.tools.size(), 1U);
  EXPECT_EQ(request.chat.tool_choice, ToolChoice::kAuto);
  EXPECT_FALSE(request.chat.one_call) << "of these tools any, as often as the model likes";
}

TEST(ResponsesBody, AFormatIsASchema) {
  Json body = {{"input", "Hi"}};
  body["text"]["format"] = {{"type", "json_object"}};
  EXPECT_EQ(read(body).sampling.json_schema, R"({"type":"object"})");
  body["text"]["format"] = {
      {"type", "json_schema"}, {"name", "n"}, {"schema", {{"type", "array"}}}};
  EXPECT_EQ(read(body).sampling.json_schema, R"({"type":"array"})");
}

TEST(ResponsesBody, AFormatMayStandBesideToolsAndBothMayBeStrict) {
  Result<CompletionTask> task = read_responses_task(
      parsed(R"({"input":"x","tools":[{"type":"function","name":"f","strict":true},
                                      {"type":"function","name":"g"}],
                 "text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}}})"),
      ServerOptions());
  ASSERT_TRUE(task.ok()) << task.status().message();
  const CompletionRequest& request = task->requests.shared;
  EXPECT_TRUE(request.chat.tools[0].strict);
  EXPECT_FALSE(request.chat.tools[1].strict);
  EXPECT_EQ(request.sampling.json_schema, R"({"type":"object"})");
  EXPECT_FALSE(request.sampling.json_schema_strict);
}

TEST(ResponsesBody, WhatIsWrongIsNamedAndWhatIsNotDoneIsSaid) {
  struct Case {
    const char* body;
    const char* field;
    StatusCode code = StatusCode::kInvalidArgument;
  };
  constexpr StatusCode kElsewhere = StatusCode::kUnsupported;
  const Case cases[] = {
      {R"({})", "input"},
      {R"({"input":[]})", "input"},
      {R"({"input":5})", "input"},
      {R"({"input":[5]})", "input[0]"},
      {R"({"input":[{"role":"robot","content":"x"}]})", "input[0].role"},
      {R"({"input":[{"role":"user"}]})", "input[0].content"},
      {R"({"input":[{"role":"user","content":5}]})", "input[0].content"},
      {R"({"input":[{"role":"user","content":[{"type":"input_text"}]}]})",
       "input[0].content[0].text"},
      {R"({"input":[{"role":"user","content":[{"type":"refusal","refusal":"x"}]}]})",
       "input[0].content[0].type", kElsewhere},
      {R"({"input":[{"role":"assistant","content":[{"type":"refusal","text":"x"}]}]})",
       "input[0].content[0].refusal"},
      {R"({"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]})",
       "input[0].content[0].type", kElsewhere},
      {R"({"input":[{"type":"item_reference","id":"x"}]})", "input[0].type", kElsewhere},
      {R"({"input":[{"type":"web_search_call","id":"x"}]})", "input[0].type", kElsewhere},
      {R"({"input":[{"type":"function_call_output","call_id":"c","output":"x"}]})",
       "input[0].call_id"},
      {R"({"input":[{"type":"function_call","call_id":"c","name":"f"}]})", "input[0].arguments"},
      {R"({"input":"x","previous_response_id":"resp_1"})", "previous_response_id", kElsewhere},
      {R"({"input":"x","conversation":"conv_1"})", "conversation", kElsewhere},
      {R"({"input":"x","prompt":{"id":"p"}})", "prompt", kElsewhere},
      {R"({"input":"x","background":true})", "background"},
      {R"({"input":"x","truncation":"all"})", "truncation"},
      {R"({"input":"x","tools":[{"name":"f"}]})", "tools[0].type"},
      {R"({"input":"x","tools":[{"type":"function"}]})", "tools[0].name"},
      {R"({"input":"x","tools":[{"type":"function","name":"f","parameters":5}]})",
       "tools[0].parameters"},
      {R"({"input":"x","tool_choice":{"type":"function","name":"f"}})", "tool_choice.name"},
      {R"({"input":"x","tool_choice":"must"})", "tool_choice"},
      {R"({"input":"x","tool_choice":"required"})", "tool_choice"},
      {R"({"input":"x","text":{"format":{"type":"xml"}}})", "text.format.type"},
      {R"({"input":"x","text":{"format":{"type":"json_schema"}}})", "text.format.schema"},
      {R"({"input":"x","reasoning":{"effort":"much"}})", "reasoning.effort"},
      {R"({"input":"x","reasoning":{"summary":true}})", "reasoning.summary"},
      {R"({"input":"x","reasoning":5})", "reasoning"},
      {R"({"input":"x","max_output_tokens":-5})", "max_output_tokens"},
      {R"({"input":"x","temperature":"hot"})", "temperature"},
      {R"({"input":"x","max_tool_calls":0})", "max_tool_calls"},
      {R"({"input":"x","text":{"verbosity":"chatty"}})", "text.verbosity"},
      {R"({"input":"x","include":[5]})", "include[0]"},
      {R"({"input":"x","messages":[]})", "messages"},
      {R"({"input":"x","n":2})", "n"},
      {R"({"input":"x","tempature":1})", "tempature"}};
  for (const Case& one : cases) {
    Result<CompletionTask> task = read_responses_task(parsed(one.body), ServerOptions());
    ASSERT_FALSE(task.ok()) << one.body;
    EXPECT_EQ(task.status().field(), one.field) << task.status().message();
    EXPECT_EQ(task.status().code(), one.code) << one.body;
    EXPECT_NE(task.status().message().find(one.field), std::string::npos)
        << task.status().message();
  }
}

}  // namespace
}  // namespace outrider::http
