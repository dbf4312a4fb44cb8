#include "tools/chat/chat_settings.h"

#include <gtest/gtest.h>

namespace outrider::tools {
namespace {

// The value after it was set, or the error.
std::string after(const std::string& name, const std::string& value,
                  CompletionRequest request = {}) {
  const Status status = change_setting(request, name, value);
  if (!status.ok()) return "error: " + status.message();
  return *setting_text(request, name);
}

TEST(ChatSettings, EveryKindOfFieldIsSetByItsName) {
  EXPECT_EQ(after("temp", "0.5"), "0.5");
  EXPECT_EQ(after("top_k", "12"), "12");
  EXPECT_EQ(after("top-k", "12"), "12") << "as the option is spelled";
  EXPECT_EQ(after("seed", "4294967296000"), "4294967296000");
  EXPECT_EQ(after("ignore_eos", "true"), "true");
  EXPECT_EQ(after("width", "auto"), "auto");
  EXPECT_EQ(after("width", "8"), "8");
  EXPECT_EQ(after("rule", "rejection"), "rejection");
  EXPECT_EQ(after("drafter", "suffix/recycle"), "suffix/recycle");
  EXPECT_EQ(after("drafter", "none"), "none");
  EXPECT_EQ(after("shift_keep", "16"), "16");
  EXPECT_EQ(after("stop", "###"), "[\"###\"]");
  EXPECT_EQ(after("stop", "42"), "[\"42\"]") << "a text, where only texts are right";
  EXPECT_EQ(after("stop", "[\"a\",\"b\\n\"]"), "[\"a\",\"b\\n\"]");
  EXPECT_EQ(after("grammar", "root ::= [0-9]+"), "root ::= [0-9]+");
  EXPECT_EQ(after("json_schema", "{\"type\":\"object\"}"), "{\"type\":\"object\"}");
  EXPECT_EQ(after("logit_bias", "{\"3\":1.5}"), "3: 1.5");
  EXPECT_EQ(after("chat_template_kwargs", "{\"a\":1}"), "{\"a\":1}");
}

TEST(ChatSettings, WhatIsWrongIsNamedAndChangesNothing) {
  EXPECT_EQ(after("top_k", "many"),
            "error: top_k is 'many', but must be a whole number from -1 to 2147483647");
  EXPECT_EQ(after("temp", "-1").rfind("error: temp is -1, but must be", 0), 0U)
      << after("temp", "-1");
  EXPECT_EQ(after("rule", "best").rfind("error: rule is 'best', but must be", 0), 0U)
      << after("rule", "best");
  EXPECT_EQ(after("drafter", "nobody").rfind("error: drafter", 0), 0U)
      << after("drafter", "nobody");
  EXPECT_EQ(after("tpo_k", "1"), "error: there is no setting 'tpo_k'; did you mean top_k?");
  EXPECT_NE(after("xyzzy", "1").find("max_tokens, seed, "), std::string::npos);
  for (const char* name : {"prompt", "messages", "namespace", "speculative"}) {
    EXPECT_EQ(after(name, "x").rfind("error: there is no setting", 0), 0U) << name;
  }
  CompletionRequest request;
  ASSERT_TRUE(change_setting(request, "branches", "4").ok());
  const Status status = change_setting(request, "rule", "block");
  EXPECT_FALSE(status.ok()) << "what cannot be combined";
  EXPECT_EQ(*setting_text(request, "rule"), "coupled");
}

TEST(ChatSettings, EveryOneCanBeTakenBackToItsDefault) {
  const CompletionRequest usual;
  for (const std::string& name : setting_names()) {
    CompletionRequest request;
    request.sampling.temperature = 0.25F;  // others stay
    request.width = 4;
    ASSERT_TRUE(change_setting(request, name, "default").ok()) << name;
    EXPECT_EQ(*setting_text(request, name), *setting_text(usual, name)) << name;
  }
  CompletionRequest request;
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"top_k", "3"},
                                                        {"stop", "x"},
                                                        {"shift_keep", "1"},
                                                        {"logit_bias", "[[1,2]]"},
                                                        {"json_schema", "{}"},
                                                        {"drafter", "suffix"},
                                                        {"rule", "rejection"},
                                                        {"chat_template_kwargs", "{\"a\":1}"},
                                                        {"width", "2"}}) {
    ASSERT_TRUE(change_setting(request, name, value).ok()) << name;
    EXPECT_NE(changed_settings(request).find(name + " "), std::string::npos) << name;
    ASSERT_TRUE(change_setting(request, name, "default").ok()) << name;
    EXPECT_EQ(changed_settings(request), "") << name;
  }
}

TEST(ChatSettings, ALaterEffortReplacesAnEarlierOneAndKeepsOtherValuesOfTheTemplate) {
  CompletionRequest request;
  const auto set = [&](const char* name, const char* value) {
    EXPECT_TRUE(change_setting(request, name, value).ok()) << name << " " << value;
    return request.chat.template_values;
  };
  set("chat_template_kwargs", R"({"a":1})");
  EXPECT_EQ(set("reasoning", R"({"effort":"low"})"), R"({"a":1,"reasoning_effort":"low"})");
  EXPECT_EQ(set("reasoning", R"({"effort":"high"})"), R"({"a":1,"reasoning_effort":"high"})");
  EXPECT_EQ(set("reasoning", "true"), R"({"a":1,"reasoning_effort":"high"})");
  EXPECT_FALSE(change_setting(request, "reasoning", R"({"effort":"much"})").ok());
  EXPECT_EQ(request.chat.template_values, R"({"a":1,"reasoning_effort":"high"})") << "as it was";
  EXPECT_EQ(set("reasoning", "default"), R"({"a":1})");
  EXPECT_EQ(set("chat_template_kwargs", "{}"), "");
}

TEST(ChatSettings, OnlyWhatDiffersFromTheDefaultsIsListed) {
  CompletionRequest request;
  EXPECT_EQ(changed_settings(request), "");
  request.sampling.temperature = 0.0F;
  request.stop = {"a"};
  EXPECT_EQ(changed_settings(request), "stop                  [\"a\"]\ntemp                  0\n");
}

}  // namespace
}  // namespace outrider::tools
