// The API on real files, made tiny: what only a real sampler chain and vocabulary can show.
#include <gtest/gtest.h>
#include <rpcserver.h>

#include <cstdlib>
#include <string>

#include "backend/llama_loader.h"
#include "json/json.h"
#include "rpcserver/server.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_pair.h"

namespace outrider::rpcserver {
namespace {

using json::Json;

class SessionGgufTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new outrider::testing::TempDir();
    outrider::testing::TinyPairOptions pair;
    pair.noise = 0.02F;
    ASSERT_TRUE(
        outrider::testing::write_tiny_pair(dir_->file("t.gguf"), dir_->file("d.gguf"), pair).ok());
    LlamaLoaderOptions options;
    options.probe_budget_ms = 300;
    options.cache_folder = dir_->file("cache");
    loader_ = new LlamaLoader(std::move(options));
    server_ = new Server(*loader_);
    const Json cmd = {{"model", dir_->file("t.gguf")},
                      {"model_draft", dir_->file("d.gguf")},
                      {"n_ctx", 256},
                      {"n_threads", 1},
                      {"n_gpu_layers", 0}};
    ASSERT_EQ(server_->init(cmd.dump().c_str()), 0) << server_->poll_system_status();
  }
  static void TearDownTestSuite() {
    delete server_;
    delete loader_;
    delete dir_;
  }

  static Json parse(const std::string& text) { return *json::parse(text).value; }
  // Unless `changes` says otherwise: 40 tokens from seed 3.
  static Json complete(const Json& changes) {
    Json request = {{"prompt", "Once upon a time"}, {"n_predict", 40}, {"seed", 3}};
    request.update(changes);
    return parse(server_->get_completion(request.dump().c_str()));
  }

  static outrider::testing::TempDir* dir_;
  static LlamaLoader* loader_;
  static Server* server_;
};

outrider::testing::TempDir* SessionGgufTest::dir_ = nullptr;
LlamaLoader* SessionGgufTest::loader_ = nullptr;
Server* SessionGgufTest::server_ = nullptr;

TEST_F(SessionGgufTest, TokenizePutsTheBeginOfTextInFront) {
  const Json answer = parse(server_->tokenize(R"({"text":"ab<|im_end|>"})"));
  ASSERT_EQ(answer["success"], true) << answer;
  EXPECT_EQ(answer["length"], answer["tokens"].size());
  EXPECT_EQ(answer["tokens"].front(), "") << "a control token has no text";
  EXPECT_EQ(answer["tokens"].back(), "") << "the name of a special token is that token";
  std::string text;
  for (const Json& piece : answer["tokens"]) text += piece.get<std::string>();
  EXPECT_NE(text.find("ab"), std::string::npos);
}

TEST_F(SessionGgufTest, EveryOptionGivesTheSameTextWithSpeculation) {
  const Json choices[] = {{{"temperature", 0}},
                          {{"temperature", 1.2}, {"top_k", 0}},
                          {{"top_p", 0.5}, {"typical_p", 0.7}},
                          {{"top_p", 0}},
                          {{"repeat_penalty", 1.5}, {"penalize_nl", false}, {"repeat_last_n", -1}},
                          {{"presence_penalty", 1}, {"frequency_penalty", 0.5}},
                          {{"mirostat", 1}},
                          {{"mirostat", 2}, {"mirostat_tau", 3}},
                          {{"grammar", "root ::= [a-m ]+"}},
                          {{"logit_bias", {{100, 5.0}, {101, false}}}},
                          {{"ignore_eos", true}},
                          {{"n_predict", 400}, {"n_keep", 8}}};
  for (const Json& choice : choices) {
    Json fast_choice = choice;
    fast_choice["speculative"] = {{"width", 4}};
    const Json plain = complete(choice);
    const Json fast = complete(fast_choice);
    ASSERT_EQ(plain["status"], 200) << choice << plain;
    ASSERT_EQ(fast["status"], 200) << choice << fast;
    EXPECT_EQ(fast["speculation"]["enabled"], true) << fast["speculation"];
    EXPECT_EQ(plain["content"], fast["content"]) << choice;
    EXPECT_FALSE(plain["content"].get<std::string>().empty()) << choice;
  }
}

TEST_F(SessionGgufTest, AGrammarBindsAndOneThatCannotBeReadIsRefused) {
  const std::string text = complete({{"grammar", "root ::= \"yes\" | \"no\""}})["content"];
  EXPECT_TRUE(text == "yes" || text == "no") << text;
  const Json refused =
      parse(server_->async_completion_init(R"({"prompt":"a","grammar":"root ::= missing"})"));
  EXPECT_EQ(refused["success"], false);
  EXPECT_EQ(refused["field"], "grammar");
}

TEST_F(SessionGgufTest, ProbabilitiesAreThoseBehindTheSamplersOrOfTheRowAtTemperatureZero) {
  const Json behind = complete({{"n_probs", 20}, {"top_k", 3}, {"top_p", 1}});
  for (const Json& token : behind["completion_probabilities"]) {
    EXPECT_LE(token["probs"].size(), 3U) << "top_k leaves three";
    double sum = 0.0;
    for (const Json& candidate : token["probs"]) sum += candidate["prob"].get<double>();
    EXPECT_NEAR(sum, 1.0, 1e-6);
  }
  const Json row = complete({{"n_probs", 20}, {"temperature", 0}});
  double greatest = 0.0;
  for (const Json& token : row["completion_probabilities"]) {
    EXPECT_EQ(token["probs"].size(), 20U);
    greatest = std::max(greatest, token["probs"][0]["prob"].get<double>());
  }
  EXPECT_LT(greatest, 1.0) << "of the row, not of the one token that is left";
}

TEST_F(SessionGgufTest, ATokenBeyondTheVocabularyIsRefusedByName) {
  const Json bias =
      parse(server_->async_completion_init(R"({"prompt":"a","logit_bias":[[99999999,1]]})"));
  EXPECT_EQ(bias["success"], false);
  EXPECT_EQ(bias["field"], "logit_bias");
  EXPECT_EQ(complete({{"prompt", {99999999}}})["status"], 400);
}

TEST_F(SessionGgufTest, AShiftedTextIsTheSameHoweverItIsAskedFor) {
  const Json request = {{"n_predict", 600}, {"n_keep", -1}, {"temperature", 1}};
  const Json sync = complete(request);
  EXPECT_EQ(sync["tokens_predicted"], 600);
  EXPECT_EQ(sync["truncated"], true);
  EXPECT_LE(sync["tokens_cached"].get<int>(), 256);
}

// The C functions before init: the process's own server, which no other test here uses.
TEST(RpcserverTest, TheCFunctionsTakeNullAndNeverReturnIt) {
  const auto check = [](const char* answer) {
    ASSERT_NE(answer, nullptr);
    EXPECT_TRUE(json::parse(answer).ok()) << answer;
    rpc_free(answer);
  };
  deinit();
  EXPECT_EQ(init(nullptr), 1);
  init_async(nullptr, true);
  init_async("", false);
  for (const char* argument : {static_cast<const char*>(nullptr), "", "{}", "nonsense", "\xFF"}) {
    check(tokenize(argument));
    check(get_completion(argument));
    check(async_completion_init(argument));
    check(async_completion_poll(argument));
    check(async_completion_cancel(argument));
    check(poll_system_status());
  }
  deinit();
  deinit();
  rpc_free(nullptr);
  std::free(const_cast<char*>(poll_system_status()));
}

}  // namespace
}  // namespace outrider::rpcserver
