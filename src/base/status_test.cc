#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace outrider {
namespace {

TEST(Status, OkHasNoMessageAndContextLeavesItAlone) {
  const Status ok;
  EXPECT_TRUE(ok.ok());
  EXPECT_EQ(ok.message(), "");
  EXPECT_TRUE(ok.with_context("reading").ok());
}

TEST(Status, ContextStandsBeforeTheMessageAndKeepsTheCode) {
  const Status failed = not_found("'x.gguf' does not exist").with_context("target");
  EXPECT_EQ(failed.code(), StatusCode::kNotFound);
  EXPECT_EQ(failed.message(), "target: 'x.gguf' does not exist");
}

TEST(Status, AFailureOfAFieldIsToldInAnySpelling) {
  const Status wrong = wrong_value("top_p", "2", "from 0 to 1");
  EXPECT_EQ(wrong.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(wrong.field(), "top_p");
  EXPECT_EQ(wrong.message(), "top_p is 2, but must be from 0 to 1");
  EXPECT_EQ(wrong.message_with("--top-p"), "--top-p is 2, but must be from 0 to 1");
  const Status inner = wrong.with_context("'--top_p' in 'top_p'").with_context("the request");
  EXPECT_EQ(inner.field(), "top_p");
  EXPECT_EQ(inner.message_with("P"),
            "the request: '--top_p' in 'top_p': P is 2, but must be from "
            "0 to 1");
}

TEST(Status, AFieldMayStandBeforeAMessageOrBesideIt) {
  const Status in = not_found("'a' is not there").in_field("path");
  EXPECT_EQ(in.message(), "path: 'a' is not there");
  EXPECT_EQ(in.message_with("--path"), "--path: 'a' is not there");
  EXPECT_EQ(in.code(), StatusCode::kNotFound);
  const Status about = invalid_argument("the prompt is empty").about("prompt");
  EXPECT_EQ(about.field(), "prompt");
  EXPECT_EQ(about.message_with("messages"), "the prompt is empty");
  EXPECT_TRUE(Status().about("x").ok());
  EXPECT_TRUE(Status().in_field("x").ok());
  EXPECT_EQ(not_found("x").field(), "");
}

TEST(Status, WhatIsOverItsLimitKeepsTheNumbersInEverySpelling) {
  const Status over = invalid_argument("too long").about("prompt").over({.count = 9, .limit = 8});
  for (const Status& told : {over, over.about("messages"), over.in_field("x"),
                             over.spelled("--prompt"), over.with_context("here")}) {
    ASSERT_TRUE(told.excess().has_value()) << told.message();
    EXPECT_EQ(told.excess()->count, 9);
    EXPECT_EQ(told.excess()->limit, 8);
  }
  EXPECT_FALSE(invalid_argument("x").excess().has_value());
  EXPECT_TRUE(Status().over({.count = 9, .limit = 8}).ok());
}

TEST(Status, EveryCodeHasANameOfItsOwn) {
  EXPECT_EQ(status_code_name(StatusCode::kOk), "ok");
  EXPECT_EQ(status_code_name(invalid_argument("").code()), "invalid_argument");
  EXPECT_EQ(status_code_name(not_found("").code()), "not_found");
  EXPECT_EQ(status_code_name(unsupported("").code()), "unsupported");
  EXPECT_EQ(status_code_name(resource_exhausted("").code()), "resource_exhausted");
  EXPECT_EQ(status_code_name(cancelled("").code()), "cancelled");
  EXPECT_EQ(status_code_name(data_loss("").code()), "data_loss");
  EXPECT_EQ(status_code_name(internal_error("").code()), "internal");
}

Result<std::unique_ptr<int>> half(int x) {
  if (x % 2 != 0) return invalid_argument("odd");
  return std::make_unique<int>(x / 2);
}

Status fails_early(bool& reached) {
  OUTRIDER_RETURN_IF_ERROR(half(3).status());
  reached = true;
  return Status();
}

TEST(Result, HoldsAValueOrTheReasonWhyNot) {
  Result<std::unique_ptr<int>> four = half(8);
  ASSERT_TRUE(four.ok());
  EXPECT_TRUE(four.status().ok());
  const std::unique_ptr<int> value = std::move(four).value();
  EXPECT_EQ(*value, 4);
  EXPECT_EQ(half(3).status().message(), "odd");
  bool reached = false;
  EXPECT_EQ(fails_early(reached).message(), "odd");
  EXPECT_FALSE(reached);
}

}  // namespace
}  // namespace outrider
