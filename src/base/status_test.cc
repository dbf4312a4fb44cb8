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
