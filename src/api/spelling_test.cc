#include "api/spelling.h"

#include <gtest/gtest.h>

namespace outrider::api {
namespace {

using json::Json;

TEST(SpelledAsIn, TheStatusSaysWhichFieldItIsAbout) {
  const Status error =
      spelled_as_in(refused("top_p", "cannot be used with mirostat 2"), Json::object());
  EXPECT_EQ(error.message(), "top_p cannot be used with mirostat 2");
  EXPECT_EQ(error.field(), "top_p");
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
}

TEST(SpelledAsIn, AFieldInsideSpeculativeIsSpelledWithIt) {
  const Status status = wrong_value("draft_p_min", "2", "from 0 to 1");
  const Status nested = spelled_as_in(status, {{"speculative", {{"draft_p_min", 2}}}});
  EXPECT_EQ(nested.field(), "speculative.draft_p_min");
  EXPECT_EQ(nested.message(), "speculative.draft_p_min is 2, but must be from 0 to 1");
  EXPECT_EQ(spelled_as_in(status, {{"draft_p_min", 2}}).field(), "draft_p_min");
  EXPECT_EQ(spelled_as_in(refused("drafter", "'x' is not there"),
                          {{"speculative", {{"drafters", {"x"}}}}})
                .field(),
            "speculative.drafters");
}

TEST(SpelledAsIn, WhatLooksLikeAnOptionInATextStays) {
  for (const std::string text : {"'/models/--q4.gguf' does not exist", "a -- b, --- and x--y"}) {
    const Status error = spelled_as_in(not_found(text), {{"path", "/models/--q4.gguf"}});
    EXPECT_EQ(error.message(), text);
    EXPECT_EQ(error.field(), "");
  }
}

TEST(SpelledAsIn, ThePromptIsTheFieldThatWasGiven) {
  const Status status = invalid_argument("the prompt is empty").about("prompt");
  EXPECT_EQ(spelled_as_in(status, {{"prompt", ""}}).field(), "prompt");
  EXPECT_EQ(spelled_as_in(status, {{"messages", Json::array()}}).field(), "messages");
  EXPECT_EQ(spelled_as_in(status, {{"messages", Json::array()}}).message(), "the prompt is empty");
  EXPECT_EQ(spelled_as_in(not_found("no target is ready"), {{"prompt", ""}}).field(), "");
}

TEST(SpelledAsIn, ItemsOfResponsesAndOlderFunctionsAreTheFieldsThatWereGiven) {
  const Status prompt = invalid_argument("the prompt is empty").about("prompt");
  const Status messages = refused("messages", "end with a call");
  const Json responses = {{"input", "Hi"}, {"tools", Json::array()}};
  EXPECT_EQ(spelled_as_in(prompt, responses).field(), "input");
  EXPECT_EQ(spelled_as_in(messages, responses).message(), "input end with a call");
  EXPECT_EQ(spelled_as_in(messages, {{"messages", Json::array()}, {"input", ""}}).field(),
            "messages");
  const Status tools = refused("tools[0].function", "has no name");
  const Json older = {{"messages", Json::array()}, {"functions", Json::array()}};
  EXPECT_EQ(spelled_as_in(tools, older).field(), "functions[0].function");
  EXPECT_EQ(spelled_as_in(tools, responses).field(), "tools[0].function");
}

}  // namespace
}  // namespace outrider::api
