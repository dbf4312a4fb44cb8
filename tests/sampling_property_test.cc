// Same output over all sampling options at once: whatever the mixture of options, drafter and
// width, the coupled rule says what plain decoding says, token for token, with the same
// log-probabilities.
//
// A case is a random mixture of options (testing/random_sampling.h), a prompt, a drafter and a
// width, on a tiny quantised pair. The seed of a case that fails is printed with it; with
// OUTRIDER_TEST_SEED set to that, it is the first case.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "testing/chi_square.h"
#include "testing/fake_drafter.h"
#include "testing/random_sampling.h"
#include "testing/sanitized.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_pair.h"
#include "tests/pair.h"
#include "tests/perturbed_model.h"

namespace outrider {
namespace {

using testing::OpenModel;
using testing::RunOptions;
using testing::ScriptedDrafter;

constexpr int kCases = testing::kSanitized ? 200 : 2500;

ModelOptions model_options() {
  ModelOptions options;
  options.n_ctx = 128;
  options.n_batch = 64;
  options.n_threads = 1;
  return options;
}

class SamplingProperty : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::TinyPairOptions pair;
    pair.target.eos_bias = -4.0f;  // an end token now and then
    pair.noise = 0.05f;
    const Status written =
        testing::write_tiny_pair(dir_.file("target.gguf"), dir_.file("draft.gguf"), pair);
    ASSERT_TRUE(written.ok()) << written.message();
    target_ = std::make_unique<OpenModel>(dir_.file("target.gguf"), model_options(),
                                          llama::ContextSettings{}, true);
    draft_ = std::make_unique<OpenModel>(dir_.file("draft.gguf"), model_options(),
                                         llama::ContextSettings{}, true);
    drafter_ = std::make_unique<DraftModelDrafter>(
        *draft_->model, vocabulary().size(),
        [this](Token t) { return vocabulary().is_end_of_generation(t); });
  }

  const Vocabulary& vocabulary() const { return target_->file->text_vocabulary(); }

  Completion run(std::vector<Drafter*> drafters, const RunOptions& options) {
    return testing::run_checked(*target_->model, vocabulary(), std::move(drafters), options,
                                [this] { return target_->model->check_integrity(); });
  }

  RunOptions random_case(std::mt19937& random) {
    RunOptions options;
    options.prompt = testing::seeded_prompts(vocabulary(), random(), 1, 30).front();
    options.sampling = testing::random_sampling(random, vocabulary().size());
    options.seed = random();
    options.max_tokens = static_cast<std::int32_t>(1 + random() % 20);
    if (random() % 4 == 0) options.stop = {"in", "e@"};
    if (random() % 2 == 0) {
      options.shape.branches = static_cast<std::int32_t>(2 + random() % 7);
      options.shape.split_p = 0.02f * static_cast<float>(random() % 8);
    }
    if (random() % 6 == 0) options.shape.p_min = 0.3f;
    if (random() % 6 == 0) options.shape.p_ratio = 1.5f;
    if (random() % 3 == 0) options.logprobs = static_cast<std::int32_t>(random() % 4);
    return options;
  }

  // Chains: the target's own words with an error now and then, noise, or the draft model.
  Completion run_speculative(std::mt19937& random, const RunOptions& options,
                             const Completion& plain) {
    const unsigned kind = random() % 4;
    if (kind < 2) return run({drafter_.get()}, options);
    std::vector<Token> whole = options.prompt;
    whole.insert(whole.end(), plain.tokens.begin(), plain.tokens.end());
    const std::int32_t wrong_every = static_cast<std::int32_t>(random() % 5);
    ScriptedDrafter prophet(testing::prophet(whole, 100, wrong_every, vocabulary().size()));
    if (kind == 2) return run({&prophet}, options);
    return run({drafter_.get(), &prophet}, options);
  }

  testing::TempDir dir_;
  std::unique_ptr<OpenModel> target_;
  std::unique_ptr<OpenModel> draft_;
  std::unique_ptr<DraftModelDrafter> drafter_;
};

void expect_same_logprobs(const Completion& got, const Completion& wanted) {
  ASSERT_EQ(got.has_logprobs, wanted.has_logprobs);
  ASSERT_EQ(got.logprobs.size(), got.has_logprobs ? got.tokens.size() : 0);
  ASSERT_EQ(got.logprobs.size(), wanted.logprobs.size());
  for (std::size_t i = 0; i < got.logprobs.size(); ++i) {
    const TokenLogprob& a = got.logprobs[i];
    const TokenLogprob& b = wanted.logprobs[i];
    ASSERT_EQ(a.chosen.id, got.tokens[i]);
    ASSERT_NEAR(a.chosen.logprob, b.chosen.logprob, 1e-5) << "token " << i;
    ASSERT_EQ(a.top.size(), b.top.size());
    for (std::size_t k = 0; k < a.top.size(); ++k) {
      ASSERT_EQ(a.top[k].id, b.top[k].id);
      ASSERT_NEAR(a.top[k].logprob, b.top[k].logprob, 1e-5);
    }
  }
}

TEST_F(SamplingProperty, EveryMixtureOfOptionsGivesThePlainText) {
  const std::uint64_t first = testing::test_seed(4000);
  std::int64_t accepted = 0;
  std::int64_t drafted = 0;
  int n_grammar = 0;
  int trees = 0;
  int n_failed = 0;
  for (std::uint64_t seed = first; seed < first + kCases; ++seed) {
    SCOPED_TRACE("OUTRIDER_TEST_SEED=" + std::to_string(seed));
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    RunOptions options = random_case(random);
    options.width = 1;
    const Completion plain = run({}, options);
    options.width = static_cast<std::int32_t>(2 + random() % 9);
    const Completion got = run_speculative(random, options, plain);
    trees += options.shape.branches > 1 ? 1 : 0;
    ASSERT_EQ(got.tokens, plain.tokens) << "width " << options.width;
    ASSERT_EQ(got.text, plain.text);
    ASSERT_EQ(got.finish, plain.finish);
    ASSERT_EQ(got.stop, plain.stop);
    ASSERT_EQ(got.error.message(), plain.error.message());
    ASSERT_NO_FATAL_FAILURE(expect_same_logprobs(got, plain));
    accepted += got.speculation.accepted;
    drafted += got.speculation.drafted;
    n_grammar += options.sampling.constrained() ? 1 : 0;
    n_failed += plain.finish == FinishReason::kError ? 1 : 0;
  }
  std::printf("%d cases, %d with a grammar, %d ended by an error; %lld of %lld drafted accepted\n",
              kCases, n_grammar, n_failed, static_cast<long long>(accepted),
              static_cast<long long>(drafted));
  EXPECT_GT(accepted, drafted / 5);  // the drafts matter
  EXPECT_GT(n_grammar, kCases / 5);
  EXPECT_GT(trees, kCases / 3);
  EXPECT_LT(n_failed, kCases / 20);  // what could not be said
}

// What the other rules say depends on the draft, but is repeatable, ends as it should, and keeps
// every constraint: a token that the chain forbids would end the request with an error.
TEST_F(SamplingProperty, TheOtherRulesRepeatThemselvesUnderEveryMixtureOfOptions) {
  const std::uint64_t first = testing::test_seed(9000);
  std::int64_t accepted = 0;
  int n_failed = 0;
  for (std::uint64_t seed = first; seed < first + kCases / 5; ++seed) {
    SCOPED_TRACE("OUTRIDER_TEST_SEED=" + std::to_string(seed));
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    RunOptions options = random_case(random);
    options.width = static_cast<std::int32_t>(2 + random() % 9);
    options.rule = AcceptanceRule::kRejection;
    if (random() % 2 == 0) {
      options.rule = AcceptanceRule::kBlock;
      options.shape.branches = 1;
    }
    const Completion got = run({drafter_.get()}, options);
    const Completion again = run({drafter_.get()}, options);
    ASSERT_EQ(got.tokens, again.tokens);
    ASSERT_EQ(got.finish, again.finish);
    ASSERT_LE(got.tokens.size(), static_cast<std::size_t>(options.max_tokens));
    ASSERT_NO_FATAL_FAILURE(expect_same_logprobs(got, again));
    accepted += got.speculation.accepted;
    n_failed += got.finish == FinishReason::kError ? 1 : 0;
  }
  EXPECT_GT(accepted, kCases / 5);
  EXPECT_LT(n_failed, kCases / 100);
}

// The control: with logits that differ by a hair in wide steps, the comparison must notice.
TEST_F(SamplingProperty, LogitsThatDifferInABatchAreNoticed) {
  int differ = 0;
  const std::uint64_t first = testing::test_seed(1);
  for (std::uint64_t seed = first; seed < first + 40; ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    RunOptions options = random_case(random);
    options.max_tokens = 20;
    const Completion plain = run({}, options);
    options.width = 4;
    testing::PerturbedModel shaken(*target_->model, 0.2f);
    const Completion got =
        testing::run_checked(shaken, vocabulary(), {drafter_.get()}, options, nullptr);
    differ += got.tokens != plain.tokens ? 1 : 0;
  }
  EXPECT_GT(differ, 3) << "a comparison that cannot fail shows nothing";
}

}  // namespace
}  // namespace outrider
