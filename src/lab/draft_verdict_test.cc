// Which draft is written, on made-up figures.
#include "lab/draft_verdict.h"

#include <gtest/gtest.h>

namespace outrider::lab {
namespace {

struct ToldSpeed {
  double predicted = 1.5;
  double measured = 0.0;  // 0: it was not
  double half_width = 0.0;
  std::uint64_t bytes = 100;
};

DraftCandidate told(const DraftMake& make, const ToldSpeed& speed) {
  DraftCandidate candidate{.make = make, .bytes = speed.bytes};
  candidate.prediction = {.guesses = 1, .tokens = 1.5, .ms = 1.0, .speedup = speed.predicted};
  if (speed.measured > 0.0) {
    candidate.measured = DraftSpeed{.speedup = speed.measured,
                                    .interval = Interval{.low = speed.measured - speed.half_width,
                                                         .high = speed.measured + speed.half_width},
                                    .identical = true};
  }
  return candidate;
}

const ChoiceSetting kMeasured = {.source = "/models/s.gguf", .target = "/models/t.gguf"};

// The figures of docs/benchmarks.md: both say the same, and Q5_0 can only be slower.
TEST(DraftVerdict, OfTwoThatCannotBeToldApartTheSmallerFileIsWritten) {
  const DraftVerdict choice = choose_draft(
      {told({}, {.predicted = 2.55, .measured = 2.16, .half_width = 0.11, .bytes = 776}),
       told({.type = "q5_0"},
            {.predicted = 2.42, .measured = 2.29, .half_width = 0.11, .bytes = 944})},
      kMeasured);
  EXPECT_EQ(choice.chosen, 0u);
  EXPECT_EQ(choice.verdict,
            "the best is as it is: 2.16 (2.05 to 2.27) times the speed of plain decoding, "
            "measured; it is no better than -d /models/s.gguf; no difference could be shown to "
            "q5_0 (2.29), a larger file");
}

TEST(DraftVerdict, ControlOneThatIsFasterForCertainIsWrittenThoughItIsLarger) {
  const DraftVerdict choice = choose_draft(
      {told({}, {.predicted = 2.55, .measured = 2.16, .half_width = 0.05, .bytes = 776}),
       told({.type = "q5_0"},
            {.predicted = 2.42, .measured = 2.29, .half_width = 0.05, .bytes = 944})},
      kMeasured);
  EXPECT_EQ(choice.chosen, 1u);
  EXPECT_EQ(choice.verdict,
            "the best is q5_0: 2.29 (2.24 to 2.34) times the speed of plain decoding, measured");
}

TEST(DraftVerdict, AGainThatIsWithinTheNoiseIsNone) {
  const std::vector<DraftCandidate> one = {
      told({.type = "q4_0"}, {.measured = 1.03, .half_width = 0.06})};
  const DraftVerdict choice = choose_draft(one, kMeasured);
  EXPECT_FALSE(choice.chosen);
  EXPECT_EQ(choice.verdict,
            "no draft of 's.gguf' pays: the best one (q4_0) is measured at 1.03 (0.97 to 1.09) "
            "times the speed of plain decoding, which shows no gain");
}

// Another candidate is measured as faster, but nothing is certain of it.
TEST(DraftVerdict, WhatPaysForCertainIsTakenBeforeWhatMayPayMore) {
  const DraftVerdict choice =
      choose_draft({told({.type = "q4_0"}, {.measured = 1.30, .half_width = 0.40}),
                    told({.type = "q8_0"}, {.measured = 1.20, .half_width = 0.05, .bytes = 200})},
                   kMeasured);
  EXPECT_EQ(choice.chosen, 1u);
}

TEST(DraftVerdict, WhereNonePaysTheBestIsTheOneThatWasMeasuredAsTheBest) {
  const DraftVerdict choice = choose_draft(
      {told({.type = "q4_0"}, {.predicted = 1.30, .measured = 0.91, .half_width = 0.02}),
       told({.type = "q8_0"}, {.predicted = 1.20, .measured = 0.98, .half_width = 0.01}),
       told({.type = "q5_0"}, {.predicted = 1.10})},
      kMeasured);
  EXPECT_FALSE(choice.chosen);
  EXPECT_EQ(choice.verdict,
            "no draft of 's.gguf' pays: the best one (q8_0) is measured at 0.98 (0.97 to 0.99) "
            "times the speed of plain decoding");
}

TEST(DraftVerdict, WhereNoneWasMeasuredWhatIsPredictedDecides) {
  ChoiceSetting predicted = kMeasured;
  predicted.is_measured = false;
  std::vector<DraftCandidate> two = {told({.type = "q4_0"}, {.predicted = 1.30}),
                                     told({.type = "q8_0"}, {.predicted = 1.40, .bytes = 200})};
  const DraftVerdict choice = choose_draft(two, predicted);
  EXPECT_EQ(choice.chosen, 1u);
  EXPECT_EQ(choice.verdict, "the best is q8_0: 1.40 times the speed of plain decoding, predicted");
  EXPECT_FALSE(choose_draft(two, kMeasured).chosen) << "it was to be measured";
  for (DraftCandidate& candidate : two) candidate.prediction.speedup = 0.8;
  EXPECT_EQ(choose_draft(two, predicted).verdict,
            "no draft of 's.gguf' pays: the best one (q4_0) is predicted at 0.80 times the speed "
            "of plain decoding");
}

TEST(DraftVerdict, WhereNoneWorksTheFirstReasonIsTold) {
  std::vector<DraftCandidate> one = {told({}, {})};
  one[0].status = unsupported("it does not load");
  EXPECT_EQ(choose_draft(one, kMeasured).verdict,
            "no draft of 's.gguf' works for 't.gguf': it does not load");
}

}  // namespace
}  // namespace outrider::lab
