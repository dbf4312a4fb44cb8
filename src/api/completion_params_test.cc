// Every field of a completion: its edges, and that system.methods documents exactly what is read.
#include "api/completion_params.h"

#include <cmath>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "request/draft_defaults.h"

namespace outrider::api {
namespace {

using json::Json;

Result<CompletionRequest> read(const std::string& fields) {
  const json::Parsed parsed = json::parse("{\"prompt\":\"x\"" + fields + "}");
  EXPECT_TRUE(parsed.ok()) << fields << ": " << parsed.error;
  return read_completion(*parsed.value);
}

// The field that the error is about, or "" when there is none.
std::string wrong_field(const std::string& fields) {
  const Result<CompletionRequest> request = read(fields);
  return request.ok() ? "" : request.status().field();
}

TEST(ReadCompletion, DefaultsAreThoseOfTheCommand) {
  Result<CompletionRequest> request = read("");
  ASSERT_TRUE(request.ok());
  const CompletionRequest plain;
  EXPECT_EQ(std::get<std::string>(request->prompt.at(0)), "x");
  EXPECT_EQ(request->max_tokens, -1);
  EXPECT_EQ(request->sampling.top_k, plain.sampling.top_k);
  EXPECT_EQ(request->sampling.temperature, plain.sampling.temperature);
  EXPECT_EQ(request->seed, -1);
  EXPECT_TRUE(request->speculative);
  EXPECT_EQ(request->width, kAutoWidth);
  EXPECT_FALSE(request->shift_keep);
}

TEST(ReadCompletion, EveryFieldArrives) {
  Result<CompletionRequest> request = read(
      R"(,"max_tokens":9,"stop":["a","b"],"logprobs":2,"seed":5,"timeout_ms":7,"shift_keep":-1,
      "temp":0.5,"top_k":3,"top_p":0.9,"min_p":0.1,"typical":0.8,"top_n_sigma":2,
      "xtc_probability":0.3,"xtc_threshold":0.2,"dynatemp_range":0.4,"dynatemp_exp":2,
      "repeat_last_n":10,"repeat_penalty":1.5,"frequency_penalty":0.25,"presence_penalty":-0.5,
      "dry_multiplier":0.8,"dry_base":2,"dry_allowed_length":3,"dry_penalty_last_n":20,
      "dry_sequence_breaker":".","logit_bias":{"7":-1.5,"8":false},"grammar":"root ::= \"a\"",
      "grammar_trigger":["t"],"speculative":{"drafters":["draft-model"],"rule":"rejection",
      "width":6,"branches":2,"split_p":0.25,"draft_p_min":0.5,"draft_p_ratio":1.5})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->max_tokens, 9);
  EXPECT_EQ(request->stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request->logprobs, 2);
  EXPECT_EQ(request->seed, 5);
  EXPECT_EQ(request->timeout_ms, 7);
  EXPECT_EQ(request->shift_keep, -1);
  const SamplingOptions& o = request->sampling;
  EXPECT_EQ(o.temperature, 0.5f);
  EXPECT_EQ(o.top_k, 3);
  EXPECT_EQ(o.top_p, 0.9f);
  EXPECT_EQ(o.min_p, 0.1f);
  EXPECT_EQ(o.typical_p, 0.8f);
  EXPECT_EQ(o.top_n_sigma, 2.0f);
  EXPECT_EQ(o.xtc_probability, 0.3f);
  EXPECT_EQ(o.xtc_threshold, 0.2f);
  EXPECT_EQ(o.dynatemp_range, 0.4f);
  EXPECT_EQ(o.dynatemp_exponent, 2.0f);
  EXPECT_EQ(o.repeat_last_n, 10);
  EXPECT_EQ(o.repeat_penalty, 1.5f);
  EXPECT_EQ(o.frequency_penalty, 0.25f);
  EXPECT_EQ(o.presence_penalty, -0.5f);
  EXPECT_EQ(o.dry_multiplier, 0.8f);
  EXPECT_EQ(o.dry_base, 2.0f);
  EXPECT_EQ(o.dry_allowed_length, 3);
  EXPECT_EQ(o.dry_penalty_last_n, 20);
  EXPECT_EQ(o.dry_sequence_breakers, (std::vector<std::string>{"."}));
  ASSERT_EQ(o.logit_bias.size(), 2U);
  EXPECT_EQ(o.logit_bias[0].token, 7);
  EXPECT_EQ(o.logit_bias[0].bias, -1.5f);
  EXPECT_EQ(o.logit_bias[1].bias, -INFINITY);
  EXPECT_EQ(o.grammar, "root ::= \"a\"");
  EXPECT_EQ(o.grammar_triggers, (std::vector<std::string>{"t"}));
  EXPECT_TRUE(request->speculative);
  EXPECT_EQ(to_string(request->drafters), "draft-model");
  EXPECT_EQ(request->rule, AcceptanceRule::kRejection);
  EXPECT_EQ(request->width, 6);
  EXPECT_EQ(request->draft.branches, 2);
  EXPECT_EQ(request->draft.split_p, 0.25f);
  EXPECT_EQ(request->draft.p_min, 0.5f);
  EXPECT_EQ(request->draft.p_ratio, 1.5f);
}

TEST(ReadCompletion, WhatIsReadIsWhatIsDocumented) {
  std::set<std::string> documented;
  for (const Parameter& parameter : completion_parameters()) {
    EXPECT_TRUE(documented.emplace(parameter.name).second) << parameter.name << " twice";
    // A list of lists is right for no field at all: if it is read, it is refused by its name.
    const std::string name(parameter.name);
    const std::string prompt = name == "prompt" ? "" : "\"prompt\":\"x\",";
    const json::Parsed parsed = json::parse("{" + prompt + "\"" + name + "\":[[[]]]}");
    const Result<CompletionRequest> request = read_completion(*parsed.value);
    ASSERT_FALSE(request.ok()) << name;
    EXPECT_EQ(request.status().field().rfind(name, 0), 0U)
        << name << ": " << request.status().message();
    EXPECT_EQ(request.status().message().find("not a field"), std::string::npos) << name;
  }
  EXPECT_EQ(wrong_field(",\"no_such_field\":1"), "no_such_field");
}

TEST(ReadCompletion, NumbersAtTheirEdges) {
  struct Edge {
    const char* name;
    const char* right;
    const char* wrong;
  };
  const Edge edges[] = {{"max_tokens", "-1", "-2"},
                        {"logprobs", "20", "21"},
                        {"seed", "-1", "-2"},
                        {"timeout_ms", "0", "-1"},
                        {"shift_keep", "-1", "-2"},
                        {"temp", "0", "-0.1"},
                        {"top_k", "-1", "-2"},
                        {"top_p", "0", "1.1"},
                        {"min_p", "0", "1.1"},
                        {"typical", "0.1", "0"},
                        {"xtc_probability", "1", "1.1"},
                        {"xtc_threshold", "1", "-0.1"},
                        {"dynatemp_range", "0", "-1"},
                        {"dynatemp_exp", "0", "-1"},
                        {"mirostat", "2", "3"},
                        {"mirostat_ent", "0", "-1"},
                        {"mirostat_lr", "0", "-1"},
                        {"repeat_last_n", "0", "-1"},
                        {"repeat_penalty", "0.1", "0"},
                        {"dry_multiplier", "0", "-1"},
                        {"dry_base", "1", "0.9"},
                        {"dry_allowed_length", "0", "-1"},
                        {"dry_penalty_last_n", "0", "-1"},
                        {"width", "64", "65"},
                        {"branches", "64", "0"},
                        {"split_p", "1", "1.1"},
                        {"draft_p_min", "0", "-0.1"},
                        {"draft_p_ratio", "0", "-1"}};
  for (const Edge& edge : edges) {
    const std::string name = edge.name;
    EXPECT_EQ(wrong_field(",\"" + name + "\":" + edge.right), "") << name << " " << edge.right;
    EXPECT_EQ(wrong_field(",\"" + name + "\":" + edge.wrong), name) << edge.wrong;
    for (const char* never : {"\"1\"", "null", "true", "1e308", "-1e308", "[]"}) {
      EXPECT_EQ(wrong_field(",\"" + name + "\":" + never), name) << never;
    }
    for (const char* limit : {"9223372036854775807", "-9223372036854775808", "18446744073709551615",
                              "2147483648", "-2147483649"}) {
      const std::string field = wrong_field(",\"" + name + "\":" + limit);
      EXPECT_TRUE(field == name || field.empty()) << name << " " << limit << ": " << field;
    }
  }
}

TEST(ReadCompletion, PromptsAreTextsAndIds) {
  const Json params = {{"prompt", {"a", 5, "b"}}};
  Result<CompletionRequest> request = read_completion(params);
  ASSERT_TRUE(request.ok());
  ASSERT_EQ(request->prompt.size(), 3U);
  EXPECT_EQ(std::get<Token>(request->prompt[1]), 5);
  for (const char* text : {"[-1]", "[1.5]", "[null]", "[[]]", "[2147483648]"}) {
    const Json wrong = {{"prompt", *json::parse(text).value}};
    EXPECT_EQ(read_completion(wrong).status().field(), "prompt[0]") << text;
  }
  EXPECT_EQ(read_completion(Json::object()).status().field(), "prompt");
  EXPECT_EQ(wrong_field(R"(,"messages":[{"role":"user","content":"x"}])"), "prompt") << "both";
}

TEST(ReadCompletion, PromptsHaveAMostThatTheErrorNames) {
  Json params = {{"prompt", std::vector<Token>(kMaxListed, 1)}};
  EXPECT_TRUE(read_completion(params).ok());
  params["prompt"].push_back("a");
  const Status status = read_completion(params).status();
  EXPECT_EQ(status.field(), "prompt");
  EXPECT_EQ(status.message(), "prompt holds 1048577 texts and token ids, at most 1048576 can be");
}

TEST(ReadCompletion, MessagesNameTheirPlace) {
  const auto field = [](const char* messages) {
    const Json params = {{"messages", *json::parse(messages).value}};
    const Result<CompletionRequest> request = read_completion(params);
    return request.ok() ? "" : request.status().field();
  };
  EXPECT_EQ(field(R"([{"role":"user","content":"x"}])"), "");
  EXPECT_EQ(field("[]"), "messages");
  EXPECT_EQ(field("[1]"), "messages[0]");
  EXPECT_EQ(field(R"([{"role":"user","content":"x"},{"role":"judge","content":"x"}])"),
            "messages[1].role");
  EXPECT_EQ(field(R"([{"role":"user"}])"), "messages[0].content");
  EXPECT_EQ(field(R"([{"role":"user","content":"x","mood":1}])"), "messages[0].mood");
}

TEST(ReadCompletion, BiasesInBothForms) {
  Result<CompletionRequest> request = read(R"(,"logit_bias":[[3,1.5],[4,false]])");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->sampling.logit_bias.at(1).bias, -INFINITY);
  for (const char* wrong : {R"([[3]])", R"([3,1])", R"([["3",1]])", R"([[3,"1"]])", R"([[-1,1]])",
                            R"({"a":1})", R"({"-1":1})", R"({"3":true})", R"({"3":1e300})",
                            R"({"99999999999":1})", R"({"":1})", R"(3)"}) {
    EXPECT_EQ(wrong_field(std::string(",\"logit_bias\":") + wrong).rfind("logit_bias", 0), 0U)
        << wrong;
  }
}

TEST(ReadCompletion, BiasesHaveAMostThatTheErrorNames) {
  const std::vector<Json> biases(SamplingOptions::kMaxBiases, Json::array({7, 1}));
  Json params = {{"prompt", "a"}, {"logit_bias", biases}};
  EXPECT_EQ(read_completion(params)->sampling.logit_bias.size(), SamplingOptions::kMaxBiases);
  params["logit_bias"].push_back({8, 1});
  const Status status = read_completion(params).status();
  EXPECT_EQ(status.field(), "logit_bias");
  EXPECT_EQ(status.message(), "logit_bias holds 65537 biases, at most 65536 can be");
}

TEST(ReadCompletion, StopsAreNotEmptyAndNotTooMany) {
  EXPECT_EQ(wrong_field(R"(,"stop":"")"), "stop[0]");
  EXPECT_EQ(wrong_field(R"(,"stop":["a",""])"), "stop[1]");
  EXPECT_EQ(wrong_field(R"(,"stop":[])"), "");
  Json many = Json::array();
  for (std::size_t i = 0; i <= 64; ++i) many.push_back("s");
  EXPECT_EQ(wrong_field(",\"stop\":" + json::encode(many)), "stop");
  EXPECT_EQ(wrong_field(",\"stop\":\"" + std::string(4096 + 1, 's') + "\""), "stop[0]");
}

TEST(ReadCompletion, SequenceBreakersAreNotTooMany) {
  Json breakers(std::vector<std::string>(64, "b"));
  EXPECT_EQ(wrong_field(",\"dry_sequence_breaker\":" + json::encode(breakers)), "");
  breakers.push_back("b");
  EXPECT_EQ(wrong_field(",\"dry_sequence_breaker\":" + json::encode(breakers)),
            "dry_sequence_breaker");
}

TEST(ReadCompletion, SchemasAreObjectsOrTexts) {
  EXPECT_EQ(read(R"(,"json_schema":{"type":"string"})")->sampling.json_schema,
            R"({"type":"string"})");
  EXPECT_EQ(read(R"(,"json_schema":"{}")")->sampling.json_schema, "{}");
  EXPECT_EQ(wrong_field(R"(,"json_schema":"")"), "json_schema") << "would not constrain";
  EXPECT_EQ(wrong_field(R"(,"json_schema":true)"), "json_schema");
  EXPECT_EQ(wrong_field(R"(,"json_schema":{},"grammar":"root ::= \"a\"")"), "json_schema");
  EXPECT_EQ(wrong_field(R"(,"grammar_trigger":"a")"), "grammar_trigger");
}

TEST(ReadCompletion, SpeculationInsideOrBesideButNotBoth) {
  EXPECT_FALSE(read(R"(,"speculative":false)")->speculative);
  EXPECT_FALSE(read(R"(,"drafter":"none")")->speculative);
  EXPECT_EQ(to_string(read(R"(,"drafter":"draft-model")")->drafters), "draft-model");
  EXPECT_TRUE(read("")->drafters.empty()) << "the draft model";
  EXPECT_EQ(to_string(read(R"(,"drafter":"suffix/recycle,draft-model")")->drafters),
            "suffix/recycle,draft-model");
  EXPECT_EQ(
      to_string(read(R"(,"speculative":{"drafters":["suffix/recycle","draft-model"]})")->drafters),
      "suffix/recycle,draft-model");
  EXPECT_EQ(wrong_field(R"(,"drafter":"nobody")"), "drafter");
  EXPECT_EQ(wrong_field(R"(,"drafter":"")"), "drafter");
  EXPECT_EQ(read(R"(,"width":"auto")")->width, kAutoWidth);
  EXPECT_EQ(read(R"(,"width":8)")->width, 8);
  EXPECT_EQ(wrong_field(R"(,"width":8,"speculative":{"width":8})"), "speculative.width");
  EXPECT_EQ(wrong_field(R"(,"speculative":{"width":0})"), "speculative.width");
  EXPECT_EQ(wrong_field(R"(,"speculative":{"draft_p_min":7})"), "speculative.draft_p_min");
  EXPECT_EQ(wrong_field(R"(,"speculative":{"drafters":[]})"), "speculative.drafters");
  EXPECT_EQ(wrong_field(R"(,"speculative":{"drafters":[1]})"), "speculative.drafters[0]");
  EXPECT_EQ(wrong_field(R"(,"speculative":{"widht":4})"), "speculative.widht");
  EXPECT_EQ(wrong_field(R"(,"speculative":{"rule":"block","branches":2})"), "speculative.branches");
  EXPECT_EQ(wrong_field(R"(,"speculative":"yes")"), "speculative");
  EXPECT_EQ(wrong_field(R"(,"speculative":null)"), "speculative");
  EXPECT_FALSE(read(R"(,"speculative":false,"drafter":"suffix")")->speculative);
  EXPECT_FALSE(read(R"(,"drafter":"none","speculative":false)")->speculative);
  EXPECT_EQ(wrong_field(R"(,"speculative":true,"drafter":"none")"), "speculative");
  EXPECT_EQ(wrong_field(R"(,"drafter":"none","speculative":{"width":8})"), "speculative");
  EXPECT_FALSE(read(R"(,"speculative":{"drafters":["none"]})")->speculative);
  const Result<CompletionRequest> both = read(R"(,"speculative":true,"drafter":"suffix")");
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_TRUE(both->speculative);
  EXPECT_EQ(to_string(both->drafters), "suffix");
}

TEST(ReadCompletion, OneSettingThatChangesTakesThePlaceOfWhatWasSaidOfGuessesBefore) {
  const auto change = [](const std::string& fields, CompletionRequest request) {
    const json::Parsed parsed = json::parse(fields);
    return *change_completion(*parsed.value, std::move(request));
  };
  CompletionRequest request = change(R"({"drafter":"none"})", {});
  EXPECT_FALSE(request.speculative);
  request = change(R"({"speculative":true})", std::move(request));
  EXPECT_TRUE(request.speculative);
  request = change(R"({"speculative":false})", std::move(request));
  EXPECT_FALSE(request.speculative);
  EXPECT_TRUE(change(R"({"drafter":"suffix"})", std::move(request)).speculative);
}

TEST(ReadCompletion, BranchesCostADraftModelOnly) {
  const auto shape = [](const std::string& more) {
    CompletionRequest request = *read(more);
    fill_branches(request.draft, request.rule, request.width);
    return request.draft;
  };
  const auto branches = [&](const std::string& more) { return shape(more).branches; };
  EXPECT_EQ(branches(""), kAutoBranches);
  EXPECT_EQ(shape("").model_branches, kAutoModelBranches);
  EXPECT_EQ(shape(R"(,"width":4)").model_branches, 1);
  EXPECT_EQ(shape(R"(,"rule":"rejection")").model_branches, 1);
  EXPECT_EQ(shape(R"(,"branches":3)").model_branches, 0) << "as the others'";
  EXPECT_EQ(branches(R"(,"drafter":"suffix")"), kAutoBranches);
  EXPECT_EQ(branches(R"(,"drafter":"suffix","width":4)"), 4) << "the width";
  EXPECT_EQ(branches(R"(,"drafter":"suffix","width":8)"), 8);
  EXPECT_EQ(branches(R"(,"speculative":{"drafters":["recycle"],"width":6})"), 6);
  EXPECT_EQ(branches(R"(,"speculative":{"drafters":["recycle/suffix"],"width":6,"branches":2})"),
            2);
  EXPECT_EQ(branches(R"(,"branches":1,"speculative":{"drafters":["suffix"]})"), 1);
  EXPECT_EQ(branches(R"(,"drafter":"draft-model,suffix","width":8)"), 8);
  EXPECT_EQ(branches(R"(,"drafter":"suffix","rule":"block")"), 1);
}

TEST(ReadCompletion, WhatDoesNotGoTogetherIsRefusedByName) {
  EXPECT_EQ(wrong_field(R"(,"mirostat":1,"top_p":0.5)"), "top_p");
  EXPECT_EQ(wrong_field(R"(,"mirostat":2,"temp":0)"), "temp");
  EXPECT_EQ(wrong_field(R"(,"ignore_eos":true,"grammar":"root ::= \"a\"")"), "ignore_eos");
}

}  // namespace
}  // namespace outrider::api
