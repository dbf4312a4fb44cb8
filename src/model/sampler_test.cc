#include "model/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace outrider {
namespace {

TEST(SamplingOptions, DefaultsAndTheEndsOfTheRangesAreValid) {
  EXPECT_TRUE(validate(SamplingOptions{}).ok());
  EXPECT_TRUE(validate({.temperature = 0.0f, .top_k = -1, .top_p = 1.0f, .min_p = 0.0f}).ok());
  EXPECT_TRUE(validate({.temperature = 100.0f, .min_p = 1.0f}).ok());
  EXPECT_TRUE(validate({.top_p = 0.0f}).ok()) << "OpenAI's clients send it for one token";
}

TEST(SamplingOptions, EachValueOutOfRangeIsRefusedByItsOptionsName) {
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  const std::int32_t too_long = SamplingOptions::kMaxHistory + 1;
  const std::vector<std::pair<SamplingOptions, std::string>> bad = {
      {{.temperature = -0.1f}, "temp is"},
      {{.temperature = nan}, "temp is"},
      {{.temperature = inf}, "temp is"},
      {{.top_p = -0.1f}, "top_p is"},
      {{.top_p = 1.1f}, "top_p is"},
      {{.top_p = nan}, "top_p is"},
      {{.min_p = -0.1f}, "min_p is"},
      {{.min_p = 1.1f}, "min_p is"},
      {{.typical_p = 0.0f}, "typical is"},
      {{.typical_p = 2.0f}, "typical is"},
      {{.dynatemp_range = -1.0f}, "dynatemp_range is"},
      {{.dynatemp_exponent = nan}, "dynatemp_exp is"},
      {{.top_n_sigma = nan}, "top_n_sigma is"},
      {{.xtc_probability = 1.5f}, "xtc_probability is"},
      {{.xtc_threshold = nan}, "xtc_threshold is"},
      {{.repeat_last_n = -1}, "repeat_last_n is"},
      {{.repeat_last_n = too_long}, "repeat_last_n is"},
      {{.repeat_penalty = 0.0f}, "repeat_penalty is"},
      {{.repeat_penalty = 1e-45f}, "repeat_penalty is"},
      {{.frequency_penalty = inf}, "frequency_penalty is"},
      {{.presence_penalty = nan}, "presence_penalty is"},
      {{.dry_multiplier = -1.0f}, "dry_multiplier is"},
      {{.dry_base = 0.9f}, "dry_base is"},
      {{.dry_allowed_length = -1}, "dry_allowed_length is"},
      {{.dry_penalty_last_n = too_long}, "dry_penalty_last_n is"},
      {{.dry_sequence_breakers = {""}}, "dry_sequence_breaker[0] has"},
      {{.mirostat = 3}, "mirostat is"},
      {{.mirostat_tau = -1.0f}, "mirostat_ent is"},
      {{.mirostat_eta = nan}, "mirostat_lr is"},
      {{.logit_bias = {{3, inf}}}, "logit_bias of token 3 is"},
      {{.logit_bias = {{3, nan}}}, "logit_bias of token 3 is"},
      {{.logit_bias = {{-5, 1.0f}}}, "logit_bias names token -5"},
      {{.grammar_triggers = {"x"}}, "grammar_trigger needs"},
      {{.grammar = "root", .grammar_triggers = {""}}, "grammar_trigger[0] has"},
      {{.grammar = "root", .json_schema = "{}"}, "json_schema cannot"},
      {{.ignore_eos = true, .json_schema = "{}"}, "ignore_eos cannot"},
  };
  for (const auto& [options, message] : bad) {
    const Status status = validate(options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message().find(message), 0U) << status.message();
  }
}

TEST(SamplingOptions, MirostatTakesNoOtherFilterButThoseThatAreOffOrAtTheirDefaults) {
  EXPECT_TRUE(validate({.mirostat = 2}).ok());
  EXPECT_TRUE(validate({.top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .mirostat = 1}).ok());
  const std::vector<std::pair<SamplingOptions, std::string>> bad = {
      {{.top_k = 10, .mirostat = 1}, "top_k"},
      {{.top_p = 0.5f, .mirostat = 1}, "top_p"},
      {{.min_p = 0.2f, .mirostat = 2}, "min_p"},
      {{.typical_p = 0.5f, .mirostat = 2}, "typical"},
      {{.dynatemp_range = 0.5f, .mirostat = 2}, "dynatemp_range"},
      {{.top_n_sigma = 1.0f, .mirostat = 2}, "top_n_sigma"},
      {{.xtc_probability = 0.5f, .mirostat = 2}, "xtc_probability"},
      {{.repeat_penalty = 1.1f, .mirostat = 2}, "repeat_penalty"},
      {{.frequency_penalty = 0.5f, .mirostat = 2}, "frequency_penalty"},
      {{.presence_penalty = 0.5f, .mirostat = 2}, "presence_penalty"},
      {{.dry_multiplier = 0.5f, .mirostat = 2}, "dry_multiplier"}};
  for (const auto& [options, message] : bad) {
    EXPECT_EQ(validate(options).message().find(message + " cannot be used with mirostat"), 0U)
        << validate(options).message();
  }
}

}  // namespace
}  // namespace outrider
