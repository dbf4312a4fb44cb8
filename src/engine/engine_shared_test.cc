// Requests that begin alike share what the target has read: the text stays that of plain decoding,
// and nothing is read twice.
#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "engine/engine.h"
#include "testing/chi_square.h"
#include "testing/fake_engine.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

const EngineOptions kShare = {.prompt_chunk = 8, .reuse_prefix = true, .least_awaited = 1};

Capabilities sharing(std::int32_t n_sequences = 3) {
  Capabilities caps = capabilities(n_sequences);
  caps.can_share = true;
  return caps;
}

// 20 tokens that all prompts begin with, then one of each.
std::vector<Token> prompt_of(Token own, std::size_t n_common = 20) {
  std::vector<Token> prompt(n_common, 3);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<Token>(i * 5 % kVocab);
  prompt.push_back(own);
  return prompt;
}

TEST(SharedPrefix, TwoRequestsAtOnceReadWhatTheyShareOnce) {
  const RowFunction rows = random_rows(kVocab, 1, 3.0f);
  FakeModel target(sharing(), rows);
  FakeModel draft(sharing(), noisy_rows(rows, 2, 0.5f));
  DraftModelDrafter drafter(draft, kVocab, {});
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {&drafter}, kShare);
  const RequestId first = *engine.add(request(prompt_of(1), 1.0f, 5, 10, 4));
  const RequestId second = *engine.add(request(prompt_of(2), 1.0f, 6, 10, 4));
  engine.step();
  EXPECT_EQ(target.length(1), 20) << "shared at the end of the step that read it";
  EXPECT_GT(draft.length(1), 0);
  run_all(engine, &drafter);
  const Completion a = *engine.take(first);
  const Completion b = *engine.take(second);
  EXPECT_EQ(a.tokens, reference(rows, prompt_of(1), 1.0f, 5, 10));
  EXPECT_EQ(b.tokens, reference(rows, prompt_of(2), 1.0f, 6, 10));
  EXPECT_EQ(a.cached_tokens, 0);
  EXPECT_EQ(a.timings.prompt_tokens_evaluated, 21);
  EXPECT_EQ(b.cached_tokens, 20);
  EXPECT_EQ(b.timings.prompt_tokens_evaluated, 1);
}

TEST(SharedPrefix, WhoIsWaitedForMayOnlyRead) {
  const RowFunction rows = random_rows(kVocab, 1, 3.0f);
  FakeModel target(sharing(), rows);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {}, kShare);
  const RequestId first = *engine.add(request(prompt_of(1), 1.0f, 5, 0, 1));
  const RequestId second = *engine.add(request(prompt_of(2), 1.0f, 6, 10, 1));
  const RequestId third = *engine.add(request(prompt_of(2), 1.0f, 6, 0, 1));
  run_all(engine);
  EXPECT_EQ(engine.take(first)->timings.prompt_tokens_evaluated, 20);
  const Completion b = *engine.take(second);
  EXPECT_EQ(b.tokens, reference(rows, prompt_of(2), 1.0f, 6, 10));
  EXPECT_EQ(b.cached_tokens, 20);
  const Completion c = *engine.take(third);
  EXPECT_EQ(c.finish, FinishReason::kLength);
  EXPECT_EQ(c.cached_tokens, 20);
  EXPECT_EQ(c.timings.prompt_tokens_evaluated, 0);
}

TEST(SharedPrefix, ARequestThatRunsIsSharedAndGoesOnUndisturbed) {
  const RowFunction rows = random_rows(kVocab, 2, 3.0f);
  FakeModel target(sharing(), rows);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {}, kShare);
  const RequestId first = *engine.add(request(prompt_of(1), 1.0f, 5, 30, 1));
  for (int i = 0; i < 6; ++i) engine.step();
  const RequestId second = *engine.add(request(prompt_of(2), 1.0f, 6, 10, 1));
  EXPECT_EQ(target.length(1), 20) << "at once";
  run_all(engine);
  EXPECT_EQ(engine.take(first)->tokens, reference(rows, prompt_of(1), 1.0f, 5, 30));
  const Completion b = *engine.take(second);
  EXPECT_EQ(b.tokens, reference(rows, prompt_of(2), 1.0f, 6, 10));
  EXPECT_EQ(b.cached_tokens, 20);
}

TEST(SharedPrefix, ALongIdleTextIsKeptForItsOwnConversation) {
  const RowFunction rows = random_rows(kVocab, 3, 3.0f);
  FakeModel target(sharing(2), rows);
  const FakeVocabulary vocabulary(kVocab);
  Engine engine(target, vocabulary, {}, kShare);
  const auto run = [&](std::vector<Token> prompt) {
    const RequestId id = *engine.add(request(std::move(prompt), 1.0f, 5, 10, 1));
    run_all(engine);
    return *engine.take(id);
  };
  const Completion first = run(prompt_of(1));
  EXPECT_EQ(run(prompt_of(2)).cached_tokens, 20);
  std::vector<Token> longer = prompt_of(1);
  longer.insert(longer.end(), first.tokens.begin(), first.tokens.end());
  longer.push_back(4);
  EXPECT_EQ(run(longer).cached_tokens, 30) << "all that was read of the first conversation";
}

TEST(SharedPrefix, WhoIsWaitedForMayEndBefore) {
  const RowFunction rows = random_rows(kVocab, 4, 3.0f);
  for (const bool fails : {false, true}) {
    FakeModel target(sharing(), rows);
    const FakeVocabulary vocabulary(kVocab);
    Engine engine(target, vocabulary, {}, kShare);
    // 40 tokens in common: two steps of the batch of 24.
    const RequestId first = *engine.add(request(prompt_of(1, 40), 1.0f, 5, 10, 1));
    const RequestId second = *engine.add(request(prompt_of(2, 40), 1.0f, 6, 10, 1));
    engine.step();
    EXPECT_EQ(target.length(0), 24);
    EXPECT_EQ(target.length(1), 0);
    engine.cancel(first);
    if (fails) target.fail_share({internal_error("on purpose")});
    run_all(engine);
    EXPECT_EQ(engine.take(first)->finish, FinishReason::kCancelled);
    const Completion b = *engine.take(second);
    EXPECT_EQ(b.tokens, reference(rows, prompt_of(2, 40), 1.0f, 6, 10));
    EXPECT_EQ(b.cached_tokens, fails ? 0 : 24);
  }
}

// Three requests with 40 tokens in common, which take two steps; the first is cancelled in between.
TEST(SharedPrefix, WhoIsWaitedForMayEndAndTheRestIsStillReadOnce) {
  const RowFunction rows = random_rows(kVocab, 4, 3.0f);
  for (const bool drafts : {false, true}) {
    FakeModel target(sharing(), rows);
    FakeModel draft(sharing(), noisy_rows(rows, 2, 0.5f));
    DraftModelDrafter drafter(draft, kVocab, {});
    const FakeVocabulary vocabulary(kVocab);
    Engine engine(target, vocabulary, {drafts ? &drafter : nullptr}, kShare);
    const RequestId first = *engine.add(request(prompt_of(1, 40), 1.0f, 5, 10, 4));
    const RequestId second = *engine.add(request(prompt_of(2, 40), 1.0f, 6, 10, 4));
    const RequestId third = *engine.add(request(prompt_of(4, 40), 1.0f, 7, 10, 4));
    engine.step();
    EXPECT_EQ(target.length(0), 24);
    engine.cancel(first);
    run_all(engine, &drafter);
    EXPECT_EQ(engine.take(first)->finish, FinishReason::kCancelled);
    const Completion b = *engine.take(second);
    const Completion c = *engine.take(third);
    EXPECT_EQ(b.tokens, reference(rows, prompt_of(2, 40), 1.0f, 6, 10));
    EXPECT_EQ(c.tokens, reference(rows, prompt_of(4, 40), 1.0f, 7, 10));
    EXPECT_EQ(b.cached_tokens, 24);
    EXPECT_EQ(b.timings.prompt_tokens_evaluated, 17);
    EXPECT_EQ(c.cached_tokens, 40);
    EXPECT_EQ(c.timings.prompt_tokens_evaluated, 1);
  }
}

// The third waits for the second, with which it has 48 tokens in common, and that for the first.
// Whichever of the two ends, what is left in common is read once.
TEST(SharedPrefix, WhoWaitsForOneThatWaitsIsNotLeftAlone) {
  const RowFunction rows = random_rows(kVocab, 4, 3.0f);
  std::vector<Token> longer = prompt_of(2, 40);
  longer.insert(longer.end(), {3, 1, 4, 1, 5, 9, 2});
  std::vector<Token> other = longer;
  longer.push_back(6);
  other.push_back(7);
  for (const bool first_ends : {true, false}) {
    FakeModel target(sharing(), rows);
    const FakeVocabulary vocabulary(kVocab);
    Engine engine(target, vocabulary, {}, kShare);
    const RequestId first = *engine.add(request(prompt_of(1, 40), 1.0f, 5, 8, 1));
    const RequestId second = *engine.add(request(longer, 1.0f, 6, 8, 1));
    const RequestId third = *engine.add(request(other, 1.0f, 7, 8, 1));
    engine.step();
    EXPECT_EQ(target.length(0), 24);
    EXPECT_EQ(target.length(1) + target.length(2), 0);
    engine.cancel(first_ends ? first : second);
    run_all(engine);
    const Completion c = *engine.take(third);
    EXPECT_EQ(c.tokens, reference(rows, other, 1.0f, 7, 8));
    EXPECT_EQ(c.cached_tokens, first_ends ? 48 : 40);
    if (!first_ends) continue;
    const Completion b = *engine.take(second);
    EXPECT_EQ(b.tokens, reference(rows, longer, 1.0f, 6, 8));
    EXPECT_EQ(b.cached_tokens, 24);
  }
}

TEST(SharedPrefix, WithoutItEveryPromptIsRead) {
  const RowFunction rows = random_rows(kVocab, 5, 3.0f);
  for (const bool reuse : {false, true}) {
    FakeModel target(reuse ? capabilities() : sharing(), rows);
    const FakeVocabulary vocabulary(kVocab);
    EngineOptions options = kShare;
    options.reuse_prefix = reuse;
    Engine engine(target, vocabulary, {}, options);
    const RequestId first = *engine.add(request(prompt_of(1), 1.0f, 5, 10, 1));
    const RequestId second = *engine.add(request(prompt_of(2), 1.0f, 6, 10, 1));
    run_all(engine);
    EXPECT_EQ(target.shares(), 0);
    EXPECT_EQ(engine.take(first)->cached_tokens, 0);
    EXPECT_EQ(engine.take(second)->cached_tokens, 0);
  }
}

// Interleavings of requests that begin alike, each against plain decoding of it alone: cancels,
// failures of every call, a draft model, few cells, models that cannot share.
class AlikeRequests {
 public:
  AlikeRequests(std::uint64_t seed, bool can_share)
      : seed_(seed),
        rows_(random_rows(kVocab, seed, 3.0f)),
        target_(caps(can_share), rows_),
        draft_(caps(can_share), noisy_rows(rows_, seed, 0.7f)),
        drafter_(draft_, kVocab, {}),
        engine_(target_, vocabulary_, {&drafter_}, kShare) {}

  void run(std::uint32_t n_requests) {
    for (std::uint32_t i = 0; i < n_requests; ++i) {
      key_ = noise_key(seed_, i);
      add(i);
      fail();
      for (std::uint32_t n = noise_bits(key_, 5) % 6; n > 0 && engine_.busy(); --n) step();
      if (noise_bits(key_, 6) % 6 == 0 && !prompts_.empty())
        engine_.cancel(prompts_.begin()->first);
      if (::testing::Test::HasFailure()) return;
    }
    for (int i = 0; engine_.busy(); ++i) {
      ASSERT_LT(i, 2000) << "no progress";
      step();
    }
  }

  std::int64_t cached() const { return cached_; }
  std::int64_t shares() const { return target_.shares(); }
  std::int64_t draft_shares() const { return draft_.shares(); }

 private:
  static Capabilities caps(bool can_share) {
    Capabilities caps = capabilities(4);
    caps.can_share = can_share;
    return caps;
  }

  std::uint32_t draw(std::uint32_t what, std::uint32_t n) { return noise_bits(key_, what) % n; }

  // One of two beginnings, or what was said before, up to some token; then something new.
  void add(std::uint32_t i) {
    if (engine_.idle().entries().empty()) return;
    std::vector<Token> prompt = prompt_of(0, 10 + draw(0, 25));
    if (draw(1, 4) == 0) prompt[0] = 7;
    if (draw(2, 3) == 0 && !said_.empty()) {
      prompt = said_;
      prompt.resize(1 + draw(3, static_cast<std::uint32_t>(prompt.size())));
    }
    prompt.push_back(static_cast<Token>(draw(4, kVocab)));
    if (prompt.size() > 44) prompt.resize(44);
    Request r = request(prompt, 1.0f, i, 1 + static_cast<std::int32_t>(draw(7, 12)),
                        1 + static_cast<std::int32_t>(draw(8, 5)));
    r.speculative = draw(9, 4) != 0;
    const Result<RequestId> id = engine_.add(std::move(r));
    ASSERT_TRUE(id.ok());
    prompts_[*id] = {prompt, i};
  }

  void fail() {
    if (draw(10, 8) == 0) target_.fail_evaluate({internal_error("on purpose")});
    if (draw(11, 8) == 0) target_.fail_share({internal_error("on purpose")});
    if (draw(12, 8) == 0) draft_.fail_share({Status(), internal_error("on purpose")});
    if (draw(13, 8) == 0) draft_.fail_commit({internal_error("on purpose")});
  }

  void step() {
    const std::vector<Update> updates = engine_.step();
    ASSERT_EQ(engine_.check_integrity(), "");
    ASSERT_EQ(drafter_.check_integrity(), "");
    for (const Update& update : updates) {
      if (update.finished) finish(update.id);
    }
  }

  void finish(RequestId id) {
    const Completion got = *engine_.take(id);
    const auto& [prompt, seed] = prompts_[id];
    ASSERT_EQ(got.tokens, reference(rows_, prompt, 1.0f, seed, got.tokens.size()))
        << "seed " << seed_ << ", request " << seed << ", cached " << got.cached_tokens;
    cached_ += got.cached_tokens;
    said_ = prompt;
    said_.insert(said_.end(), got.tokens.begin(), got.tokens.end());
    prompts_.erase(id);
  }

  std::uint64_t seed_;
  RowFunction rows_;
  FakeModel target_;
  FakeModel draft_;
  DraftModelDrafter drafter_;
  const FakeVocabulary vocabulary_ = FakeVocabulary(kVocab);
  Engine engine_;
  NoiseKey key_{};
  std::map<RequestId, std::pair<std::vector<Token>, std::uint32_t>>
      prompts_;  // running, with seeds
  std::vector<Token> said_;
  std::int64_t cached_ = 0;
};

TEST(SharedPrefix, EveryTextIsThatOfASoloRun) {
  const std::uint64_t seed = test_seed(1);
  for (std::uint64_t n = 0; n < 8; ++n) {
    AlikeRequests world(seed + n, /*can_share=*/true);
    world.run(300);
    ASSERT_FALSE(HasFailure()) << "seed " << seed + n;
    EXPECT_GT(world.shares(), 50);
    EXPECT_GT(world.draft_shares(), 5);
    AlikeRequests other(seed + n, /*can_share=*/false);
    other.run(300);
    ASSERT_FALSE(HasFailure()) << "seed " << seed + n;
    EXPECT_EQ(other.shares(), 0);
    EXPECT_GT(world.cached(), other.cached());
  }
}

// The negative control: a sequence that began with another text says something else.
TEST(SharedPrefix, ATextThatIsNotWhatItShouldBeIsSeen) {
  const RowFunction rows = random_rows(kVocab, 6, 3.0f, /*memory=*/64);
  FakeModel target(sharing(), rows);
  const TokenTree tree(5);
  std::vector<std::vector<float>> seen;
  for (const Token first : {1, 2}) {
    const std::vector<Token> prefix = {first, 2, 3};
    const EvalItem text{.seq = 0, .prefix = prefix};
    ASSERT_TRUE(target.truncate(0, 0).ok());
    ASSERT_TRUE(target.evaluate({&text, 1}).ok());
    ASSERT_TRUE(target.commit(0, {}).ok());
    ASSERT_TRUE(target.share(0, 1, 3).ok());
    const EvalItem item{.seq = 1, .prefix = {}, .tree = &tree};
    ASSERT_TRUE(target.evaluate({&item, 1}).ok());
    const std::span<const float> row = target.logits(0, kRoot);
    seen.emplace_back(row.begin(), row.end());
    ASSERT_TRUE(target.commit(1, {}).ok());
  }
  EXPECT_NE(seen[0], seen[1]);
}

}  // namespace
}  // namespace outrider
