// Same output on models that cannot simply drop tokens: sliding windows, recurrent layers with and
// without snapshots. With the same seed, the text with speculation equals plain decoding's,
// whatever is drafted, and steps after a rejection go on speculating.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "testing/chi_square.h"
#include "testing/fake_drafter.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"
#include "tests/faulty_model.h"
#include "tests/pair.h"
#include "tests/step_widths.h"

namespace outrider {
namespace {

using testing::add_chain;
using testing::FaultyModel;
using testing::HalfDone;
using testing::OpenModel;
using testing::RunOptions;
using testing::ScriptedDrafter;
using testing::TinyArchitecture;

constexpr std::int32_t kTokens = 48;  // past the window of 32

class RollbackOutput : public ::testing::TestWithParam<TinyArchitecture> {
 protected:
  void SetUp() override {
    const testing::TinyModelOptions options{
        .architecture = GetParam(), .sliding_window = 32, .n_layer = 4};
    ASSERT_TRUE(testing::write_tiny_gguf(dir_.file("target.gguf"), options).ok());
    ModelOptions model;
    model.n_ctx = 160;
    model.n_batch = 64;
    model.n_threads = 1;
    target_ = std::make_unique<OpenModel>(dir_.file("target.gguf"), model, llama::ContextSettings{},
                                          /*extra_bufts=*/false);
  }

  Completion run(std::vector<Drafter*> drafters, const RunOptions& options) {
    return run_on(*target_->model, std::move(drafters), options);
  }

  // On `model`, which is the target or stands before it.
  Completion run_on(LanguageModel& model, std::vector<Drafter*> drafters,
                    const RunOptions& options) {
    return testing::run_checked(model, target_->file->text_vocabulary(), std::move(drafters),
                                options, [this] { return target_->model->check_integrity(); });
  }

  testing::TempDir dir_;
  std::unique_ptr<OpenModel> target_;
};

INSTANTIATE_TEST_SUITE_P(Architectures, RollbackOutput,
                         ::testing::Values(TinyArchitecture::kSlidingWindow,
                                           TinyArchitecture::kShortConv, TinyArchitecture::kMamba),
                         [](const ::testing::TestParamInfo<TinyArchitecture>& which) {
                           return testing::tiny_architecture_name(which.param);
                         });

// Right up to a place that differs from step to step, then wrong.
testing::Script sometimes_right(std::vector<Token> whole, std::int32_t n_vocab) {
  return [whole = std::move(whole), n_vocab](DraftRequest& r) {
    std::vector<Token> draft;
    const std::size_t right = noise_bits(noise_key(r.text.size(), 7), 0) % 7;
    for (std::size_t at = r.text.size(); at < r.text.size() + 6; ++at) {
      const bool known = at < whole.size() && at - r.text.size() < right;
      draft.push_back(known ? whole[at] : static_cast<Token>(5 + at % 90));
      if (draft.back() >= n_vocab) draft.back() = 5;
    }
    add_chain(r, draft);
    return Status();
  };
}

TEST_P(RollbackOutput, EveryDraftAndTemperatureGivesThePlainText) {
  const Vocabulary& vocabulary = target_->file->text_vocabulary();
  const std::uint64_t seed = testing::test_seed(20261121);
  const std::vector<std::vector<Token>> prompts = testing::seeded_prompts(vocabulary, seed, 8, 60);
  const std::vector<std::int32_t> some = {2, 4, 7, 16};
  testing::SeenWidths seen;
  std::int64_t accepted = 0;
  std::int64_t rejected = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    for (const float temperature : {0.0f, 1.0f}) {
      RunOptions options;
      options.prompt = prompts[i];
      options.seed = 500 + i;
      options.max_tokens = kTokens;
      options.sampling.temperature = temperature;
      const Completion plain = run({}, options);
      ASSERT_EQ(plain.finish, FinishReason::kLength) << plain.error.message();
      std::vector<Token> whole = prompts[i];
      whole.insert(whole.end(), plain.tokens.begin(), plain.tokens.end());
      const std::pair<std::string, testing::Script> scripts[] = {
          {"always right", testing::prophet(whole, 100, 0, vocabulary.size())},
          {"always wrong", testing::prophet(whole, 100, 1, vocabulary.size())},
          {"sometimes right", sometimes_right(whole, vocabulary.size())}};
      for (const std::pair<std::string, testing::Script>& script : scripts) {
        const bool all = temperature == 0.0f && i % 4 == 0;
        for (const std::int32_t width : all ? testing::every_width() : some) {
          SCOPED_TRACE(script.first + ", prompt " + std::to_string(i) + ", temperature " +
                       std::to_string(temperature) + ", width " + std::to_string(width));
          ScriptedDrafter drafter(script.second);
          options.width = width;
          const Completion got = run({&drafter}, options);
          ASSERT_EQ(got.tokens, plain.tokens);
          if (all) seen.add(width, got.speculation);
          if (width == 1) continue;
          EXPECT_TRUE(got.speculation.enabled) << got.speculation.reason;
          EXPECT_EQ(got.timings.prompt_tokens_evaluated, plain.timings.prompt_tokens_evaluated);
          const std::int64_t steps = got.speculation.steps;
          EXPECT_EQ(got.speculation.emitted, kTokens);
          // Each step but the last speculates, the one after a rejection too.
          EXPECT_GE(got.speculation.drafted, steps - 1);
          if (script.first == "always right") {
            EXPECT_EQ(got.speculation.accepted, got.speculation.drafted);
          }
          accepted += got.speculation.accepted;
          rejected += got.speculation.drafted - got.speculation.accepted;
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(rejected, 1000);
  // llama.cpp's snapshots take few tokens back, and steps are no wider than that.
  const std::int32_t most = target_->model->capabilities().max_width;
  EXPECT_EQ(seen.missing(std::min(testing::kWidestCompared, most)), "");
}

// Every evaluation of a text fails once: alone, and together with the one that is tried without
// drafts. What is half done then, a prefix read without its chain, goes on from there.
TEST_P(RollbackOutput, AnEvaluationThatFailsBetweenPrefixAndChainChangesNoText) {
  const Vocabulary& vocabulary = target_->file->text_vocabulary();
  const std::uint64_t seed = testing::test_seed(77);
  const std::vector<std::vector<Token>> prompts = testing::seeded_prompts(vocabulary, seed, 2, 30);
  int prefixes_kept = 0;
  int ended = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    RunOptions options;
    options.prompt = prompts[i];
    options.seed = 900 + i;
    options.max_tokens = 20;
    options.sampling.temperature = 1.0f;
    const Completion plain = run({}, options);
    ASSERT_EQ(plain.finish, FinishReason::kLength) << plain.error.message();
    std::vector<Token> whole = prompts[i];
    whole.insert(whole.end(), plain.tokens.begin(), plain.tokens.end());
    options.width = 6;
    for (const HalfDone half : {HalfDone::kNothing, HalfDone::kPrefixes, HalfDone::kChainsUndone}) {
      for (const bool twice : {false, true}) {
        for (std::int64_t call = 1;; ++call) {
          SCOPED_TRACE("prompt " + std::to_string(i) + ", half " +
                       std::to_string(static_cast<int>(half)) + ", evaluation " +
                       std::to_string(call) + (twice ? " and the next" : ""));
          std::set<std::int64_t> failing = {call};
          if (twice) failing.insert(call + 1);
          FaultyModel model(*target_->model, half, failing);
          ScriptedDrafter drafter(sometimes_right(whole, vocabulary.size()));
          const Completion got = run_on(model, {&drafter}, options);
          if (model.failures() == 0) break;  // the text has fewer evaluations
          prefixes_kept += model.prefixes_kept();
          if (got.finish == FinishReason::kError) {
            // Something was there to be lost: the request ends, with the reason. (A step without
            // drafts cannot be tried without them: there two faults in a row end it, too.)
            if (!twice || model.had_drafts()) ++ended;
            ASSERT_EQ(got.error.message(), "broken on command");
            ASSERT_LT(got.tokens.size(), plain.tokens.size());
          } else {
            ASSERT_EQ(got.finish, FinishReason::kLength) << got.error.message();
          }
          const std::vector<Token> beginning(
              plain.tokens.begin(),
              plain.tokens.begin() + static_cast<std::ptrdiff_t>(got.tokens.size()));
          ASSERT_EQ(got.tokens, beginning);
          if (HasFailure()) return;
        }
      }
    }
    options.width = 1;
    EXPECT_EQ(run({}, options).tokens, plain.tokens) << "nothing is left of the faults";
  }
  // With saved states a rejection leaves a prefix for the next step, with snapshots only the prompt
  // is one, and those have no copy to go back to.
  const Rollback rollback = target_->model->capabilities().rollback;
  EXPECT_GE(prefixes_kept, rollback == Rollback::kSaved ? 20 : rollback == Rollback::kAny ? 0 : 8);
  EXPECT_EQ(ended > 0, rollback == Rollback::kSnapshot);
}

}  // namespace
}  // namespace outrider
