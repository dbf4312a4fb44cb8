// OpenAI's text completions, over hand-written models.
#include "http/openai/text_form.h"

#include <algorithm>

#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

class TextFormTest : public ServerTest {
 protected:
  static Json body(const Json& prompt) {
    return {{"prompt", prompt}, {"max_tokens", 8}, {"seed", 3}, {"logprobs", 2}};
  }
  Json answer(const Json& body) { return object(post("/v1/completions", body)); }
};

TEST_F(TextFormTest, AStreamJoinsToTheWholeAnswer) {
  start();
  Json asked = body("abc");
  const Json whole = answer(asked);
  asked["stream"] = true;
  std::string text;
  std::size_t offsets = 0;
  for (const Json& chunk : events(post("/v1/completions", asked))) {
    const Json& choice = chunk["choices"][0];
    text += choice["text"].get<std::string>();
    if (choice["logprobs"].is_null()) continue;
    for (const Json& offset : choice["logprobs"]["text_offset"]) EXPECT_EQ(offset, offsets++);
  }
  EXPECT_EQ(whole["choices"][0]["text"], text);
  EXPECT_EQ(offsets, 8U) << "one letter a token";
  const Json& logprobs = whole["choices"][0]["logprobs"];
  EXPECT_GE(logprobs["top_logprobs"][0].size(), 2U);
}

// As OpenAI's reference has it, and clients that score by it need it.
TEST_F(TextFormTest, TheChosenTokenIsAmongTheLikeliestWhateverItsRank) {
  start();
  for (const std::size_t n : {0U, 1U, 3U}) {
    Json asked = body("abc");
    asked.update({{"logprobs", n}, {"temperature", 3.0}, {"top_k", 0}, {"top_p", 1}, {"min_p", 0}});
    const Json logprobs = answer(asked)["choices"][0]["logprobs"];
    ASSERT_FALSE(logprobs.is_null());
    for (std::size_t i = 0; i < logprobs["tokens"].size(); ++i) {
      const std::string token = logprobs["tokens"][i].get<std::string>();
      const Json& top = logprobs["top_logprobs"][i];
      ASSERT_TRUE(top.contains(token)) << logprobs;
      EXPECT_EQ(top[token], logprobs["token_logprobs"][i]);
      EXPECT_GE(top.size(), std::max<std::size_t>(n, 1));
      EXPECT_LE(top.size(), n + 1);
    }
  }
}

TEST_F(TextFormTest, OffsetsCountCharactersNotBytes) {
  testing::FakeFile file;
  for (Token token = 0; token < 12; ++token) file.pieces[token] = "\xC3\xA4";  // two bytes
  start({}, file);
  Json asked = body(Json::array({0, 1}));
  const Json expected = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(answer(asked)["choices"][0]["logprobs"]["text_offset"], expected);
  asked["stream"] = true;
  Json streamed = Json::array();
  for (const Json& chunk : events(post("/v1/completions", asked))) {
    const Json& logprobs = chunk["choices"][0]["logprobs"];
    if (logprobs.is_null()) continue;
    for (const Json& one : logprobs["text_offset"]) streamed.push_back(one);
  }
  EXPECT_EQ(streamed, expected);
}

// Parts of characters would all be the same key, and JSON's readers keep one.
TEST_F(TextFormTest, EachOfTheLikeliestTokensHasAKeyOfItsOwn) {
  testing::FakeFile file;
  for (Token token = 0; token < 12; ++token) {
    file.pieces[token] = {'\xF0', static_cast<char>(0x90 + token)};
  }
  start({}, file);
  Json asked = body(Json::array({0, 1}));
  asked["logprobs"] = 5;
  const Json top = answer(asked)["choices"][0]["logprobs"]["top_logprobs"];
  ASSERT_FALSE(top.empty());
  for (const Json& likeliest : top) {
    EXPECT_GE(likeliest.size(), 5U);
    EXPECT_LE(likeliest.size(), 6U) << "and the chosen one";
    for (const auto& [key, logprob] : likeliest.items()) {
      EXPECT_EQ(key.find("bytes:\\xf0\\x9"), 0U) << key;
    }
  }
}

TEST_F(TextFormTest, NoLogprobIsToldOfATokenThatAStopTextTookAllOf) {
  start();
  Json asked = body("abc");
  const std::string text = answer(asked)["choices"][0]["text"].get<std::string>();
  const std::string stop = text.substr(3, 2);
  const std::size_t left = text.find(stop);
  asked["stop"] = stop;
  const Json whole = answer(asked)["choices"][0];
  EXPECT_EQ(whole["text"], text.substr(0, left));
  const Json tokens = whole["logprobs"].is_null() ? Json::array() : whole["logprobs"]["tokens"];
  EXPECT_EQ(tokens.size(), left) << "one letter a token";
  asked["stream"] = true;
  std::size_t told = 0;
  for (const Json& chunk : events(post("/v1/completions", asked))) {
    const Json& logprobs = chunk["choices"][0]["logprobs"];
    if (!logprobs.is_null()) told += logprobs["tokens"].size();
  }
  EXPECT_EQ(told, left);
}

TEST_F(TextFormTest, SeveralPromptsHaveAnAnswerEach) {
  start();
  const Json both = answer(body(Json::array({"abc", "cba"})));
  ASSERT_EQ(both["choices"].size(), 2U);
  EXPECT_EQ(both["choices"][0]["text"], answer(body("abc"))["choices"][0]["text"]);
  EXPECT_EQ(both["choices"][1]["text"], answer(body("cba"))["choices"][0]["text"]);
  EXPECT_EQ(both["choices"][1]["index"], 1);
}

TEST_F(TextFormTest, AnswersShareTheirRequestUntilEachIsStarted) {
  Json asked = body(Json::array({Json::array({"a", "b"}), Json::array({1, 2})}));
  asked["n"] = 3;
  const Result<CompletionTask> task = read_text_task(asked, ServerOptions());
  ASSERT_TRUE(task.ok()) << task.status().message();
  const AnswerRequests& requests = task->requests;
  ASSERT_EQ(requests.size(), 6U);
  EXPECT_EQ(requests.prompts.size(), 2U);
  EXPECT_TRUE(requests.shared.prompt.empty()) << "it would be copied for nothing";
  using Parts = std::vector<PromptPart>;
  EXPECT_EQ(requests.of(2).prompt, (Parts{std::string("a"), std::string("b")}));
  EXPECT_EQ(requests.of(3).prompt, (Parts{Token{1}, Token{2}}));
  EXPECT_EQ(requests.of(3).seed, 3);
  EXPECT_EQ(requests.of(5).seed, 5);
  asked.erase("seed");
  const Result<CompletionTask> by_chance = read_text_task(asked, ServerOptions());
  EXPECT_NE(by_chance->requests.of(0).seed, by_chance->requests.of(3).seed) << "of each prompt";
}

TEST_F(TextFormTest, APromptHasAMostOfTokens) {
  start();
  Json asked = body(std::vector<int>(kMaxListed + 1, 1));
  const Json error = answer(asked)["error"];
  EXPECT_EQ(error["param"], "prompt");
  EXPECT_EQ(error["message"], "prompt holds 1048577 texts and token ids, at most 1048576 can be");
  asked["prompt"] = Json::array({Json::array({1}), asked["prompt"]});
  EXPECT_EQ(answer(asked)["error"]["param"], "prompt");
}

TEST_F(TextFormTest, EachPromptCountsOnceHoweverManyAnswersItHas) {
  start();
  const auto prompt_tokens = [this](const Json& prompt, int n) {
    Json asked = body(prompt);
    asked["n"] = n;
    return answer(asked)["usage"]["prompt_tokens"].get<int>();
  };
  const int both = prompt_tokens("abc", 1) + prompt_tokens("cbabc", 1);
  EXPECT_EQ(prompt_tokens(Json::array({"abc", "cbabc"}), 2), both);
}

TEST_F(TextFormTest, TokensAndWhoGuessedThemAreToldWhereAskedFor) {
  start();
  Json asked = body("abc");
  EXPECT_FALSE(answer(asked).contains("tokens"));
  asked["token_sources"] = true;
  const Json whole = answer(asked);
  EXPECT_EQ(whole["tokens"].size(), 8U);
  asked["stream"] = true;
  Json streamed = Json::array();
  for (const Json& chunk : events(post("/v1/completions", asked))) {
    for (const Json& token : chunk.value("tokens", Json::array())) streamed.push_back(token);
  }
  ASSERT_EQ(streamed.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(streamed[i]["id"], whole["tokens"][i]["id"]);
}

TEST_F(TextFormTest, EachChunkHasTheTimingsSoFarWhereTheyAreAskedFor) {
  start();
  Json asked = body("abc");
  asked.update({{"stream", true}, {"token_sources", true}});
  for (const Json& chunk : events(post("/v1/completions", asked))) {
    EXPECT_EQ(chunk.contains("timings"), !chunk["choices"][0]["finish_reason"].is_null());
  }
  asked["timings_per_token"] = true;
  std::size_t told = 0;
  for (const Json& chunk : events(post("/v1/completions", asked))) {
    told += chunk.value("tokens", Json::array()).size();
    ASSERT_TRUE(chunk.contains("timings")) << chunk;
    EXPECT_EQ(chunk["timings"]["predicted_n"], told);
  }
  EXPECT_EQ(told, 8U);
}

TEST_F(TextFormTest, TokenIdsAreAPrompt) {
  start({}, {});
  EXPECT_EQ(answer(body(Json::array({0, 1, 2})))["choices"][0]["text"],
            answer(body("abc"))["choices"][0]["text"]);
}

TEST_F(TextFormTest, WhatIsNotDoneIsRefusedByName) {
  start();
  for (const auto& [field, value] : std::vector<std::pair<std::string, Json>>{
           {"echo", true}, {"suffix", "end"}, {"best_of", 4}, {"prompt", Json::array()}}) {
    Json asked = body("abc");
    asked[field] = value;
    const HttpReply reply = post("/v1/completions", asked);
    EXPECT_EQ(reply.status, 400) << field;
    EXPECT_EQ(object(reply)["error"]["param"], field);
  }
  Json missing = body("abc");
  missing.erase("prompt");
  EXPECT_EQ(object(post("/v1/completions", missing))["error"]["param"], "prompt");
}

TEST_F(TextFormTest, MoreAnswersThanCanBeAreRefused) {
  start({}, {.chat = true}, {.slots = 4, .max_queue = 124});
  std::vector<std::string> prompts(9, "a");
  Json asked = body(prompts);
  asked["n"] = 15;
  EXPECT_EQ(object(post("/v1/completions", asked))["error"]["param"], "n");
  prompts.resize(129, "a");
  EXPECT_EQ(object(post("/v1/completions", body(prompts)))["error"]["param"], "prompt");
  prompts.resize(128);
  const HttpReply all = post("/v1/completions", body(prompts));
  EXPECT_EQ(all.status, 200);
  EXPECT_EQ(object(all)["choices"].size(), 128U);
}

}  // namespace
}  // namespace outrider::http
