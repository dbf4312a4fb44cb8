#include "lab/draft_costs.h"

#include <gtest/gtest.h>

#include "draft/model/draft_model.h"
#include "testing/fake_drafter.h"
#include "testing/fake_model.h"

namespace outrider::lab {
namespace {

using testing::FakeModel;
using testing::FakeSampler;

constexpr std::int32_t kVocab = 8;

Capabilities capabilities(std::int32_t n_ctx) {
  return {.n_vocab = kVocab,
          .n_ctx = n_ctx,
          .n_batch = 32,
          .n_sequences = 2,
          .rollback = Rollback::kAny,
          .max_leaves = 4,
          .max_width = 16};
}

// A draft model that takes 3 ms a pass and 1 ms a token of it.
class DraftCosts : public ::testing::Test {
 protected:
  Result<DraftSamples> measure(std::int32_t n_ctx, DraftMeasureOptions options) {
    FakeModel model(capabilities(n_ctx), testing::random_rows(kVocab, 1, 1.0f));
    model.on_evaluated(
        [this](std::int64_t tokens) { now_ms_ += 3.0 + 1.0 * static_cast<double>(tokens); });
    DraftModelDrafter drafter(model, kVocab, {});
    FakeSampler sampler(1.0f);
    options.n_vocab = kVocab;
    options.now_ms = [this] { return now_ms_; };
    const Result<DraftSamples> samples = measure_draft_costs(drafter, sampler, options);
    EXPECT_EQ(drafter.check_integrity(), "");
    return samples;
  }

  double now_ms_ = 0.0;
};

TEST_F(DraftCosts, FirstAndFurtherPassesAreToldApart) {
  const Result<DraftSamples> samples = measure(256, {.depth = 20, .rounds = 5, .passes = 4});
  ASSERT_TRUE(samples.ok()) << samples.status().message();
  ASSERT_EQ(samples->first_ms.size(), 5U);
  ASSERT_EQ(samples->further_ms.size(), 15U);
  for (const double ms : samples->further_ms) EXPECT_NEAR(ms, 4.0, 1e-9);
  // Two new tokens, and where a guess was not right by chance nothing else.
  for (const double ms : samples->first_ms) EXPECT_LE(ms, 5.0 + 1e-9);
  for (const double ms : samples->first_ms) EXPECT_GE(ms, 4.0 - 1e-9);
}

TEST_F(DraftCosts, ATextThatDoesNotFitSaysSo) {
  const Result<DraftSamples> samples = measure(16, {.depth = 20, .rounds = 2});
  EXPECT_EQ(samples.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(samples.status().message().find("a larger one"), std::string::npos);
}

TEST_F(DraftCosts, CanBeCancelledAndFails) {
  EXPECT_EQ(measure(256, {.cancelled = [] { return true; }}).status().code(),
            StatusCode::kCancelled);
  testing::ScriptedDrafter failing([](DraftRequest&) { return internal_error("on purpose"); });
  FakeSampler sampler(1.0f);
  EXPECT_EQ(measure_draft_costs(failing, sampler, {.n_vocab = kVocab}).status().message(),
            "on purpose");
  EXPECT_EQ(failing.ended, 1);
}

}  // namespace
}  // namespace outrider::lab
