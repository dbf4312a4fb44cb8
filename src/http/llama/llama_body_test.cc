// What llama-server's clients may send to /completion.
#include "http/llama/llama_body.h"

#include "http/fixture_test.h"

namespace outrider::http {
namespace {

using json::Json;

class LlamaBodyTest : public ServerTest {
 protected:
  Json completed(const Json& asked) {
    const HttpReply reply = post("/completion", asked);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return object(reply);
  }
  std::string field_of_error(const std::string& field, const Json& value, int status = 400) {
    Json asked = {{"prompt", "abc"}, {"n_predict", 4}};
    asked[field] = value;
    const HttpReply reply = post("/completion", asked);
    EXPECT_EQ(reply.status, status) << reply.body;
    return object(reply)["error"].value("param", "");
  }
};

TEST_F(LlamaBodyTest, APromptMayBeTextIdsBothOrSeveralOfThese) {
  start({}, {});
  const auto prompts = [this](const Json& prompt) {
    const Json answer = completed({{"prompt", prompt}, {"n_predict", 2}, {"temperature", 0}});
    std::vector<std::string> list;
    if (answer.is_object()) return std::vector<std::string>{answer["prompt"]};
    for (const Json& one : answer) list.push_back(one["prompt"]);
    return list;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(prompts("abc"), Texts{"abc"});
  EXPECT_EQ(prompts({0, 1, 2}), Texts{"abc"});
  EXPECT_EQ(prompts({0, "bc"}), Texts{"abc"});
  EXPECT_EQ(prompts({"a", 1, "c"}), Texts{"abc"});
  EXPECT_EQ(prompts({{"prompt_string", "abc"}}), Texts{"abc"});
  EXPECT_EQ(prompts(Json::array({"ab", "cd"})), (Texts{"ab", "cd"}));
  EXPECT_EQ(prompts(Json::array({Json::array({0, 1}), "cd"})), (Texts{"ab", "cd"}));
  EXPECT_EQ(prompts(Json::array({Json{{"prompt_string", "ab"}}, Json::array({2, "d"})})),
            (Texts{"ab", "cd"}));
  EXPECT_EQ(prompts(Json::array({"abc"})), Texts{"abc"});
}

TEST_F(LlamaBodyTest, SeveralAnswersAreAnArrayOrTellTheirIndexInAStream) {
  start({}, {});
  Json asked = {
      {"prompt", Json::array({"ab", "cd"})}, {"n_predict", 3}, {"n_cmpl", 2}, {"seed", 5}};
  const Json list = completed(asked);
  ASSERT_EQ(list.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(list[i]["index"], i);
    EXPECT_EQ(list[i]["generation_settings"]["seed"], 5 + i % 2);
  }
  asked["stream"] = true;
  std::vector<std::string> texts(4);
  for (const Json& event : events(post("/completion", asked))) {
    texts[event["index"].get<std::size_t>()] += event["content"].get<std::string>();
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(list[i]["content"], texts[i]);
}

TEST_F(LlamaBodyTest, BiasesMayNameTextsWhoseTokensAllHaveThem) {
  start({}, {});
  const auto biases = [this](const Json& given) {
    return completed({{"prompt", "abc"},
                      {"n_predict", 1},
                      {"logit_bias", given}})["generation_settings"]["logit_bias"];
  };
  const Json wanted = Json::array({{{"token", 0}, {"bias", -2.0}}, {{"token", 1}, {"bias", -2.0}}});
  EXPECT_EQ(biases(Json::array({Json::array({"ab", -2})})), wanted);
  EXPECT_EQ(biases({{"ab", -2}}), wanted);
  EXPECT_EQ(biases({{"0", -2}, {"1", -2}}), wanted);
  EXPECT_EQ(biases(Json::array({Json::array({4, false})})),
            Json::array({{{"token", 4}, {"bias", Json()}}}));
}

TEST_F(LlamaBodyTest, WhatIsWrongWithABiasIsNamedAsTheClientSentIt) {
  start({}, {});
  EXPECT_EQ(field_of_error("logit_bias", {{"ab", "much"}}), "logit_bias.ab");
  EXPECT_EQ(field_of_error("logit_bias", {{"ab", 1}, {"3", true}}), "logit_bias.3");
  const Json after_a_text = Json::array({Json::array({"abc", 1}), Json::array({"d", "much"})});
  EXPECT_EQ(field_of_error("logit_bias", after_a_text), "logit_bias[1]");
  EXPECT_EQ(field_of_error("logit_bias", Json::array({Json::array({"abc", 1}), 7})),
            "logit_bias[1]");
  for (const char* key : {"9999999999", "99999999999", "2147483648"}) {
    const HttpReply reply =
        post("/completion", {{"prompt", "abc"}, {"n_predict", 1}, {"logit_bias", {{key, 1}}}});
    EXPECT_EQ(reply.status, 400) << reply.body;
    const std::string message = object(reply)["error"]["message"];
    EXPECT_NE(message.find("logit_bias is '" + std::string(key) + "'"), std::string::npos)
        << message;
  }
}

TEST_F(LlamaBodyTest, APromptHasAMostOfTokensHoweverItIsGiven) {
  start({}, {});
  const std::size_t many = kMaxListed + 1;
  EXPECT_EQ(field_of_error("prompt", std::vector<int>(many, 1)), "prompt");
  EXPECT_EQ(field_of_error("prompt", std::string(many, 'a')), "prompt");
  const Json two = Json::array({"a", std::vector<int>(many, 1)});
  EXPECT_EQ(field_of_error("prompt", two), "prompt[1]");
}

TEST_F(LlamaBodyTest, BiasesHaveAMostWithTheTokensThatTextsStandFor) {
  start({}, {});
  const std::size_t most = SamplingOptions::kMaxBiases;
  const Json all_of_one(std::vector<Json>(most, Json::array({1, 0.5})));
  const Json answer = completed({{"prompt", "abc"}, {"n_predict", 1}, {"logit_bias", all_of_one}});
  EXPECT_EQ(answer["generation_settings"]["logit_bias"].size(), most);
  const Json too_many(std::vector<Json>(most + 1, Json::array({1, 0.5})));
  EXPECT_EQ(field_of_error("logit_bias", too_many), "logit_bias");
  EXPECT_EQ(field_of_error("logit_bias", {{std::string(most + 1, 'a'), 1}}), "logit_bias");
  const Json two_texts =
      Json::array({Json::array({std::string(most, 'a'), 1}), Json::array({"b", 1})});
  EXPECT_EQ(field_of_error("logit_bias", two_texts), "logit_bias");
}

TEST_F(LlamaBodyTest, WhatSeveralAnswersRepeatHasAMostForAllTogether) {
  start({}, {}, {.slots = 2, .max_queue = 200});
  const auto reply = [this](int n_prompts) {
    return post("/completion", {{"prompt", std::vector<std::string>(n_prompts, "abc")},
                                {"n_predict", 1},
                                {"grammar", "root ::= \"a\" # " + std::string(1 << 20, 'x')}});
  };
  EXPECT_EQ(reply(2).status, 200) << reply(2).body.substr(0, 200);
  const HttpReply refused = reply(33);
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("ask for fewer answers at once"), std::string::npos)
      << refused.body.substr(0, 200);
}

// Each is copied into every answer.
TEST_F(LlamaBodyTest, TheFieldsThatAreWishedOfAnAnswerHaveAMost) {
  start({}, {});
  EXPECT_EQ(field_of_error("response_fields", std::vector<std::string>(129, "generation_settings")),
            "response_fields");
  const Json answer = completed({{"prompt", "abc"},
                                 {"n_predict", 1},
                                 {"response_fields", std::vector<std::string>(128, "index")}});
  EXPECT_EQ(answer, Json({{"index", 0}}));
}

TEST_F(LlamaBodyTest, IgnoringTheEndIsShownAsBiasesOfItsTokens) {
  start({}, {.end = 11});
  const Json answer = completed({{"prompt", "abc"}, {"n_predict", 1}, {"ignore_eos", true}});
  EXPECT_EQ(answer["generation_settings"]["logit_bias"],
            Json::array({{{"token", 11}, {"bias", Json()}}}));
}

TEST_F(LlamaBodyTest, SamplersThatAreNotNamedAreOff) {
  start({}, {});
  const auto settings = [this](const Json& samplers) {
    return completed({{"prompt", "abc"},
                      {"n_predict", 1},
                      {"seed", 7},
                      {"top_k", 5},
                      {"top_p", 0.5},
                      {"min_p", 0.25},
                      {"temperature", 0.5},
                      {"samplers", samplers}})["generation_settings"];
  };
  const Json named = settings({"top_k", "min_p"});
  EXPECT_EQ(named["top_k"], 5);
  EXPECT_EQ(named["min_p"], 0.25);
  EXPECT_EQ(named["top_p"], 1.0);
  EXPECT_EQ(named["temperature"], 1.0);
  EXPECT_EQ(named["samplers"], Json::array({"top_k", "min_p"})) << "as they were asked for";
  EXPECT_EQ(settings("km"), named);
  EXPECT_EQ(settings(Json())["samplers"].size(), 9U) << "all, without being asked for";
  EXPECT_EQ(settings("edskypmxt")["top_p"], 0.5);
  EXPECT_EQ(field_of_error("samplers", {"temperature", "top_k"}), "samplers");
  EXPECT_EQ(field_of_error("samplers", {"top_z"}), "samplers");
}

TEST_F(LlamaBodyTest, WhatLlamaServerKnowsAndChangesNothingHereIsTaken) {
  start({}, {});
  const Json plain = {{"prompt", "abc"}, {"n_predict", 4}, {"seed", 1}};
  Json asked = plain;
  asked.update({{"cache_prompt", false},
                {"id_slot", 0},
                {"n_keep", 5},
                {"min_keep", 0},
                {"n_indent", 0},
                {"t_max_prompt_ms", 500},
                {"sse_ping_interval", 30},
                {"lora", Json::array()},
                {"adaptive_target", -1.0},
                {"stop", Json::array()},
                {"grammar", Json()}});
  EXPECT_EQ(completed(asked)["content"], completed(plain)["content"]);
}

TEST_F(LlamaBodyTest, ErrorsNameTheFieldAndWhatIsNotDoneIsRefused) {
  start({}, {});
  EXPECT_EQ(field_of_error("temperature", -1.0), "temperature");
  EXPECT_EQ(field_of_error("n_predict", "many"), "n_predict");
  EXPECT_EQ(field_of_error("tempature", 1.0), "tempature");
  EXPECT_EQ(field_of_error("lora", Json::array({{{"id", 0}, {"scale", 1.0}}})), "lora");
  EXPECT_EQ(field_of_error("min_keep", 3), "min_keep");
  EXPECT_EQ(field_of_error("n_indent", -2), "n_indent");
  EXPECT_EQ(field_of_error("sse_ping_interval", 1.5), "sse_ping_interval");
  EXPECT_EQ(field_of_error("prompt", Json()), "prompt");
  EXPECT_EQ(field_of_error("prompt", Json::array()), "prompt");
  EXPECT_EQ(field_of_error("prompt", {0, 99}), "prompt[1]");
  EXPECT_EQ(field_of_error("prompt", Json::array({"ab", 7.5})), "prompt[1]");
  EXPECT_EQ(field_of_error("prompt", Json::array({Json::array(), "ab"})), "prompt[0]");
  EXPECT_EQ(field_of_error("prompt", Json::array({"ab", true})), "prompt[1]");
  EXPECT_EQ(field_of_error("n", 17), "n");
  EXPECT_EQ(field_of_error("logit_bias", "much"), "logit_bias");
  const Json with_picture = {{"prompt_string", "abc"}, {"multimodal_data", {"aGk="}}};
  EXPECT_EQ(field_of_error("prompt", with_picture, 501), "prompt.multimodal_data");
}

TEST_F(LlamaBodyTest, APromptThatDoesNotFitIsAnErrorThatSaysSo) {
  start({}, {});
  const HttpReply reply = post("/completion", {{"prompt", std::string(300, 'a')}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("300"), std::string::npos) << reply.body;
}

}  // namespace
}  // namespace outrider::http
