// Each option: its default, that it reaches the runtime's request, or how it is refused or warned
// of.
#include "rpcserver/request_options.h"

#include <gtest/gtest.h>

#include <cmath>

namespace outrider::rpcserver {
namespace {

using json::Json;
using Texts = std::vector<std::string>;

constexpr std::int64_t kContext = 2048;

Result<RequestOptions> parse(const std::string& text, const RequestDefaults& defaults = {}) {
  const json::Parsed parsed = json::parse(text);
  EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.error;
  return parse_request(*parsed.value, defaults);
}

// What the runtime is asked for when `text` is sent.
CompletionRequest asked(const std::string& text, const RequestDefaults& defaults = {}) {
  const Result<RequestOptions> parsed = parse(text, defaults);
  EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.status().message();
  return completion_request(*parsed, kContext);
}

std::string refused_field(const std::string& text) {
  const Result<RequestOptions> parsed = parse(text);
  return parsed.ok() ? "(accepted)" : parsed.status().field();
}

RequestDefaults defaults_of(const std::string& cmd) {
  const json::Parsed parsed = json::parse(cmd);
  JsonFields fields(*parsed.value, "", &kSeedDialect);
  Texts warnings;
  RequestDefaults defaults = take_defaults(fields, warnings);
  EXPECT_TRUE(fields.ok()) << fields.finish().message();
  return defaults;
}

TEST(RequestOptionsTest, TheDefaultsAreTheSeedsAndNotTodays) {
  const CompletionRequest r = asked("{}");
  EXPECT_EQ(r.sampling.temperature, 0.8f);
  EXPECT_EQ(r.sampling.top_k, 40);
  EXPECT_EQ(r.sampling.top_p, 0.95f);
  EXPECT_EQ(r.sampling.min_p, 0.0f);
  EXPECT_EQ(r.sampling.typical_p, 1.0f);
  EXPECT_EQ(r.sampling.repeat_last_n, 64);
  EXPECT_EQ(r.sampling.repeat_penalty, 1.1f);
  EXPECT_EQ(r.sampling.presence_penalty, 0.0f);
  EXPECT_EQ(r.sampling.frequency_penalty, 0.0f);
  EXPECT_EQ(r.sampling.mirostat, 0);
  EXPECT_EQ(r.sampling.mirostat_tau, 5.0f);
  EXPECT_EQ(r.sampling.mirostat_eta, 0.1f);
  EXPECT_TRUE(r.sampling.penalize_newline);
  EXPECT_FALSE(r.sampling.ignore_eos);
  EXPECT_TRUE(r.sampling.logit_bias.empty());
  EXPECT_EQ(r.sampling.grammar, "");
  EXPECT_EQ(r.max_tokens, -1);
  EXPECT_EQ(r.seed, -1);
  EXPECT_EQ(r.shift_keep, 0) << "a full context is shifted";
  EXPECT_EQ(r.logprobs, -1);
  EXPECT_TRUE(r.stop.empty());
  EXPECT_FALSE(r.speculative);
  ASSERT_EQ(r.prompt.size(), 1U);
  EXPECT_EQ(std::get<std::string>(r.prompt[0]), "");
  EXPECT_TRUE(validate(r.sampling).ok());
}

TEST(RequestOptionsTest, NullIsTheDefaultOfEveryOption) {
  const std::string text =
      R"({"prompt":null,"n_predict":null,"temperature":null,"top_k":null,"top_p":null,)"
      R"("tfs_z":null,"typical_p":null,"repeat_last_n":null,"repeat_penalty":null,)"
      R"("presence_penalty":null,"frequency_penalty":null,"mirostat":null,"mirostat_tau":null,)"
      R"("mirostat_eta":null,"penalize_nl":null,"n_keep":null,"seed":null,"grammar":null,)"
      R"("n_probs":null,"stream":null,"ignore_eos":null,"logit_bias":null,"stop":null,)"
      R"("n_beams":null,"__debug":null,"speculative":null,"stream_tokens":null})";
  const Result<RequestOptions> nulls = parse(text);
  const Result<RequestOptions> none = parse("{}");
  ASSERT_TRUE(nulls.ok());
  EXPECT_TRUE(nulls->warnings.empty()) << nulls->warnings[0];
  EXPECT_EQ(generation_settings(*nulls, kContext, "m", 1, true),
            generation_settings(*none, kContext, "m", 1, true));
}

TEST(RequestOptionsTest, EachOptionReachesTheRuntime) {
  const CompletionRequest r = asked(
      R"({"prompt":"Hello","n_predict":17,"temperature":0.5,"top_k":7,"top_p":0.5,)"
      R"("typical_p":0.25,"repeat_last_n":32,"repeat_penalty":1.5,"presence_penalty":0.75,)"
      R"("frequency_penalty":-0.5,"penalize_nl":false,"n_keep":5,"seed":42,"grammar":"root ::= 1",)"
      R"("n_probs":3,"ignore_eos":true,"logit_bias":[[3,-1.5],[4,false]],"stop":["a","b"]})");
  EXPECT_EQ(std::get<std::string>(r.prompt[0]), "Hello");
  EXPECT_EQ(r.max_tokens, 17);
  EXPECT_EQ(r.sampling.temperature, 0.5f);
  EXPECT_EQ(r.sampling.top_k, 7);
  EXPECT_EQ(r.sampling.top_p, 0.5f);
  EXPECT_EQ(r.sampling.typical_p, 0.25f);
  EXPECT_EQ(r.sampling.repeat_last_n, 32);
  EXPECT_EQ(r.sampling.repeat_penalty, 1.5f);
  EXPECT_EQ(r.sampling.presence_penalty, 0.75f);
  EXPECT_EQ(r.sampling.frequency_penalty, -0.5f);
  EXPECT_FALSE(r.sampling.penalize_newline);
  EXPECT_EQ(r.shift_keep, 5);
  EXPECT_EQ(r.seed, 42);
  EXPECT_EQ(r.sampling.grammar, "root ::= 1");
  EXPECT_EQ(r.logprobs, 3);
  EXPECT_TRUE(r.logprobs_after_sampler);
  EXPECT_TRUE(r.sampling.ignore_eos);
  ASSERT_EQ(r.sampling.logit_bias.size(), 2U);
  EXPECT_EQ(r.sampling.logit_bias[0].token, 3);
  EXPECT_EQ(r.sampling.logit_bias[0].bias, -1.5f);
  EXPECT_EQ(r.sampling.logit_bias[1].bias, -INFINITY);
  EXPECT_EQ(r.stop, (Texts{"a", "b"}));
  const CompletionRequest mirostat =
      asked(R"({"mirostat":2,"mirostat_tau":3.5,"mirostat_eta":0.25})");
  EXPECT_EQ(mirostat.sampling.mirostat, 2);
  EXPECT_EQ(mirostat.sampling.mirostat_tau, 3.5f);
  EXPECT_EQ(mirostat.sampling.mirostat_eta, 0.25f);
}

TEST(RequestOptionsTest, PromptsAndBiasesHaveAMost) {
  const auto field = [](const char* name, const Json& value) {
    return parse_request({{name, value}}, RequestDefaults()).status().field();
  };
  EXPECT_EQ(field("prompt", std::vector<int>(kMaxListed, 1)), "");
  EXPECT_EQ(field("prompt", std::vector<int>(kMaxListed + 1, 1)), "prompt");
  // Those that mean nothing count: each is a warning.
  EXPECT_EQ(field("logit_bias", std::vector<int>(SamplingOptions::kMaxBiases, 1)), "");
  EXPECT_EQ(field("logit_bias", std::vector<int>(SamplingOptions::kMaxBiases + 1, 1)),
            "logit_bias");
}

TEST(RequestOptionsTest, APromptIsAStringOrAnArrayOfStringsAndIds) {
  const CompletionRequest r = asked(R"({"prompt":["a",5,"b",7.0]})");
  ASSERT_EQ(r.prompt.size(), 4U);
  EXPECT_EQ(std::get<std::string>(r.prompt[0]), "a");
  EXPECT_EQ(std::get<Token>(r.prompt[1]), 5);
  EXPECT_EQ(std::get<Token>(r.prompt[3]), 7);
  EXPECT_EQ(parse(R"({"prompt":["a",5]})")->prompt_as_sent, Json::parse(R"(["a",5])"));
  for (const char* wrong : {R"({"prompt":5})", R"({"prompt":{}})", R"({"prompt":[null]})",
                            R"({"prompt":[-1]})", R"({"prompt":[1.5]})", R"({"prompt":[1e99]})",
                            R"({"prompt":true})", R"({"prompt":[["a"]]})"}) {
    EXPECT_EQ(refused_field(wrong), "prompt") << wrong;
  }
}

TEST(RequestOptionsTest, OldValuesMeanWhatTheyMeant) {
  EXPECT_EQ(asked(R"({"temperature":-1})").sampling.temperature, 0.0f);
  EXPECT_EQ(asked(R"({"top_p":1.5})").sampling.top_p, 1.0f);
  EXPECT_GT(asked(R"({"top_p":0})").sampling.top_p, 0.0f);
  EXPECT_LT(asked(R"({"top_p":-1})").sampling.top_p, 1e-30f);
  EXPECT_EQ(asked(R"({"typical_p":2})").sampling.typical_p, 1.0f);
  EXPECT_EQ(asked(R"({"top_k":-5})").sampling.top_k, -1);
  EXPECT_EQ(asked(R"({"repeat_last_n":-1})").sampling.repeat_last_n, kContext);
  EXPECT_EQ(asked(R"({"repeat_last_n":2147483647})").sampling.repeat_last_n,
            SamplingOptions::kMaxHistory);
  EXPECT_EQ(asked(R"({"n_predict":-2})").max_tokens, -1);
  EXPECT_EQ(asked(R"({"n_keep":-7})").shift_keep, -1);
  EXPECT_EQ(asked(R"({"n_probs":-1})").logprobs, -1);
  EXPECT_EQ(asked(R"({"seed":-1})").seed, -1);
  EXPECT_EQ(asked(R"({"seed":4294967295})").seed, -1) << "-1 in 32 bits";
  EXPECT_EQ(asked(R"({"seed":-2})").seed, 4294967294);
  EXPECT_EQ(asked(R"({"stop":"one"})").stop, (Texts{"one"}));
  EXPECT_EQ(asked(R"({"stop":["","a"]})").stop, (Texts{"a"}));
  EXPECT_EQ(asked(R"({"n_predict":5.0})").max_tokens, 5);
  for (const char* text :
       {R"({"temperature":-1})", R"({"top_p":0})", R"({"typical_p":-2})", R"({"repeat_last_n":-1})",
        R"({"repeat_last_n":2147483647})", R"({"temperature":1e-300})", R"({"mirostat":1})"}) {
    EXPECT_TRUE(validate(asked(text).sampling).ok()) << text;
  }
}

TEST(RequestOptionsTest, ZeroTokensAreAskedForAsOneSoThatThePromptIsRead) {
  EXPECT_EQ(asked(R"({"n_predict":0})").max_tokens, 1);
  EXPECT_EQ(asked(R"({"n_predict":0,"n_probs":5})").logprobs, -1);
}

TEST(RequestOptionsTest, WhatCannotBeHonouredIsRefusedByName) {
  EXPECT_EQ(refused_field(R"({"tfs_z":0.95})"), "tfs_z");
  EXPECT_EQ(refused_field(R"({"tfs_z":1.0})"), "(accepted)");
  EXPECT_EQ(refused_field(R"({"n_beams":2})"), "n_beams");
  EXPECT_EQ(refused_field(R"({"n_beams":0})"), "(accepted)");
  EXPECT_EQ(refused_field(R"({"mirostat":3})"), "mirostat");
  EXPECT_EQ(refused_field(R"({"repeat_penalty":0})"), "repeat_penalty");
  EXPECT_EQ(refused_field(R"({"repeat_penalty":1e-60})"), "repeat_penalty");
}

TEST(RequestOptionsTest, EveryOptionRefusesValuesOfAWrongKindByName) {
  for (const char* key :
       {"n_predict", "temperature", "top_k", "top_p", "tfs_z", "typical_p", "repeat_last_n",
        "repeat_penalty", "presence_penalty", "frequency_penalty", "mirostat", "mirostat_tau",
        "mirostat_eta", "n_keep", "seed", "n_probs", "n_beams"}) {
    for (const char* value : {"\"1\"", "true", "[]", "{}", "1e308", "-1e308"}) {
      EXPECT_EQ(refused_field(std::string("{\"") + key + "\":" + value + "}"), key) << value;
    }
  }
  for (const char* key : {"penalize_nl", "ignore_eos", "stream_tokens"}) {
    for (const char* value : {"\"true\"", "1", "[]", "{}"}) {
      EXPECT_EQ(refused_field(std::string("{\"") + key + "\":" + value + "}"), key) << value;
    }
  }
  for (const char* key : {"grammar"}) {
    for (const char* value : {"1", "true", "[]", "{}"}) {
      EXPECT_EQ(refused_field(std::string("{\"") + key + "\":" + value + "}"), key) << value;
    }
  }
  EXPECT_EQ(refused_field(R"({"stop":5})"), "stop");
  EXPECT_EQ(refused_field(R"({"stop":[5]})"), "stop");
  EXPECT_EQ(refused_field(R"({"logit_bias":{"5":1}})"), "logit_bias");
  EXPECT_EQ(refused_field(R"({"speculative":1})"), "speculative");
}

TEST(RequestOptionsTest, UnknownOptionsAreWarningsAndIgnoredOnesAreNot) {
  EXPECT_EQ(
      parse(R"({"slot_id":1,"cache_prompt":true,"min_p":0.1,"n_draft":3})")->warnings,
      (Texts{"slot_id is not known and has no effect",
             "cache_prompt is not known and has no effect", "min_p is not known and has no effect",
             "n_draft is not known and has no effect"}));
  EXPECT_TRUE(parse(R"({"stream":true,"__debug":{"any":1}})")->warnings.empty());
}

TEST(RequestOptionsTest, MoreProbabilitiesThanThereAreAreClampedWithAWarning) {
  const Result<RequestOptions> parsed = parse(R"({"n_probs":100})");
  EXPECT_EQ(completion_request(*parsed, kContext).logprobs, 20);
  ASSERT_EQ(parsed->warnings.size(), 1U);
  EXPECT_EQ(parsed->warnings[0], "n_probs is 100; 20 is the most there is, and is used");
}

TEST(RequestOptionsTest, ProbabilitiesAtTemperatureZeroAreThoseOfTheRow) {
  EXPECT_FALSE(asked(R"({"n_probs":2,"temperature":0})").logprobs_after_sampler);
  EXPECT_FALSE(asked(R"({"n_probs":2,"temperature":1e-300})").logprobs_after_sampler);
  EXPECT_TRUE(asked(R"({"n_probs":2,"temperature":0.01})").logprobs_after_sampler);
}

TEST(RequestOptionsTest, MirostatTakesThePlaceOfFiltersAndPenaltiesAndSaysSo) {
  const Result<RequestOptions> parsed = parse(R"({"mirostat":2,"top_k":5,"frequency_penalty":1})");
  const CompletionRequest r = completion_request(*parsed, kContext);
  EXPECT_EQ(r.sampling.mirostat, 2);
  EXPECT_EQ(r.sampling.repeat_penalty, 1.0f);
  EXPECT_TRUE(validate(r.sampling).ok());
  ASSERT_EQ(parsed->warnings.size(), 1U);
  EXPECT_NE(parsed->warnings[0].find("no effect with mirostat"), std::string::npos);
  EXPECT_TRUE(parse(R"({"mirostat":2,"repeat_penalty":1})")->warnings.empty());
  const Result<RequestOptions> greedy = parse(R"({"mirostat":2,"temperature":0})");
  EXPECT_EQ(completion_request(*greedy, kContext).sampling.mirostat, 0);
  EXPECT_EQ(greedy->warnings, (Texts{"mirostat has no effect at temperature 0"}));
}

TEST(RequestOptionsTest, PairsOfLogitBiasThatMeanNothingAreWarnings) {
  const Result<RequestOptions> parsed =
      parse(R"({"logit_bias":[[1,2],[1],"x",[-1,1],[2,true],[3,"a"],[4,1e300],[5,0.5]]})");
  ASSERT_TRUE(parsed.ok());
  ASSERT_EQ(parsed->request.sampling.logit_bias.size(), 2U);
  EXPECT_EQ(parsed->request.sampling.logit_bias[1].token, 5);
  EXPECT_EQ(parsed->warnings.size(), 6U);
  EXPECT_EQ(parsed->warnings[0],
            "logit_bias[1] is not [token id, number or false] and has no effect");
}

TEST(RequestOptionsTest, SpeculationIsOffUnlessAskedForByTheRequestOrTheCmd) {
  EXPECT_FALSE(asked("{}").speculative);
  EXPECT_EQ(asked("{}").width, 1);
  EXPECT_TRUE(asked(R"({"speculative":true})").speculative);
  EXPECT_EQ(asked(R"({"speculative":true})").width, kAutoWidth);
  const RequestDefaults on = defaults_of(R"({"speculative":true,"n_draft":7})");
  EXPECT_TRUE(asked("{}", on).speculative);
  EXPECT_EQ(asked("{}", on).width, 8);
  EXPECT_FALSE(asked(R"({"speculative":false})", on).speculative);
}

TEST(RequestOptionsTest, SpeculationTakesAnObjectThatSaysHow) {
  const CompletionRequest r = asked(
      R"({"speculative":{"drafters":["draft-model"],"rule":"rejection","width":6,"branches":3,)"
      R"("split_p":0.5,"draft_p_min":0.25,"draft_p_ratio":2}})");
  EXPECT_TRUE(r.speculative);
  EXPECT_EQ(to_string(r.drafters), "draft-model");
  EXPECT_EQ(r.rule, AcceptanceRule::kRejection);
  EXPECT_EQ(r.width, 6);
  EXPECT_EQ(r.draft.branches, 3);
  EXPECT_EQ(r.draft.split_p, 0.5f);
  EXPECT_EQ(r.draft.p_min, 0.25f);
  EXPECT_EQ(r.draft.p_ratio, 2.0f);
  EXPECT_EQ(refused_field(R"({"speculative":{"width":0}})"), "speculative.width");
  EXPECT_EQ(refused_field(R"({"speculative":{"width":65}})"), "speculative.width");
  EXPECT_EQ(refused_field(R"({"speculative":{"rule":"lucky"}})"), "speculative.rule");
  EXPECT_EQ(refused_field(R"({"speculative":{"split_p":1.5}})"), "speculative.split_p");
  EXPECT_EQ(refused_field(R"({"speculative":{"drafters":"x"}})"), "speculative.drafters");
  EXPECT_EQ(refused_field(R"({"speculative":{"drafters":[1]}})"), "speculative.drafters");
  EXPECT_EQ(refused_field(R"({"speculative":{"drafters":["oracle"]}})"), "speculative.drafters");
  EXPECT_EQ(
      to_string(asked(R"({"speculative":{"drafters":["suffix/draft-model","recycle"]}})").drafters),
      "suffix/draft-model,recycle");
  EXPECT_EQ(refused_field(R"({"speculative":{"rule":"block","branches":2}})"),
            "speculative.branches");
  EXPECT_EQ(parse(R"({"speculative":{"depth":3}})")->warnings,
            (Texts{"speculative.depth is not known and has no effect"}));
}

TEST(RequestOptionsTest, TheCmdsOptionsAreTheDefaultsOfEveryRequest) {
  const RequestDefaults d = defaults_of(
      R"({"model":"m","temp":0.25,"top_k":3,"stop":["x"],"speculative":{"width":6,"branches":2}})");
  EXPECT_EQ(asked("{}", d).sampling.temperature, 0.25f);
  EXPECT_EQ(asked(R"({"temperature":null})", d).sampling.temperature, 0.25f);
  EXPECT_EQ(asked(R"({"temperature":1.5})", d).sampling.temperature, 1.5f);
  EXPECT_EQ(asked("{}", d).stop, (Texts{"x"}));
  EXPECT_EQ(asked(R"({"stop":[]})", d).stop, Texts());
  EXPECT_EQ(asked(R"({"speculative":true})", d).width, 6);
  EXPECT_EQ(asked(R"({"speculative":{"width":3}})", d).width, 3);
  EXPECT_EQ(asked(R"({"speculative":{"width":3}})", d).draft.branches, 2);
  RequestDefaults later = d;
  later.update(defaults_of(R"({"top_k":9})"));
  EXPECT_EQ(asked("{}", later).sampling.top_k, 9);
  EXPECT_EQ(asked("{}", later).sampling.temperature, 0.25f);
}

TEST(RequestOptionsTest, TheRuntimesRefusalsAreSpelledAsThisApiDoes) {
  const Status top_p = refusal_of(wrong_value("top_p", "7", "from 0 to 1"));
  EXPECT_EQ(top_p.field(), "top_p");
  EXPECT_EQ(top_p.message(), "top_p is 7, but must be from 0 to 1");
  const Status two = refusal_of(refused("ignore_eos", "cannot be used with grammar"));
  EXPECT_EQ(two.field(), "ignore_eos");
  EXPECT_EQ(two.message(), "ignore_eos cannot be used with grammar");
  EXPECT_EQ(refusal_of(refused("mirostat_lr", "is odd")).field(), "mirostat_eta");
  EXPECT_EQ(refusal_of(refused("typical", "cannot be used with mirostat 2")).message(),
            "typical_p cannot be used with mirostat 2");
  EXPECT_EQ(refusal_of(not_found("no model is loaded")).field(), "");
}

}  // namespace
}  // namespace outrider::rpcserver
