#include "testing/tiny_pair.h"

#include <gtest/gtest.h>

#include <vector>

#include "testing/tiny_dir.h"
#include "testing/tiny_runner.h"

namespace outrider::testing {
namespace {

class TinyPairTest : public ::testing::TestWithParam<WeightType> {
 protected:
  // Greedy agreement of a pair on the target's own text, mean over `n_seeds` pairs.
  double agreement(float noise, int n_seeds) {
    double sum = 0.0;
    for (int seed = 1; seed <= n_seeds; ++seed) {
      TinyPairOptions options;
      options.target.weight_type = GetParam();
      options.target.seed = static_cast<std::uint64_t>(seed);
      options.noise = noise;
      const Status status =
          write_tiny_pair(dir_.file("target.gguf"), dir_.file("draft.gguf"), options);
      EXPECT_TRUE(status.ok()) << status.message();
      Result<TinyRunner> target = TinyRunner::load(dir_.file("target.gguf"));
      Result<TinyRunner> draft = TinyRunner::load(dir_.file("draft.gguf"));
      if (!target.ok() || !draft.ok()) return -1.0;
      std::vector<Token> text = target->tokenize("Once upon a time", true, false);
      const std::vector<Token> tokens = target->greedy(text, 150).value();
      text.insert(text.end(), tokens.begin(), tokens.end());
      sum += greedy_agreement(target->logits(text).value(), draft->logits(text).value());
    }
    return sum / n_seeds;
  }
  TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(Types, TinyPairTest,
                         ::testing::Values(WeightType::kF32, WeightType::kQ8_0, WeightType::kQ4_0),
                         [](const ::testing::TestParamInfo<WeightType>& kind) {
                           return weight_type_name(kind.param);
                         });

TEST_P(TinyPairTest, AgreementFallsAsNoiseGrows) {
  double previous = 1.0;
  for (const float noise : {0.05F, 0.1F, 0.2F, 0.5F}) {
    const double now = agreement(noise, 4);
    EXPECT_LT(now, previous - 0.05) << "noise " << noise;
    EXPECT_GE(now, 0.0);
    previous = now;
  }
  EXPECT_LT(previous, 0.2);
}

TEST_P(TinyPairTest, WithoutNoiseBothAreTheSame) { EXPECT_EQ(agreement(0.0F, 1), 1.0); }

TEST(TinyPair, NoiseSeedsGiveOtherDraftsAndTheSameTarget) {
  const TempDir dir;
  TinyPairOptions options;
  ASSERT_TRUE(write_tiny_pair(dir.file("t1"), dir.file("d1"), options).ok());
  options.noise_seed = 2;
  ASSERT_TRUE(write_tiny_pair(dir.file("t2"), dir.file("d2"), options).ok());
  EXPECT_EQ(read_bytes(dir.file("t1")), read_bytes(dir.file("t2")));
  EXPECT_NE(read_bytes(dir.file("d1")), read_bytes(dir.file("d2")));
}

TEST(TinyPair, ADraftMayHaveAVocabularyOfItsOwn) {
  const TempDir dir;
  TinyPairOptions options;
  options.noise = 0.0F;
  options.other_vocabulary = true;
  options.draft_vocabulary.n_padding = 7;
  ASSERT_TRUE(write_tiny_pair(dir.file("t"), dir.file("d"), options).ok());
  Result<TinyRunner> target = TinyRunner::load(dir.file("t"));
  Result<TinyRunner> draft = TinyRunner::load(dir.file("d"));
  ASSERT_TRUE(target.ok() && draft.ok());
  ASSERT_EQ(draft->n_vocab(), target->n_vocab() + 7);
  // Padding changes nothing else: the logits of the shared tokens are the same bits.
  const std::vector<Token> text = {kTinyBos, 80, 81, 82, 83};
  const std::vector<std::vector<float>> of_target = target->logits(text).value();
  std::vector<std::vector<float>> of_draft = draft->logits(text).value();
  for (std::vector<float>& row : of_draft) row.resize(of_target[0].size());
  EXPECT_EQ(of_draft, of_target);
}

TEST(TinyPair, RefusesATargetWithNoiseOfItsOwn) {
  const TempDir dir;
  TinyPairOptions options;
  options.target.noise = 0.1F;
  EXPECT_EQ(write_tiny_pair(dir.file("t"), dir.file("d"), options).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(dir.n_entries(), 0);
}

}  // namespace
}  // namespace outrider::testing
