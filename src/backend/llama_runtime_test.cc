// The runtime on real files: several requests at once, interleaved, cancelled, with reused state
// and a draft model, get the tokens that each gets alone without any of it.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "backend/llama_loader.h"
#include "base/random.h"
#include "serve/runtime.h"
#include "testing/chi_square.h"
#include "testing/random_request.h"
#include "testing/sanitized.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_pair.h"

namespace outrider {
namespace {

using testing::small_options;

constexpr std::uint32_t kRequests = testing::kSanitized ? 24 : 120;

class LlamaRuntime : public ::testing::Test {
 protected:
  LlamaRuntime()
      : loader_(
            LlamaLoaderOptions{.probe_budget_ms = 100, .cache_folder = std::filesystem::path()}) {}

  void SetUp() override {
    testing::TinyPairOptions pair;
    pair.target.weight_type = testing::WeightType::kQ8_0;
    pair.target.eos_bias = -4.0f;
    pair.noise = 0.05f;
    ASSERT_TRUE(testing::write_tiny_pair(target(), draft(), pair).ok());
  }

  std::string target() const { return dir_.file("target.gguf"); }
  std::string draft() const { return dir_.file("draft.gguf"); }

  std::unique_ptr<Runtime> make(const RuntimeOptions& options, bool with_draft) {
    Result<std::unique_ptr<Runtime>> made = Runtime::create(options, loader_);
    EXPECT_TRUE(made.ok());
    EXPECT_TRUE((*made)->load(ModelRole::kTarget, small_options(target())).ok());
    if (with_draft) {
      EXPECT_TRUE((*made)->load(ModelRole::kDraft, small_options(draft())).ok());
    }
    EXPECT_TRUE((*made)->wait_loaded(-1));
    const RuntimeStatus status = (*made)->status();
    EXPECT_TRUE(status.target.serving) << status.target.error.message();
    EXPECT_EQ(status.draft.serving, with_draft) << status.draft.error.message();
    return std::move(*made);
  }

  testing::TempDir dir_;
  LlamaLoader loader_;
};

CompletionRequest request(std::uint64_t seed, std::uint32_t i) {
  CompletionRequest r = testing::random_request(
      seed, i,
      {"You are a helpful assistant that answers in one sentence. ",
       "You are a helpful assistant that answers in one sentence. The sky is blue because ",
       "Once ", std::string(120, 'x') + " long prompt "});
  const NoiseKey key = noise_key(seed, i);
  r.width = 2 + static_cast<std::int32_t>(noise_bits(key, 7) % 6);
  r.draft.branches = 1 + static_cast<std::int32_t>(noise_bits(key, 8) % 3);
  r.speculative = noise_bits(key, 9) % 4 != 0;
  return r;
}

TEST_F(LlamaRuntime, InterleavedCancelledAndReusedSlotsEqualSoloRuns) {
  const std::uint64_t seed = testing::test_seed(3);
  const std::unique_ptr<Runtime> alone = make({.slots = 1, .reuse_prefix = false}, false);
  const std::unique_ptr<Runtime> busy =
      make({.slots = 4, .max_queue = 1000, .prompt_chunk = 32}, true);
  // The probe's budget may not reach all widths under a sanitizer; the texts below do.
  EXPECT_EQ(busy->status().exactness->reason.find("differ"), std::string::npos)
      << busy->status().exactness->reason;
  std::vector<CompletionId> ids;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    const Result<StartedCompletion> started = busy->start(request(seed, i));
    ASSERT_TRUE(started.ok()) << started.status().message();
    ids.push_back(started->id);
  }
  std::int64_t cancelled = 0;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    std::shared_ptr<const CompletionResult> result;
    for (int polls = 0; !result; ++polls) {
      if (i % 5 == 0 && polls == 3) {
        ASSERT_TRUE(busy->cancel(ids[i]).ok());
      }
      const Result<PolledCompletion> polled = busy->poll(ids[i], 20);
      ASSERT_TRUE(polled.ok());
      result = polled->result;
    }
    CompletionRequest plain = request(seed, i);
    plain.speculative = false;
    const Result<std::shared_ptr<const CompletionResult>> solo = alone->run(plain);
    ASSERT_TRUE(solo.ok());
    const Completion& got = result->completion;
    const Completion& expected = (*solo)->completion;
    if (got.finish == FinishReason::kCancelled) {
      ++cancelled;
      ASSERT_LE(got.tokens.size(), expected.tokens.size());
      EXPECT_TRUE(std::equal(got.tokens.begin(), got.tokens.end(), expected.tokens.begin()));
    } else {
      EXPECT_EQ(got.tokens, expected.tokens) << "request " << i << " of seed " << seed;
      EXPECT_EQ(got.text, expected.text);
      EXPECT_EQ(got.finish, expected.finish) << got.error.message();
    }
  }
  const RuntimeStatus status = busy->status();
  EXPECT_GT(status.cached_tokens, 0);
  EXPECT_GT(status.accepted_tokens, 0);
  EXPECT_EQ(busy->check_integrity(), "");
}

TEST_F(LlamaRuntime, LoadingIsCancelledAtEveryStage) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 2}, false);
  const auto status_of = [&runtime](ModelRole role) {
    const RuntimeStatus all = runtime->status();
    return role == ModelRole::kTarget ? all.target : all.draft;
  };
  for (const ModelRole role : {ModelRole::kTarget, ModelRole::kDraft}) {
    for (const double stage : {0.0, 0.01, 0.1, 0.3, 0.5, 0.6, 0.8, 1.0}) {
      ASSERT_TRUE(
          runtime->load(role, small_options(role == ModelRole::kTarget ? target() : draft())).ok());
      for (ModelStatus s = status_of(role); s.state == ModelState::kLoading && s.progress < stage;
           s = status_of(role)) {
        std::this_thread::yield();
      }
      const Status cancelled = runtime->cancel_load(role);
      ASSERT_TRUE(runtime->wait_loaded(-1));
      EXPECT_EQ(status_of(role).state, cancelled.ok() ? ModelState::kFailed : ModelState::kReady);
      EXPECT_TRUE(status_of(ModelRole::kTarget).serving);
      const Result<std::shared_ptr<const CompletionResult>> result = runtime->run(request(1, 1));
      EXPECT_TRUE(result.ok()) << result.status().message();
    }
  }
}

TEST_F(LlamaRuntime, FilesThatAreNoModelLeaveTheTargetServing) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1}, true);
  testing::write_bytes(dir_.file("junk.gguf"), "GGUF and then nothing of use");
  for (const std::string& path : {dir_.file("junk.gguf"), dir_.file("missing.gguf"), dir_.path()}) {
    for (const ModelRole role : {ModelRole::kTarget, ModelRole::kDraft}) {
      ASSERT_TRUE(runtime->load(role, small_options(path)).ok());
      ASSERT_TRUE(runtime->wait_loaded(-1));
      const RuntimeStatus s = runtime->status();
      const ModelStatus& status = role == ModelRole::kTarget ? s.target : s.draft;
      EXPECT_EQ(status.state, ModelState::kFailed);
      EXPECT_NE(status.error.message().find(path), std::string::npos) << status.error.message();
      EXPECT_TRUE(s.target.serving && s.draft.serving);
    }
  }
  CompletionRequest r = request(1, 3);
  r.speculative = true;
  const Result<std::shared_ptr<const CompletionResult>> result = runtime->run(r);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE((*result)->completion.speculation.enabled);
}

// Sizes may differ by 128, as Qwen2.5's do: ids at the end that the draft model has no row for.
TEST_F(LlamaRuntime, ATokenThatOnlyTheTargetHasDoesNoHarm) {
  testing::TinyPairOptions pair;
  pair.target.weight_type = testing::WeightType::kQ8_0;
  pair.target.vocabulary.n_padding = 128;
  pair.other_vocabulary = true;
  pair.noise = 0.02f;
  ASSERT_TRUE(testing::write_tiny_pair(target(), draft(), pair).ok());
  const std::unique_ptr<Runtime> runtime = make({.slots = 1}, true);
  for (const std::string& note : runtime->status().draft.notes) {
    EXPECT_EQ(note.find("its vocabulary is not the target's"), std::string::npos) << note;
  }
  const Token last = runtime->target()->vocabulary().size() - 1;
  const auto run = [&](bool with_padding, bool speculative) {
    CompletionRequest r;
    r.prompt.emplace_back("Once upon ");
    if (with_padding) r.prompt.emplace_back(last);
    r.prompt.emplace_back("a time");
    r.sampling.temperature = 0.7f;
    r.sampling.repeat_penalty = 1.1f;
    r.sampling.logit_bias = {{last, -1.0f}};
    r.seed = 5;
    r.max_tokens = 40;
    r.width = 4;
    r.speculative = speculative;
    r.drafters.chains = {{"draft-model"}};
    const Result<std::shared_ptr<const CompletionResult>> result = runtime->run(r);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? (*result)->completion : Completion();
  };
  for (const bool with_padding : {true, false}) {
    const Completion drafted = run(with_padding, true);
    EXPECT_EQ(drafted.tokens, run(with_padding, false).tokens);
    EXPECT_EQ(drafted.tokens.size(), 40U);
    EXPECT_EQ(drafted.speculation.accepted > 0, !with_padding) << drafted.speculation.drafted;
  }
  EXPECT_EQ(runtime->check_integrity(), "");
}

TEST_F(LlamaRuntime, AFullContextShiftsOnARealModelToo) {
  const std::unique_ptr<Runtime> runtime = make({.slots = 1}, true);
  std::vector<std::vector<Token>> texts;
  for (const bool speculative : {false, true}) {
    CompletionRequest r;
    r.prompt.emplace_back("Once upon a time");
    r.sampling.temperature = 1.0f;
    r.sampling.ignore_eos = true;
    r.seed = 5;
    r.max_tokens = 700;
    r.width = 4;
    r.shift_keep = 4;
    r.speculative = speculative;
    const Result<std::shared_ptr<const CompletionResult>> result = runtime->run(r);
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE((*result)->shifted);
    EXPECT_EQ((*result)->completion.speculation.enabled, speculative);
    texts.push_back((*result)->completion.tokens);
    EXPECT_EQ(texts.back().size(), 700U);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

}  // namespace
}  // namespace outrider
