// The events of a response: complete, in order, and the same answer however it is cut.
#include "http/openai/responses_form.h"

#include "http/completion/form_driver_test.h"
#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

constexpr const char* kText = R"((think hm)Hi!(call f {"a":1})(call g {}))";

std::unique_ptr<AnswerForm> new_form(bool as_summary = false) {
  return make_responses_form(Json::object(), CompletionRequest(), as_summary);
}

// Replays a stream as a client does, and holds it to what the API guarantees. Returns the object of
// the last event.
Json replay(const std::vector<Json>& events) {
  std::vector<Json> items;
  bool open = false;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Json& event = events[i];
    const std::string type = event["type"].get<std::string>();
    EXPECT_EQ(event["sequence_number"], i);
    EXPECT_EQ(event.contains("response"), i < 2 || i + 1 == events.size()) << type;
    if (event.contains("response")) continue;
    if (type == "response.output_item.added") {
      EXPECT_FALSE(open);
      open = true;
      items.push_back(event["item"]);
    }
    if (items.empty() || !open) {
      ADD_FAILURE() << type << " outside an item";
      break;
    }
    Json& item = items.back();
    EXPECT_EQ(event["output_index"], items.size() - 1);
    if (event.contains("item_id")) {
      EXPECT_EQ(event["item_id"], item["id"]);
    }
    if (type == "response.reasoning_summary_part.added") item["summary"].push_back(event["part"]);
    if (type == "response.reasoning_summary_text.delta") {
      item["summary"][0]["text"].get_ref<std::string&>() += event["delta"].get<std::string>();
    }
    if (type == "response.reasoning_summary_text.done") {
      EXPECT_EQ(item["summary"][0]["text"], event["text"]);
    }
    if (type == "response.reasoning_summary_part.done") {
      EXPECT_EQ(item["summary"][0], event["part"]);
    }
    if (type == "response.content_part.added") item["content"].push_back(event["part"]);
    if (type == "response.output_text.delta" || type == "response.reasoning_text.delta") {
      item["content"][0]["text"].get_ref<std::string&>() += event["delta"].get<std::string>();
    }
    if (type == "response.output_text.done" || type == "response.reasoning_text.done") {
      EXPECT_EQ(item["content"][0]["text"], event["text"]);
    }
    if (type == "response.content_part.done") {
      EXPECT_EQ(item["content"][0], event["part"]);
    }
    if (type == "response.function_call_arguments.delta") {
      item["arguments"].get_ref<std::string&>() += event["delta"].get<std::string>();
    }
    if (type == "response.function_call_arguments.done") {
      EXPECT_EQ(item["arguments"], event["arguments"]);
    }
    if (type == "response.output_item.done") {
      open = false;
      EXPECT_EQ(item["status"], "in_progress");
      item["status"] = event["item"]["status"];
      EXPECT_EQ(item, event["item"]);
    }
  }
  EXPECT_FALSE(open);
  const Json& response = events.back()["response"];
  EXPECT_EQ(response["output"], Json(items));
  return response;
}

// Without what is random.
Json without_ids(Json response) {
  for (const char* name : {"id", "created_at", "completed_at"}) response.erase(name);
  for (Json& item : response["output"]) item.erase("id");
  for (Json& item : response["output"]) item.erase("call_id");
  return response;
}

Json stream(const std::vector<std::string>& pieces, const DrivenEnd& end = {}) {
  const std::unique_ptr<AnswerForm> form = new_form();
  std::string out;
  const Answer answer = drive(pieces, end, form.get(), &out);
  form->finish({answer}, out);
  return replay(driven_events(out));
}

TEST(ResponsesForm, AStreamHasTheEventsOfEachItemInOrder) {
  const std::unique_ptr<AnswerForm> form = new_form();
  std::string out;
  const Answer answer = drive({"(think h", "m)Hi", "!", R"((call f {"a")", ":1})", "(call g {})"},
                              {}, form.get(), &out);
  form->finish({answer}, out);
  const std::vector<Json> events = driven_events(out);
  const std::vector<std::string> expected = {"response.created",
                                             "response.in_progress",
                                             "response.output_item.added",
                                             "response.content_part.added",
                                             "response.reasoning_text.delta",
                                             "response.reasoning_text.delta",
                                             "response.reasoning_text.done",
                                             "response.content_part.done",
                                             "response.output_item.done",
                                             "response.output_item.added",
                                             "response.content_part.added",
                                             "response.output_text.delta",
                                             "response.output_text.delta",
                                             "response.output_text.done",
                                             "response.content_part.done",
                                             "response.output_item.done",
                                             "response.output_item.added",
                                             "response.function_call_arguments.delta",
                                             "response.function_call_arguments.delta",
                                             "response.function_call_arguments.done",
                                             "response.output_item.done",
                                             "response.output_item.added",
                                             "response.function_call_arguments.delta",
                                             "response.function_call_arguments.done",
                                             "response.output_item.done",
                                             "response.completed"};
  EXPECT_EQ(types_of(events), expected);
  const Json response = replay(events);
  EXPECT_EQ(events.front()["response"]["status"], "in_progress");
  EXPECT_EQ(response["status"], "completed");
  EXPECT_EQ(response["output"][0]["content"][0]["text"], "hm");
  EXPECT_EQ(response["output"][1]["content"][0]["text"], "Hi!");
  EXPECT_EQ(response["output"][2]["arguments"], R"({"a":1})");
  EXPECT_EQ(response["output"][3]["name"], "g");
  EXPECT_EQ(response["usage"]["input_tokens"], 10);
  EXPECT_EQ(response["usage"]["input_tokens_details"]["cached_tokens"], 4);
  EXPECT_EQ(response["usage"]["output_tokens"], 6);
  EXPECT_EQ(response["usage"]["output_tokens_details"]["reasoning_tokens"], 2);
}

TEST(ResponsesForm, ReasoningIsToldAsASummaryWhereOneWasAskedFor) {
  const std::unique_ptr<AnswerForm> form = new_form(/*as_summary=*/true);
  std::string out;
  const Answer answer = drive({"(think h", "m)Hi"}, {}, form.get(), &out);
  form->finish({answer}, out);
  const std::vector<Json> events = driven_events(out);
  const std::vector<std::string> expected = {"response.created",
                                             "response.in_progress",
                                             "response.output_item.added",
                                             "response.reasoning_summary_part.added",
                                             "response.reasoning_summary_text.delta",
                                             "response.reasoning_summary_text.delta",
                                             "response.reasoning_summary_text.done",
                                             "response.reasoning_summary_part.done",
                                             "response.output_item.done",
                                             "response.output_item.added",
                                             "response.content_part.added",
                                             "response.output_text.delta",
                                             "response.output_text.done",
                                             "response.content_part.done",
                                             "response.output_item.done",
                                             "response.completed"};
  EXPECT_EQ(types_of(events), expected);
  for (std::size_t i = 3; i < 8; ++i) {
    EXPECT_EQ(events[i]["summary_index"], 0);
    EXPECT_FALSE(events[i].contains("content_index"));
  }
  const Json reasoning = replay(events)["output"][0];
  EXPECT_EQ(reasoning["summary"], Json::array({Json{{"type", "summary_text"}, {"text", "hm"}}}));
  EXPECT_EQ(reasoning["content"], Json::array());
  const std::unique_ptr<AnswerForm> at_once = new_form(/*as_summary=*/true);
  const Json whole = at_once->whole({drive({"(think hm)Hi"}, {}, at_once.get())});
  EXPECT_EQ(whole["output"][0]["summary"], reasoning["summary"]);
}

TEST(ResponsesForm, HoweverAnAnswerIsCutItIsTheObjectThatIsSentAtOnce) {
  const std::unique_ptr<AnswerForm> at_once = new_form();
  const Answer answer = drive({kText}, {}, at_once.get());
  const Json whole = without_ids(at_once->whole({answer}));
  EXPECT_EQ(whole["output"].size(), 4U);
  for_each_cut(kText, [&](const std::vector<std::string>& pieces) {
    // What is counted and timed depends on the pieces.
    Json response = stream(pieces);
    for (const char* name : {"usage", "timings", "speculation"}) response[name] = whole[name];
    EXPECT_EQ(without_ids(response), whole) << Json(pieces).dump();
  });
}

TEST(ResponsesForm, WhatWasCutShortIsIncomplete) {
  for (const char* text : {"Hi", "(think h", R"(Hi(call f {"a")"}) {
    const Json response = stream({text}, {.finish = FinishReason::kLength});
    EXPECT_EQ(response["status"], "incomplete");
    EXPECT_EQ(response["incomplete_details"]["reason"], "max_output_tokens");
    EXPECT_EQ(response["output"].back()["status"], "incomplete");
  }
  const Json late = stream({"Hi"}, {.finish = FinishReason::kCancelled});
  EXPECT_EQ(late["status"], "incomplete");
  EXPECT_EQ(late["incomplete_details"]["reason"], "max_output_tokens");
}

TEST(ResponsesForm, ACallThatAStopTextCutIsIncomplete) {
  const Json response = stream({R"((call f {"a")"}, {.stop = ":"});
  EXPECT_EQ(response["status"], "incomplete");
  EXPECT_EQ(response["output"].back()["status"], "incomplete");
  EXPECT_EQ(response["incomplete_details"], Json()) << "no reason that is null";
  EXPECT_EQ(stream({"(call f {})"}, {.stop = "!"})["status"], "completed");
}

TEST(ResponsesForm, AnAnswerThatSaysNothingIsAnEmptyMessage) {
  const Json response = stream({});
  ASSERT_EQ(response["output"].size(), 1U);
  EXPECT_EQ(response["output"][0]["content"][0]["text"], "");
}

TEST(ResponsesForm, AFailureEndsTheStreamWithWhatWasSaid) {
  const std::unique_ptr<AnswerForm> form = new_form();
  std::string out;
  form->begin(out);
  form->delta(0, {.content = "Hi", .reasoning = {}, .tool_calls = {}, .tokens = {}}, out);
  form->fail(internal_error("the backend failed"), out);
  const Json last = driven_events(out).back();
  EXPECT_EQ(last["type"], "response.failed");
  EXPECT_EQ(last["response"]["status"], "failed");
  EXPECT_EQ(last["response"]["error"]["code"], "server_error");
  EXPECT_EQ(last["response"]["error"]["message"], "the backend failed");
  EXPECT_EQ(last["response"]["output"][0]["content"][0]["text"], "Hi");
}

class ResponsesServerTest : public ServerTest {
 protected:
  static Json body() {
    return {{"model", "fake"},         {"input", "abc"},      {"instructions", "d"},
            {"max_output_tokens", 12}, {"max_tool_calls", 3}, {"seed", 7}};
  }
};

TEST_F(ResponsesServerTest, TheTextIsThatOfTheSameConversationInChat) {
  start();
  const Json response = object(post("/v1/responses", body()));
  Json chat = {{"model", "fake"}, {"max_tokens", 12}, {"seed", 7}};
  chat["messages"].push_back({{"role", "system"}, {"content", "d"}});
  chat["messages"].push_back({{"role", "user"}, {"content", "abc"}});
  const Json said = object(post("/v1/chat/completions", chat));
  EXPECT_EQ(response["output"][0]["content"][0]["text"], said["choices"][0]["message"]["content"]);
  EXPECT_EQ(response["usage"]["output_tokens"], 12);
  EXPECT_EQ(response["seed"], 7);
  EXPECT_TRUE(response["speculation"]["steps"].is_number());
  EXPECT_EQ(response["instructions"], "d");
  EXPECT_EQ(response["max_output_tokens"], 12);
  EXPECT_EQ(response["max_tool_calls"], 3);
}

TEST_F(ResponsesServerTest, AStreamAndTheWholeSayTheSame) {
  start();
  Json streamed = body();
  streamed["stream"] = true;
  const Json last = replay(events(post("/v1/responses", streamed)));
  const Json whole = object(post("/v1/responses", body()));
  EXPECT_EQ(without_ids(last)["output"], without_ids(whole)["output"]);
  EXPECT_EQ(last["status"], "incomplete");
}

TEST_F(ResponsesServerTest, LogprobsComeWithTheTextWhereAskedFor) {
  start();
  Json asked = body();
  asked["include"] = Json::array({"message.output_text.logprobs"});
  asked["top_logprobs"] = 2;
  const Json whole = object(post("/v1/responses", asked));
  const Json logprobs = whole["output"][0]["content"][0]["logprobs"];
  ASSERT_EQ(logprobs.size(), 12U);
  EXPECT_EQ(logprobs[0]["top_logprobs"].size(), 2U);
}

}  // namespace
}  // namespace outrider::http
