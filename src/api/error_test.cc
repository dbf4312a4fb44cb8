#include "api/error.h"

#include <gtest/gtest.h>

namespace outrider::api {
namespace {

using json::Json;

TEST(ErrorOf, OptionsBecomeFields) {
  const Error error =
      error_of(invalid_argument("--top-p cannot be used with --mirostat 2"), Json::object());
  EXPECT_EQ(error.message, "top_p cannot be used with mirostat 2");
  EXPECT_EQ(error.field, "top_p");
  EXPECT_EQ(error.code, StatusCode::kInvalidArgument);
}

TEST(ErrorOf, AFieldInsideSpeculativeIsSpelledWithIt) {
  const Status status = invalid_argument("--draft-p-min is 2, but must be from 0 to 1");
  EXPECT_EQ(error_of(status, {{"speculative", {{"draft_p_min", 2}}}}).field,
            "speculative.draft_p_min");
  EXPECT_EQ(error_of(status, {{"draft_p_min", 2}}).field, "draft_p_min");
  EXPECT_EQ(error_of(invalid_argument("--drafter 'x' is not there"),
                     {{"speculative", {{"drafters", {"x"}}}}})
                .field,
            "speculative.drafters");
}

TEST(ErrorOf, DashesThatAreNoOptionsStay) {
  EXPECT_EQ(with_field_names("a -- b, --- and x--y, all of it"), "a -- b, --- and x--y, all of it");
  EXPECT_EQ(with_field_names("at the end: --"), "at the end: --");
  EXPECT_EQ(with_field_names("give --cache-type-k"), "give cache_type_k");
}

TEST(ErrorOf, ThePromptIsTheFieldThatWasGiven) {
  const Status status = invalid_argument("the prompt is empty");
  EXPECT_EQ(error_of(status, {{"prompt", ""}}).field, "prompt");
  EXPECT_EQ(error_of(status, {{"messages", Json::array()}}).field, "messages");
  EXPECT_EQ(error_of(not_found("no target is ready"), {{"prompt", ""}}).field, "");
}

}  // namespace
}  // namespace outrider::api
