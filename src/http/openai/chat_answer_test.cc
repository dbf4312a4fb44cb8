// What is told of a chat's answer where it was cut by a stop text, or begun by the client.
#include "http/completion/form_driver_test.h"
#include "http/fixture_test.h"
#include "http/openai/chat_form.h"

namespace outrider::http {
namespace {

using json::Json;

class ChatAnswerTest : public ServerTest {
 protected:
  static Json body() {
    Json body = {{"model", "fake"}, {"max_tokens", 12}, {"temperature", 0.8}, {"seed", 7}};
    body["messages"] = Json::array({{{"role", "user"}, {"content", "abc"}}});
    return body;
  }
};

TEST_F(ChatAnswerTest, NoLogprobIsToldOfATokenThatAStopTextTookAllOf) {
  testing::FakeFile file{.chat = true};
  for (Token token = 0; token < 12; ++token) {  // two letters each: "ab", "cd", ...
    file.pieces[token] = {static_cast<char>('a' + 2 * token), static_cast<char>('b' + 2 * token)};
  }
  start({}, file);
  Json asked = body();
  asked["logprobs"] = true;
  const Json all = object(post("/v1/chat/completions", asked))["choices"][0];
  const std::string text = all["message"]["content"].get<std::string>();
  ASSERT_EQ(text.size(), 24U);
  ASSERT_EQ(all["logprobs"]["content"].size(), 12U);
  for (std::size_t at = 1; at + 4 <= text.size(); ++at) {
    const std::string stop = text.substr(at, 4);
    const std::size_t left = text.find(stop);
    asked["stop"] = stop;
    asked["stream"] = false;
    const Json whole = object(post("/v1/chat/completions", asked))["choices"][0];
    EXPECT_EQ(whole["message"]["content"], text.substr(0, left));
    // One of which a part is shown stays.
    const std::size_t n_shown = (left + 1) / 2;
    EXPECT_EQ(whole["logprobs"].is_null(), n_shown == 0);
    const Json expected = n_shown == 0 ? Json::array() : whole["logprobs"]["content"];
    EXPECT_EQ(expected.size(), n_shown) << stop;
    asked["stream"] = true;
    Json told = Json::array();
    for (const Json& chunk : events(post("/v1/chat/completions", asked))) {
      const Json& choice = chunk["choices"][0];
      if (choice["logprobs"].is_null()) continue;
      EXPECT_NE(choice["delta"], Json::object()) << "nothing but a stop's tokens";
      for (const Json& one : choice["logprobs"]["content"]) told.push_back(one);
    }
    EXPECT_EQ(told.size(), expected.size()) << stop;
  }
}

TEST_F(ChatAnswerTest, ACallThatIsNotWholeIsNotToBeMade) {
  const auto ended = [](const std::string& text, const DrivenEnd& end) {
    Result<CompletionTask> task = read_chat_task(body(), ServerOptions());
    EXPECT_TRUE(task.ok());
    std::string out;
    const Answer answer = drive({text}, end, task->form.get(), &out);
    const std::string whole = task->form->whole({answer})["choices"][0]["finish_reason"];
    EXPECT_NE(out.find("\"finish_reason\":\"" + whole + "\""), std::string::npos) << out;
    return whole;
  };
  const DrivenEnd by_stop = {.stop = "}"};
  EXPECT_EQ(ended(R"((call f {"a":1}))", {}), "tool_calls");
  EXPECT_EQ(ended(R"((call f {"a":1}))", by_stop), "tool_calls");
  EXPECT_EQ(ended(R"((call f {"a":{"b":1})", by_stop), "stop");
  EXPECT_EQ(ended(R"((call f {})(call g {"a)", by_stop), "stop") << "the last one counts";
  EXPECT_EQ(ended(R"((call f {"a)", {.finish = FinishReason::kLength}), "length");
  EXPECT_EQ(ended(R"((call f {}))", {.finish = FinishReason::kLength}), "length");
}

TEST_F(ChatAnswerTest, AMessageThatGoesOnComesBackWhole) {
  start();
  Json asked = body();
  asked["messages"].push_back({{"role", "assistant"}, {"content", "Hello"}});
  const Json whole = object(post("/v1/chat/completions", asked));
  const std::string text = whole["choices"][0]["message"]["content"].get<std::string>();
  EXPECT_EQ(text.substr(0, 5), "Hello");
  EXPECT_EQ(text.size(), 5U + 12U);
  EXPECT_EQ(whole["usage"]["completion_tokens"], 12) << "those that were said";
  asked["stream"] = true;
  const auto streamed = [&] {
    std::string said;
    for (const Json& chunk : events(post("/v1/chat/completions", asked))) {
      const Json& delta = chunk["choices"][0]["delta"];
      if (!delta.contains("role")) said += delta.value("content", "");
    }
    return said;
  };
  EXPECT_EQ(streamed(), text);
  asked["continue_final_message"] = true;
  EXPECT_EQ(streamed(), text.substr(5)) << "as llama-server has it";
  asked["echo"] = true;
  EXPECT_EQ(streamed(), text);
}

}  // namespace
}  // namespace outrider::http
