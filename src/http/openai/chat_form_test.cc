// OpenAI's chat: what its clients rely on, over hand-written models.
#include "http/openai/chat_form.h"

#include "http/completion/form_driver_test.h"
#include "http/fixture_test.h"
#include "testing/step_gate.h"

namespace outrider::http {
namespace {

using json::Json;

class ChatFormTest : public ServerTest {
 protected:
  static Json body() {
    Json body = {{"model", "fake"}, {"max_tokens", 12}, {"temperature", 0.8}, {"seed", 7}};
    body["messages"] = Json::array();
    body["messages"].push_back({{"role", "user"}, {"content", "abc"}});
    return body;
  }
};

TEST_F(ChatFormTest, AStreamSaysTheRoleFirstAndTheReasonForItsEndLast) {
  start();
  Json streamed = body();
  streamed["stream"] = true;
  const std::vector<Json> chunks = events(post("/v1/chat/completions", streamed));
  ASSERT_GE(chunks.size(), 3U);
  EXPECT_EQ(chunks.front()["choices"][0]["delta"]["role"], "assistant");
  std::string text;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Json& choice = chunks[i]["choices"][0];
    EXPECT_EQ(chunks[i]["object"], "chat.completion.chunk");
    EXPECT_EQ(chunks[i]["model"], "fake");
    EXPECT_FALSE(chunks[i].contains("usage")) << "nobody asked for it";
    EXPECT_EQ(choice["finish_reason"].is_null(), i + 1 < chunks.size());
    if (i > 0) text += choice["delta"].value("content", "");
  }
  EXPECT_EQ(chunks.back()["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(chunks.back()["choices"][0]["delta"], Json::object());
  EXPECT_TRUE(chunks.back()["speculation"]["steps"].is_number());

  const Json whole = object(post("/v1/chat/completions", body()));
  EXPECT_EQ(whole["choices"][0]["message"]["content"], text);
  EXPECT_EQ(whole["usage"]["completion_tokens"], 12);
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "length");
}

TEST_F(ChatFormTest, TheRoleComesFirstAlsoWhereProgressIsTold) {
  start();
  Json asked = body();
  asked["stream"] = true;
  asked["return_progress"] = true;
  const std::vector<Json> chunks = events(post("/v1/chat/completions", asked));
  std::size_t told = 0;
  std::size_t roles = 0;
  for (const Json& chunk : chunks) {
    roles += chunk["choices"][0]["delta"].contains("role");
    if (!chunk.contains("prompt_progress")) continue;
    ++told;
    EXPECT_GE(chunk["prompt_progress"]["time_ms"].get<double>(), 0.0);
  }
  EXPECT_GT(told, 0U);
  EXPECT_EQ(roles, 1U);
  EXPECT_EQ(chunks.front()["choices"][0]["delta"]["role"], "assistant");
}

TEST_F(ChatFormTest, EachChunkHasTheTimingsSoFarWhereTheyAreAskedFor) {
  start();
  Json asked = body();
  asked.update({{"stream", true}, {"n", 2}, {"token_sources", true}});
  for (const Json& chunk : events(post("/v1/chat/completions", asked))) {
    EXPECT_EQ(chunk.contains("timings"), !chunk["choices"][0]["finish_reason"].is_null());
  }
  asked["timings_per_token"] = true;
  std::vector<std::size_t> told(2, 0);
  for (const Json& chunk : events(post("/v1/chat/completions", asked))) {
    const Json& choice = chunk["choices"][0];
    if (choice["delta"].contains("role")) continue;
    std::size_t& n = told[choice["index"].get<std::size_t>()];
    n += chunk.value("tokens", Json::array()).size();
    ASSERT_TRUE(chunk.contains("timings")) << chunk;
    const Json& timings = chunk["timings"];
    EXPECT_EQ(timings["predicted_n"], n);
    EXPECT_GT(timings["cache_n"].get<int>() + timings["prompt_n"].get<int>(), 0);
  }
  EXPECT_EQ(told, (std::vector<std::size_t>{12, 12}));
}

TEST_F(ChatFormTest, TimingsOfWhatWasGivenAreOfNoToken) {
  Json asked = body();
  asked["timings_per_token"] = true;
  Result<CompletionTask> task = read_chat_task(asked, ServerOptions());
  ASSERT_TRUE(task.ok()) << task.status().message();
  task->form->set_prompts({{.n_tokens = 7, .n_cached = 4}});
  std::string out;
  task->form->delta(0, {.content = "so", .reasoning = {}, .tool_calls = {}, .tokens = {}}, out);
  const std::size_t last = out.rfind("data: ");
  ASSERT_NE(last, std::string::npos);
  const json::Parsed chunk = json::parse(out.substr(last + 6));
  ASSERT_TRUE(chunk.ok()) << chunk.error << ": " << out;
  const Json& timings = (*chunk.value)["timings"];
  EXPECT_EQ(timings["predicted_n"], 0);
  EXPECT_EQ(timings["predicted_per_second"], 0.0);
  EXPECT_EQ(timings["prompt_n"], 3);
  EXPECT_EQ(timings["cache_n"], 4);
}

// The last tokens say nothing: the end token, and what closes a call.
TEST_F(ChatFormTest, AStreamTellsOfAllTokensThatTheWholeAnswerHas) {
  start({}, {.end = 11, .chat = true});
  std::size_t n_ended = 0;
  for (int seed = 0; seed < 8; ++seed) {
    Json asked = body();
    asked.update({{"seed", seed}, {"max_tokens", 40}, {"logprobs", true}});
    asked["token_sources"] = true;
    asked["tools"] = Json::array(
        {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", Json::object()}}}}});
    const Json whole = object(post("/v1/chat/completions", asked));
    n_ended += whole["choices"][0]["finish_reason"] == "stop";
    Json logprobs_only = asked;
    logprobs_only.erase("token_sources");
    for (Json* streamed : {&asked, &logprobs_only}) {
      (*streamed)["stream"] = true;
      Json ids = Json::array();
      Json logprobs = Json::array();
      for (const Json& chunk : events(post("/v1/chat/completions", *streamed))) {
        for (const Json& token : chunk.value("tokens", Json::array())) ids.push_back(token["id"]);
        const Json& said = chunk["choices"][0]["logprobs"];
        if (said.is_null()) continue;
        for (const Json& token : said["content"]) logprobs.push_back(token["token"]);
      }
      Json expected = Json::array();
      for (const Json& token : whole["choices"][0]["logprobs"]["content"]) {
        expected.push_back(token["token"]);
      }
      EXPECT_EQ(logprobs, expected) << seed;
      EXPECT_EQ(expected.size(), whole["tokens"].size());
      if (streamed != &asked) continue;
      Json expected_ids = Json::array();
      for (const Json& token : whole["tokens"]) expected_ids.push_back(token["id"]);
      EXPECT_EQ(ids, expected_ids) << seed;
    }
  }
  EXPECT_GT(n_ended, 0U) << "none came to the end token";
}

TEST_F(ChatFormTest, AStreamTellsOfAllTokensHoweverTheyCome) {
  Json asked = body();
  asked["token_sources"] = true;
  for_each_cut(R"((think hm)Hi(call f {"a":1}))", [&](const std::vector<std::string>& pieces) {
    Result<CompletionTask> task = read_chat_task(asked, ServerOptions());
    ASSERT_TRUE(task.ok());
    std::string out;
    (void)drive(pieces, {}, task->form.get(), &out);
    std::vector<std::string> told;
    for (std::size_t at = 0, end = 0; at < out.size(); at = end + 2) {
      end = out.find("\n\n", at);
      const json::Parsed chunk = json::parse(out.substr(at + 6, end - at - 6));
      ASSERT_TRUE(chunk.ok()) << chunk.error;
      for (const Json& token : chunk.value->value("tokens", Json::array())) {
        told.push_back(token["text"]);
      }
    }
    EXPECT_EQ(told, pieces);
  });
}

TEST_F(ChatFormTest, AStreamCountsGuessesAsItGoesWhereSourcesAreAskedFor) {
  start();
  Json asked = body();
  asked.update({{"stream", true}, {"max_tokens", 60}, {"temperature", 0}});
  asked["speculative"] = {{"drafters", {"recycle"}}, {"width", 8}};
  for (const Json& chunk : events(post("/v1/chat/completions", asked))) {
    EXPECT_EQ(chunk.contains("speculation"), !chunk["choices"][0]["finish_reason"].is_null());
  }
  asked["token_sources"] = true;
  testing::StepGate gate(*runtime_);  // a step goes on when the one before has been sent
  gate.let(2);
  HttpReply reply = post("/v1/chat/completions", asked);
  reply.stream = [&gate, stream = reply.stream](const ReplyWriter& write) {
    return stream([&](std::string_view bytes) {
      gate.let(2);
      return write(bytes);
    });
  };
  int drafted = 0;
  int accepted = 0;
  int n_told = 0;
  for (const Json& chunk : events(reply)) {
    const bool is_last = !chunk["choices"][0]["finish_reason"].is_null();
    EXPECT_EQ(chunk.contains("speculation"), chunk.contains("tokens") || is_last);
    if (!chunk.contains("speculation")) continue;
    const Json& counts = chunk["speculation"];
    EXPECT_GE(counts["drafted"], drafted);
    EXPECT_GE(counts["accepted"], accepted);
    drafted = counts["drafted"];
    accepted = counts["accepted"];
    EXPECT_LE(accepted, drafted);
    n_told += !is_last && drafted > 0;
  }
  EXPECT_GT(n_told, 1);
}

TEST_F(ChatFormTest, UsageComesInALastChunkWithoutChoicesWhereAskedFor) {
  start();
  Json asked = body();
  asked["stream"] = true;
  asked["stream_options"] = {{"include_usage", true}};
  const std::vector<Json> chunks = events(post("/v1/chat/completions", asked));
  EXPECT_EQ(chunks.back()["choices"], Json::array());
  EXPECT_EQ(chunks.back()["usage"]["completion_tokens"], 12);
  EXPECT_TRUE(chunks.front()["usage"].is_null());
}

TEST_F(ChatFormTest, APromptCountsOnceHoweverManyAnswersItHas) {
  start();
  const Json one = object(post("/v1/chat/completions", body()))["usage"];
  Json asked = body();
  asked["n"] = 3;
  const Json three = object(post("/v1/chat/completions", asked))["usage"];
  EXPECT_EQ(three["prompt_tokens"], one["prompt_tokens"]);
  EXPECT_EQ(three["completion_tokens"], 36);
  EXPECT_EQ(three["total_tokens"], one["prompt_tokens"].get<int>() + 36);
}

TEST_F(ChatFormTest, TheTextIsTheSameWithoutSpeculation) {
  start();
  Json plain = body();
  plain["speculative"] = false;
  const Json with = object(post("/v1/chat/completions", body()));
  const Json without = object(post("/v1/chat/completions", plain));
  EXPECT_EQ(with["choices"][0]["message"], without["choices"][0]["message"]);
  EXPECT_EQ(without["speculation"]["enabled"], false);
}

TEST_F(ChatFormTest, SeveralAnswersHaveSeedsOfTheirOwn) {
  start();
  Json asked = body();
  asked["n"] = 3;
  const Json whole = object(post("/v1/chat/completions", asked));
  ASSERT_EQ(whole["choices"].size(), 3U);
  EXPECT_EQ(whole["usage"]["completion_tokens"], 36);
  for (std::size_t i = 0; i < 3; ++i) {
    Json alone = body();
    alone["seed"] = 7 + i;
    EXPECT_EQ(object(post("/v1/chat/completions", alone))["choices"][0]["message"],
              whole["choices"][i]["message"]);
    EXPECT_EQ(whole["choices"][i]["seed"], 7 + i);
    EXPECT_TRUE(whole["choices"][i]["speculation"]["steps"].is_number());
    EXPECT_EQ(whole["choices"][i]["timings"]["predicted_n"], 12);
  }
  EXPECT_EQ(whole["seed"], 7) << "the first one's";
  EXPECT_FALSE(object(post("/v1/chat/completions", body()))["choices"][0].contains("seed"));
}

TEST_F(ChatFormTest, ErrorsNameTheFieldAsTheClientSpelledIt) {
  start();
  const auto error_of = [this](const char* field, const Json& value) {
    Json asked = body();
    asked.erase("max_tokens");
    asked[field] = value;
    const HttpReply reply = post("/v1/chat/completions", asked);
    EXPECT_EQ(reply.status, 400) << reply.body;
    return object(reply)["error"];
  };
  EXPECT_EQ(error_of("temperature", -1.0)["param"], "temperature");
  EXPECT_EQ(error_of("temperature", "hot")["param"], "temperature");
  EXPECT_EQ(error_of("max_completion_tokens", -5)["param"], "max_completion_tokens");
  EXPECT_EQ(error_of("n", 1000)["param"], "n");
  EXPECT_EQ(error_of("tempature", 1)["param"], "tempature");
  EXPECT_EQ(error_of("messages", "hello")["param"], "messages");
  EXPECT_EQ(error_of("response_format", {{"type", "xml"}})["param"], "response_format.type");
  EXPECT_EQ(error_of("temperature", -1.0)["message"].get<std::string>().find("temperature is"), 0U);
}

TEST_F(ChatFormTest, WhatDoesNotGoTogetherIsNamedAsTheClientSpelledIt) {
  start();
  Json asked = body();
  asked.update({{"mirostat", 2}, {"temperature", 0}});
  const Json error = object(post("/v1/chat/completions", asked))["error"];
  EXPECT_EQ(error["param"], "temperature") << error;
  EXPECT_EQ(error["message"].get<std::string>().find("temperature is 0"), 0U) << error;
  asked.erase("temperature");
  asked["temp"] = 0;
  EXPECT_EQ(object(post("/v1/chat/completions", asked))["error"]["param"], "temp");
}

TEST_F(ChatFormTest, HowHardToThinkStandsBesideTheTemplatesOtherValues) {
  const auto chat_of = [](const Json& more) {
    Json asked = body();
    asked.update(more);
    Result<CompletionTask> task = read_chat_task(asked, ServerOptions());
    EXPECT_TRUE(task.ok()) << (task.ok() ? "" : task.status().message());
    return task.ok() ? task->requests.shared.chat : ChatOptions();
  };
  EXPECT_EQ(chat_of({{"reasoning_effort", "high"}}).template_values,
            R"({"reasoning_effort":"high"})");
  EXPECT_EQ(chat_of({{"reasoning_effort", "minimal"}, {"chat_template_kwargs", {{"a", 1}}}})
                .template_values,
            R"({"a":1,"reasoning_effort":"low"})");
  EXPECT_EQ(
      chat_of({{"reasoning_effort", "low"}, {"chat_template_kwargs", {{"reasoning_effort", "x"}}}})
          .template_values,
      R"({"reasoning_effort":"x"})")
      << "what the client tells the template itself";
  const ChatOptions none =
      chat_of({{"reasoning_effort", "none"}, {"chat_template_kwargs", {{"a", 1}}}});
  EXPECT_FALSE(none.reasoning);
  EXPECT_EQ(none.template_values, R"({"a":1})");
  EXPECT_EQ(chat_of({{"reasoning_effort", Json()}}).template_values, "");
  // As an object, which /v1/responses has and clients of other services send here.
  EXPECT_EQ(chat_of({{"reasoning", {{"effort", "high"}, {"summary", Json()}}}}).template_values,
            R"({"reasoning_effort":"high"})");
  EXPECT_EQ(
      chat_of({{"reasoning", {{"effort", "low"}}}, {"reasoning_effort", "low"}}).template_values,
      R"({"reasoning_effort":"low"})");
  EXPECT_FALSE(chat_of({{"reasoning", {{"effort", "none"}}}}).reasoning);
  EXPECT_FALSE(chat_of({{"reasoning", false}}).reasoning);
  // llama-server's budget of 0, which is about whether, wins over how hard.
  for (const char* budget : {"thinking_budget_tokens", "reasoning_budget_tokens"}) {
    EXPECT_FALSE(chat_of({{budget, 0}}).reasoning) << budget;
    EXPECT_FALSE(chat_of({{budget, 0}, {"reasoning_effort", "high"}}).reasoning) << budget;
    EXPECT_FALSE(chat_of({{budget, 0}, {"reasoning", {{"effort", "high"}}}}).reasoning) << budget;
    EXPECT_TRUE(chat_of({{budget, -1}}).reasoning) << budget;
  }
}

TEST_F(ChatFormTest, HowHardToThinkIsRefusedWithThePlaceWhereItIsSaid) {
  start();
  Json wrong = body();
  wrong["reasoning"] = {{"effort", "much"}};
  EXPECT_EQ(object(post("/v1/chat/completions", wrong))["error"]["param"], "reasoning.effort");
  wrong["reasoning"] = {{"effort", "low"}};
  wrong["reasoning_effort"] = "high";
  EXPECT_EQ(object(post("/v1/chat/completions", wrong))["error"]["param"], "reasoning_effort");
  wrong.erase("reasoning");
  wrong["reasoning_effort"] = "much";
  EXPECT_EQ(object(post("/v1/chat/completions", wrong))["error"]["param"], "reasoning_effort");
}

TEST_F(ChatFormTest, NullIsAsIfTheFieldWereNotThere) {
  start();
  Json asked = body();
  for (const char* name : {"stop", "top_p", "tools", "response_format", "user"})
    asked[name] = Json();
  EXPECT_EQ(object(post("/v1/chat/completions", asked))["choices"],
            object(post("/v1/chat/completions", body()))["choices"]);
}

TEST_F(ChatFormTest, AModelThatIsNotThereIsAnError) {
  start();
  Json asked = body();
  asked["model"] = "gpt-7";
  const HttpReply reply = post("/v1/chat/completions", asked);
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(object(reply)["error"]["param"], "model");
}

TEST_F(ChatFormTest, WhatIsFoundBehindTheBodyIsNamedAsItWasSent) {
  start();
  Json asked = body();
  asked["speculative"] = {{"drafters", {"mtp"}}};
  const Json error = object(post("/v1/chat/completions", asked))["error"];
  EXPECT_EQ(error["param"], "speculative.drafters") << error;
  EXPECT_EQ(error["message"].get<std::string>().find("speculative.drafters is 'mtp', but "), 0U)
      << error;
}

}  // namespace
}  // namespace outrider::http
