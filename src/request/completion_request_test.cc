#include "request/completion_request.h"

#include <gtest/gtest.h>

#include <set>

namespace outrider {
namespace {

CompletionRequest valid() {
  CompletionRequest request;
  request.prompt = {"x"};
  return request;
}

std::string wrong_field(const CompletionRequest& request) { return validate(request).field(); }

TEST(CompletionRequest, EveryFieldHasANameOfItsOwnAndHelp) {
  std::set<std::string_view> names;
  const CompletionRequest request;
  visit_request(request, [&names](const auto& table, const auto& object) {
    for (const auto& field : table) {
      EXPECT_TRUE(names.insert(field.name).second) << field.name << " twice";
      EXPECT_FALSE(field.help.empty()) << field.name;
      EXPECT_TRUE(check(field, object).ok()) << field.name << "'s default is out of its range";
    }
  });
  EXPECT_GT(names.size(), 40U);
}

TEST(CompletionRequest, DefaultsAreValidWithAPromptOrMessages) {
  EXPECT_TRUE(validate(valid()).ok());
  CompletionRequest request;
  EXPECT_EQ(wrong_field(request), "prompt");
  EXPECT_TRUE(validate_settings(request).ok());
  request.messages = {{.role = "user", .content = "x"}};
  EXPECT_TRUE(validate(request).ok());
  request.prompt = {"x"};
  EXPECT_EQ(wrong_field(request), "prompt");
}

TEST(CompletionRequest, WhatIsOutOfRangeIsNamed) {
  const std::pair<const char*, void (*)(CompletionRequest&)> cases[] = {
      {"max_tokens", [](CompletionRequest& r) { r.max_tokens = -2; }},
      {"seed", [](CompletionRequest& r) { r.seed = -2; }},
      {"stop[0]", [](CompletionRequest& r) { r.stop = {""}; }},
      {"stop", [](CompletionRequest& r) { r.stop.assign(65, "a"); }},
      {"logprobs", [](CompletionRequest& r) { r.logprobs = 21; }},
      {"timeout_ms", [](CompletionRequest& r) { r.timeout_ms = -1; }},
      {"shift_keep", [](CompletionRequest& r) { r.shift_keep = -2; }},
      {"prompt", [](CompletionRequest& r) { r.prompt.assign(kMaxListed + 1, Token{1}); }},
      {"logit_bias",
       [](CompletionRequest& r) {
         r.sampling.logit_bias.resize(SamplingOptions::kMaxBiases + 1, {.token = 1});
       }},
      {"top_p", [](CompletionRequest& r) { r.sampling.top_p = 2.0f; }},
      {"width", [](CompletionRequest& r) { r.width = 65; }},
      {"branches", [](CompletionRequest& r) { r.draft.branches = 65; }},
      {"split_p", [](CompletionRequest& r) { r.draft.split_p = -1.0f; }},
      {"namespace", [](CompletionRequest& r) { r.name_space = ""; }},
      {"namespace", [](CompletionRequest& r) { r.name_space = "a\nb"; }},
      {"messages", [](CompletionRequest& r) {
         r.prompt.clear();
         r.messages.resize(kMaxMessages + 1);
       }}};
  for (const auto& [field, spoil] : cases) {
    CompletionRequest request = valid();
    spoil(request);
    EXPECT_EQ(wrong_field(request), field) << validate(request).message();
  }
}

TEST(CompletionRequest, TheRuleBlockJudgesChains) {
  CompletionRequest request = valid();
  request.rule = AcceptanceRule::kBlock;
  EXPECT_TRUE(validate(request).ok()) << "branches by the width are none with it";
  request.draft.branches = 2;
  EXPECT_EQ(wrong_field(request), "branches");
}

TEST(CompletionRequest, OnlyTheRuleCoupledKeepsTheText) {
  for (const AcceptanceRuleTraits& row : kAcceptanceRules) {
    const AcceptanceRule rule = row.rule;
    CompletionRequest request = valid();
    request.rule = rule;
    EXPECT_TRUE(check_rule(request, ExactMode::kAuto).ok());
    EXPECT_TRUE(check_rule(request, ExactMode::kOff).ok());
    const Status kept = check_rule(request, ExactMode::kOn);
    EXPECT_EQ(kept.ok(), rule == AcceptanceRule::kCoupled);
    EXPECT_EQ(kept.field(), kept.ok() ? "" : "rule");
  }
}

TEST(SetDrafters, NamesAutoAndNone) {
  CompletionRequest request;
  ASSERT_TRUE(set_drafters(request, "suffix/draft-model,recycle").ok());
  EXPECT_EQ(to_string(request.drafters), "suffix/draft-model,recycle");
  ASSERT_TRUE(set_drafters(request, "none").ok());
  EXPECT_FALSE(request.speculative);
  ASSERT_TRUE(set_drafters(request, "auto").ok());
  EXPECT_TRUE(request.speculative);
  EXPECT_TRUE(request.drafters.empty());
}

TEST(SetDrafters, AFailureLeavesTheRequestAsItWas) {
  CompletionRequest request;
  ASSERT_TRUE(set_drafters(request, "suffix").ok());
  for (const std::string& wrong : {std::string("sufix"), std::string("suffix,"),
                                   std::string("suffix,suffix"), std::string(300, 'a')}) {
    const Status status = set_drafters(request, wrong, "drafters");
    EXPECT_EQ(status.field(), "drafters") << wrong;
    EXPECT_EQ(to_string(request.drafters), "suffix");
  }
}

}  // namespace
}  // namespace outrider
