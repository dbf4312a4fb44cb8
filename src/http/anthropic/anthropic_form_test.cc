// The events of an Anthropic message: complete, in order, and the same answer however it is cut;
// errors in that API's form.
#include "http/anthropic/anthropic_form.h"

#include "http/completion/form_driver_test.h"
#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

constexpr const char* kText = R"((think hm)Hi!(call f {"a":1})(call g {}))";

// Replays a stream as a client does, and holds it to what the API guarantees. Returns the message.
Json replay(const std::vector<Json>& events) {
  Json message = events.front()["message"];
  EXPECT_EQ(events.front()["type"], "message_start");
  EXPECT_EQ(events.back()["type"], "message_stop");
  EXPECT_EQ(events[events.size() - 2]["type"], "message_delta");
  bool open = false;
  std::string input;
  for (std::size_t i = 1; i + 1 < events.size(); ++i) {
    const Json& event = events[i];
    const std::string type = event["type"].get<std::string>();
    if (type == "ping") continue;
    if (type == "message_delta") {
      EXPECT_EQ(i + 2, events.size());
      message.update(event["delta"]);
      message["usage"].update(event["usage"]);
      continue;
    }
    Json& content = message["content"];
    if (type == "content_block_start") {
      EXPECT_FALSE(open);
      open = true;
      input.clear();
      content.push_back(event["content_block"]);
    }
    EXPECT_TRUE(open) << type;
    EXPECT_EQ(event["index"], content.size() - 1);
    if (type == "content_block_delta") {
      const Json& delta = event["delta"];
      const std::string kind = delta["type"].get<std::string>();
      if (kind == "input_json_delta") input += delta["partial_json"].get<std::string>();
      for (const char* name : {"text", "thinking", "signature"}) {
        if (!delta.contains(name)) continue;
        EXPECT_TRUE(content.back().contains(name)) << kind << " in " << content.back().dump();
        content.back()[name].get_ref<std::string&>() += delta[name].get<std::string>();
      }
    }
    if (type != "content_block_stop") continue;
    open = false;
    // Of two fields of one name clients take the last one, too.
    const json::Parsed whole = json::parse_written(input);
    if (content.back()["type"] == "tool_use" && whole.ok()) content.back()["input"] = *whole.value;
  }
  EXPECT_FALSE(open);
  return message;
}

Json stream(const std::vector<std::string>& pieces, const DrivenEnd& end = {},
            const std::vector<std::string>& stops = {}, bool show_thinking = true) {
  const std::unique_ptr<AnswerForm> form = make_anthropic_form(stops, show_thinking);
  std::string out;
  const Answer answer = drive(pieces, end, form.get(), &out);
  form->finish({answer}, out);
  return replay(driven_events(out));
}

Json without_ids(Json message) {
  message.erase("id");
  for (Json& block : message["content"]) block.erase("id");
  return message;
}

TEST(AnthropicForm, AStreamHasTheEventsOfEachBlockInOrder) {
  const std::unique_ptr<AnswerForm> form = make_anthropic_form({}, /*show_thinking=*/true);
  std::string out;
  const Answer answer = drive({"(think h", "m)Hi", "!", R"((call f {"a")", ":1})", "(call g {})"},
                              {}, form.get(), &out);
  form->finish({answer}, out);
  const std::vector<Json> events = driven_events(out);
  const std::vector<std::string> expected = {"message_start",       "ping",
                                             "content_block_start", "content_block_delta",
                                             "content_block_delta", "content_block_delta",
                                             "content_block_stop",  "content_block_start",
                                             "content_block_delta", "content_block_delta",
                                             "content_block_stop",  "content_block_start",
                                             "content_block_delta", "content_block_delta",
                                             "content_block_stop",  "content_block_start",
                                             "content_block_delta", "content_block_stop",
                                             "message_delta",       "message_stop"};
  EXPECT_EQ(types_of(events), expected);
  EXPECT_EQ(events[5]["delta"]["type"], "signature_delta");
  const Json message = replay(events);
  EXPECT_EQ(message["content"][0]["thinking"], "hm");
  EXPECT_EQ(message["content"][1]["text"], "Hi!");
  EXPECT_EQ(message["content"][2]["input"], Json({{"a", 1}}));
  EXPECT_EQ(message["content"][3]["name"], "g");
  EXPECT_EQ(message["stop_reason"], "tool_use");
  EXPECT_EQ(message["usage"]["input_tokens"], 6);
  EXPECT_EQ(message["usage"]["cache_read_input_tokens"], 4);
  EXPECT_EQ(message["usage"]["output_tokens"], 6);
  EXPECT_EQ(events.front()["message"]["usage"]["input_tokens"], 6);
}

TEST(AnthropicForm, HoweverAnAnswerIsCutItIsTheMessageThatIsSentAtOnce) {
  const std::unique_ptr<AnswerForm> form = make_anthropic_form({}, /*show_thinking=*/true);
  form->set_model("fake");
  const Json whole = without_ids(form->whole({drive({kText})}));
  for_each_cut(kText, [&](const std::vector<std::string>& pieces) {
    const Json message = without_ids(stream(pieces));
    for (const char* name : {"type", "role", "model", "content", "stop_reason", "stop_sequence"}) {
      EXPECT_EQ(message[name], whole[name]) << Json(pieces).dump();
    }
  });
}

// Of a whole answer, the input of the only call and the reason for the end.
Json told_call(const std::string& arguments) {
  const std::string text = "(call f " + arguments + ")";
  const std::unique_ptr<AnswerForm> form = make_anthropic_form({}, /*show_thinking=*/true);
  const Json whole = form->whole({drive({text})});
  const Json streamed = stream({text});
  EXPECT_EQ(streamed["stop_reason"], whole["stop_reason"]) << arguments;
  if (whole["stop_reason"] == "tool_use") {
    EXPECT_EQ(streamed["content"][0]["input"], whole["content"][0]["input"]) << arguments;
  }
  return {{"input", whole["content"][0]["input"]}, {"stop_reason", whole["stop_reason"]}};
}

TEST(AnthropicForm, NoCallIsToldWithoutTheInputThatTheModelGaveIt) {
  EXPECT_EQ(told_call(R"({"a":1,"a":2})"),
            Json({{"input", {{"a", 2}}}, {"stop_reason", "tool_use"}}));
  EXPECT_EQ(told_call(R"({"a":"\ud83d"})"),
            Json({{"input", {{"a", "\xEF\xBF\xBD"}}}, {"stop_reason", "tool_use"}}));
  std::string deep = "0";
  for (std::size_t i = 0; i < json::kMaxDepth; ++i) deep = "[" + deep + "]";
  EXPECT_EQ(told_call("{\"a\":" + deep + "}")["stop_reason"], "end_turn") << "beyond our limit";
}

TEST(AnthropicForm, TheReasonForTheEndIsTold) {
  EXPECT_EQ(stream({"Hi"})["stop_reason"], "end_turn");
  EXPECT_EQ(stream({"Hi"}, {.finish = FinishReason::kLength})["stop_reason"], "max_tokens");
  const Json cut = stream({R"((call f {"a")"}, {.finish = FinishReason::kLength});
  EXPECT_EQ(cut["stop_reason"], "max_tokens") << "a call that is not whole is not to be made";
  const Json cut_by_stop = stream({R"((call f {"a")"}, {.stop = "END"}, {"END"});
  EXPECT_EQ(cut_by_stop["stop_reason"], "stop_sequence") << "nor is this one";
  EXPECT_EQ(stream({R"((call f {"a":1})"}, {.stop = "END"}, {"END"})["stop_reason"], "tool_use");
  const Json stopped = stream({"Hi"}, {.stop = "END"}, {"X", "END"});
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], "END");
  const Json by_template = stream({"Hi"}, {.stop = "<|eot|>"}, {"X", "END"});
  EXPECT_EQ(by_template["stop_reason"], "end_turn");
  EXPECT_TRUE(by_template["stop_sequence"].is_null());
}

TEST(AnthropicForm, WhatTheModelThoughtIsLeftOutWhereThatWasAskedFor) {
  const Json message = stream({kText}, {}, {}, /*show_thinking=*/false);
  EXPECT_EQ(message["content"][0]["type"], "text");
}

TEST(AnthropicForm, AnAnswerThatSaysNothingHasNoBlocks) {
  EXPECT_EQ(stream({})["content"], Json::array());
}

TEST(AnthropicForm, AFailureIsAnEventOfItsOwn) {
  std::string out;
  make_anthropic_form({}, true)->fail(cancelled("shut down"), out);
  EXPECT_EQ(out,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
            "\"message\":\"shut down\"}}\n\n");
}

class AnthropicServerTest : public ServerTest {
 protected:
  static Json body() {
    Json body = {{"model", "fake"}, {"max_tokens", 12}, {"seed", 7}, {"system", "d"}};
    body["messages"].push_back({{"role", "user"}, {"content", "abc"}});
    return body;
  }
};

TEST_F(AnthropicServerTest, TheTextIsThatOfTheSameConversationInChat) {
  start();
  const Json message = object(post("/v1/messages", body()));
  Json chat = {{"model", "fake"}, {"max_tokens", 12}, {"seed", 7}};
  chat["messages"].push_back({{"role", "system"}, {"content", "d"}});
  chat["messages"].push_back({{"role", "user"}, {"content", "abc"}});
  const Json said = object(post("/v1/chat/completions", chat));
  EXPECT_EQ(message["content"][0]["text"], said["choices"][0]["message"]["content"]);
  EXPECT_EQ(message["stop_reason"], "max_tokens");
  EXPECT_TRUE(message["speculation"]["steps"].is_number());

  Json streamed = body();
  streamed["stream"] = true;
  EXPECT_EQ(replay(events(post("/v1/messages", streamed)))["content"], message["content"]);
}

TEST_F(AnthropicServerTest, CountedTokensAreThoseThatAreReadThen) {
  start();
  Json counted = body();
  counted.erase("max_tokens");
  const Json count = object(post("/v1/messages/count_tokens", counted));
  const Json usage = object(post("/v1/messages", body()))["usage"];
  EXPECT_GT(count["input_tokens"], 3);
  EXPECT_EQ(count["input_tokens"].get<int>(),
            usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>());
}

TEST_F(AnthropicServerTest, EveryErrorHasTheFormOfTheApi) {
  start();
  Json unknown = body();
  unknown["model"] = "claude-9";
  Json wrong = body();
  wrong["temperature"] = "hot";
  Json image = body();
  image["messages"][0]["content"] = Json::array({Json({{"type", "image"}, {"source", "x"}})});
  struct Case {
    HttpReply reply;
    int status;
    const char* type;
  };
  const Case cases[] = {
      {ask("POST", "/v1/messages", "{"), 400, "invalid_request_error"},
      {ask("POST", "/v1/messages", "[]"), 400, "invalid_request_error"},
      {ask("GET", "/v1/messages"), 405, "invalid_request_error"},
      {ask("POST", "/v1/messages/batches", "{}"), 404, "not_found_error"},
      {ask("POST", "/v1/messages/count_tokens", "{}"), 400, "invalid_request_error"},
      {post("/v1/messages", unknown), 404, "not_found_error"},
      {post("/v1/messages", wrong), 400, "invalid_request_error"},
      {post("/v1/messages", image), 501, "invalid_request_error"}};
  for (const Case& one : cases) {
    EXPECT_EQ(one.reply.status, one.status) << one.reply.body;
    const Json error = object(one.reply);
    EXPECT_EQ(error["type"], "error") << one.reply.body;
    EXPECT_EQ(error["error"]["type"], one.type);
    EXPECT_GT(error["error"]["message"].get<std::string>().size(), 5U);
  }
  server_->state().stop();
  EXPECT_EQ(object(post("/v1/messages", body()))["error"]["type"], "overloaded_error");
}

}  // namespace
}  // namespace outrider::http
