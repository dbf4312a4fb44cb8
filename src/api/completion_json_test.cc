#include "api/completion_json.h"

#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace outrider::api {
namespace {

using json::Json;

Completion full_completion() {
  Completion c;
  c.id = 7;
  c.text = "Hello";
  c.tokens = {5, 6, 7, 8, 9};
  c.finish = FinishReason::kStop;
  c.stop = "END";
  c.seed = 42;
  c.prompt_tokens = 11;
  c.timings = {.prompt_ms = 20.0,
               .predicted_ms = 50.0,
               .first_token_ms = 21.0,
               .prompt_tokens_evaluated = 10,
               .predicted_after_first = 4};
  c.speculation.enabled = true;
  c.speculation.steps = 2;
  c.speculation.drafted = 6;
  c.speculation.accepted = 3;
  c.speculation.emitted = 5;
  c.speculation.draft_ms = 1.0;
  c.speculation.verify_ms = 2.0;
  c.speculation.sample_ms = 3.0;
  c.speculation.plan_ms = 4.0;
  c.speculation.drafters.push_back({.name = "draft-model",
                                    .calls = 2,
                                    .drafts = 2,
                                    .accepted_drafts = 1,
                                    .drafted = 6,
                                    .accepted = 3,
                                    .foregone = 1,
                                    .draft_ms = 1.0,
                                    .accept_ms = 0.5});
  return c;
}

Exactness exact() {
  return {.kind = Exactness::Kind::kExact, .width = 16, .coverage = "widths 2-16"};
}

KernelUse own() { return {.own = true, .instruction_set = "avx2"}; }

// Every key of `value` and what kind it has, as "key:kind key:kind".
std::string shape(const Json& value) {
  std::string text;
  for (const auto& [key, field] : value.items()) {
    if (!text.empty()) text += ' ';
    text += key + ":" + std::string(json::kind(field));
  }
  return text;
}

TEST(CompletionJson, HasEveryFieldOfTheContractInItsOrder) {
  const Json result = completion_json(full_completion(), exact(), own());
  EXPECT_EQ(
      shape(result),
      "text:a string tokens:an array seed:a number finish_reason:a string stop:a string "
      "logprobs:null usage:an object timings:an object speculation:an object kernels:a string "
      "kernels_reason:null");
  EXPECT_EQ(result["kernels"], "own");
  EXPECT_EQ(shape(result["usage"]),
            "prompt_tokens:a number cached_tokens:a number completion_tokens:a number");
  EXPECT_EQ(shape(result["timings"]),
            "prompt_ms:a number prompt_per_second:a number predicted_ms:a number "
            "predicted_per_second:a number first_token_ms:a number");
  EXPECT_EQ(shape(result["speculation"]),
            "enabled:true or false rule:a string exactness:a string exactness_coverage:a string "
            "exactness_reason:null reason:null steps:a number drafted:a number accepted:a number "
            "emitted:a number tokens_per_step:a number acceptance_rate:a number "
            "draft_prompt_ms:a number draft_ms:a number verify_ms:a number sample_ms:a number "
            "plan_ms:a number plain_ms:a number drafters:an object");
  EXPECT_EQ(shape(result["speculation"]["drafters"]), "draft-model:an object");
  EXPECT_EQ(shape(result["speculation"]["drafters"]["draft-model"]),
            "calls:a number drafts:a number accepted_drafts:a number drafted:a number "
            "accepted:a number acceptance_rate:a number foregone:a number draft_ms:a number "
            "accept_ms:a number");
}

TEST(CompletionJson, CarriesTheNumbersAndTheirRatios) {
  const Json result = completion_json(full_completion(), exact(), own());
  EXPECT_EQ(result["tokens"], Json({5, 6, 7, 8, 9}));
  EXPECT_EQ(result["seed"], 42);
  EXPECT_EQ(result["finish_reason"], "stop");
  EXPECT_EQ(result["stop"], "END");
  EXPECT_EQ(result["usage"]["prompt_tokens"], 11);
  EXPECT_EQ(result["usage"]["completion_tokens"], 5);
  EXPECT_DOUBLE_EQ(result["timings"]["prompt_per_second"].get<double>(), 500.0);
  EXPECT_DOUBLE_EQ(result["timings"]["predicted_per_second"].get<double>(), 80.0);
  EXPECT_DOUBLE_EQ(result["speculation"]["tokens_per_step"].get<double>(), 2.5);
  EXPECT_DOUBLE_EQ(result["speculation"]["acceptance_rate"].get<double>(), 0.5);
  EXPECT_EQ(result["speculation"]["rule"], "coupled");
  EXPECT_EQ(result["speculation"]["exactness"], "exact");
  const Json& drafter = result["speculation"]["drafters"]["draft-model"];
  EXPECT_EQ(drafter["accepted_drafts"], 1);
  EXPECT_EQ(drafter["foregone"], 1);
  EXPECT_DOUBLE_EQ(drafter["acceptance_rate"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(drafter["accept_ms"].get<double>(), 0.5);
}

TEST(CompletionJson, SpeculationAloneIsThatOfTheResult) {
  CompletionResult result;
  result.completion = full_completion();
  result.exactness = exact();
  const Json speculation = speculation_json(result);
  EXPECT_EQ(speculation, result_json(result)["speculation"]);
  EXPECT_EQ(speculation, speculation_json(result.completion.speculation, exact()));
  EXPECT_FALSE(speculation.contains("remembered"));
  result.remembered = {.name_space = "a", .tokens = 3, .reason = {}};
  EXPECT_EQ(speculation_json(result)["remembered"]["tokens"], 3);
  EXPECT_EQ(speculation_json(result), result_json(result)["speculation"]);
}

TEST(CompletionJson, AGuessedTextByARuleThatDrawsIsDistributional) {
  Completion c = full_completion();
  c.speculation.rule = AcceptanceRule::kRejection;
  const Json speculation = completion_json(c, exact(), own())["speculation"];
  EXPECT_EQ(speculation["rule"], "rejection");
  EXPECT_EQ(speculation["exactness"], "distributional");
  EXPECT_EQ(speculation["exactness_reason"],
            "the rule rejection keeps the distribution, not the text of plain decoding");
  EXPECT_EQ(speculation["exactness_coverage"], "widths 2-16");
}

TEST(CompletionJson, WhatWasNotMeasuredIsNullNotZero) {
  Completion c;
  c.finish = FinishReason::kLength;
  c.speculation.reason = "no draft model was given";
  const Json result = completion_json(c, Exactness(), KernelUse{.reason = "asked for"});
  EXPECT_EQ(result["text"], "");
  EXPECT_EQ(result["tokens"], Json::array());
  EXPECT_TRUE(result["stop"].is_null());
  EXPECT_TRUE(result["timings"]["prompt_per_second"].is_null());
  EXPECT_TRUE(result["timings"]["predicted_per_second"].is_null());
  EXPECT_TRUE(result["speculation"]["tokens_per_step"].is_null());
  EXPECT_TRUE(result["speculation"]["acceptance_rate"].is_null());
  EXPECT_EQ(result["speculation"]["reason"], "no draft model was given");
  EXPECT_EQ(result["speculation"]["enabled"], false);
  EXPECT_EQ(result["speculation"]["drafters"], Json::object());
  EXPECT_EQ(result["speculation"]["exactness"], "distributional");
  EXPECT_EQ(result["kernels"], "stock");
  EXPECT_EQ(result["kernels_reason"], "asked for");
  EXPECT_FALSE(result.contains("error"));
}

TEST(CompletionJson, AllFinishReasonsHaveTheirContractNames) {
  const std::map<FinishReason, std::string> names = {{FinishReason::kStop, "stop"},
                                                     {FinishReason::kLength, "length"},
                                                     {FinishReason::kCancelled, "cancelled"},
                                                     {FinishReason::kError, "error"}};
  for (const auto& [reason, name] : names) {
    Completion c;
    c.finish = reason;
    EXPECT_EQ(completion_json(c, exact(), own())["finish_reason"], name);
  }
}

TEST(CompletionJson, LogprobsAreOneObjectATokenAndNullWhenNotAskedFor) {
  Completion c;
  EXPECT_TRUE(completion_json(c, exact(), own())["logprobs"].is_null());
  c.has_logprobs = true;
  EXPECT_EQ(completion_json(c, exact(), own())["logprobs"], Json::array());
  TokenLogprob token;
  token.chosen = {.id = 5, .text = "a", .logprob = -1.5};
  token.top.push_back(token.chosen);
  token.top.push_back({.id = 7, .text = "b", .logprob = -INFINITY});
  c.logprobs.push_back(token);
  EXPECT_EQ(json::encode(completion_json(c, exact(), own())["logprobs"]),
            R"([{"id":5,"token":"a","bytes":[97],"logprob":-1.5,"top_logprobs":[{"id":5,)"
            R"("token":"a","bytes":[97],"logprob":-1.5},{"id":7,"token":"b","bytes":[98],)"
            R"("logprob":null}]}])");
}

TEST(CompletionJson, LogprobsKeepTheBytesOfPartsOfCharacters) {
  Completion c;
  c.has_logprobs = true;
  for (const std::string part : {"\xe6\x97", "\xa5"}) {  // "日" in two tokens
    TokenLogprob token;
    token.chosen = {.id = 5, .text = part, .logprob = -1.0};
    token.top.push_back(token.chosen);
    c.logprobs.push_back(token);
  }
  c.logprobs.push_back({.chosen = {.id = 2, .text = "", .logprob = -1.0}, .top = {}});
  const json::Parsed parsed =
      json::parse(json::encode(completion_json(c, exact(), own())["logprobs"]));
  ASSERT_TRUE(parsed.ok());
  std::string text;
  for (const Json& token : *parsed.value) {
    if (token["bytes"].is_null()) continue;
    EXPECT_EQ(token["bytes"], token["top_logprobs"][0]["bytes"]);
    for (const Json& byte : token["bytes"]) text += static_cast<char>(byte.get<int>());
  }
  EXPECT_EQ(text, "日");
  EXPECT_EQ((*parsed.value)[0]["bytes"], Json({0xe6, 0x97}));
  EXPECT_TRUE((*parsed.value)[2]["bytes"].is_null()) << "a control token says nothing";
}

TEST(CompletionJson, AFailureSaysWhatFailed) {
  Completion c;
  c.finish = FinishReason::kError;
  c.error = resource_exhausted("no cells are left");
  const Json result = completion_json(c, exact(), own());
  EXPECT_EQ(result["error"]["code"], "resource_exhausted");
  EXPECT_EQ(result["error"]["message"], "no cells are left");
}

TEST(CompletionJson, InvalidUtf8InTheTextStillEncodes) {
  Completion c;
  c.text = "a\xC3";
  EXPECT_EQ(json::encode(completion_json(c, exact(), own())["text"]), "\"a\xEF\xBF\xBD\"");
}

TEST(CompletionJson, LargeSeedsKeepAllTheirDigits) {
  Completion c;
  c.seed = 18446744073709551615ULL;
  EXPECT_EQ(json::encode(completion_json(c, exact(), own())["seed"]), "18446744073709551615");
}

}  // namespace
}  // namespace outrider::api
