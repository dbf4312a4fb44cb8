// Memory that runs out while a request is added: no later text goes on from what is there then, and
// no sequence of the target is lost.
#include <gtest/gtest.h>

#include <new>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "testing/fake_engine.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

// Each throws once, when its flag is up.
class DrafterShortOfMemory : public ScriptedDrafter {
 public:
  DrafterShortOfMemory() : ScriptedDrafter([](DraftRequest&) { return Status(); }) {}
  Status begin(SeqId seq, std::size_t kept) override {
    if (std::exchange(throws, false)) throw std::bad_alloc();
    return ScriptedDrafter::begin(seq, kept);
  }
  void end(SeqId seq) override {
    told_to_end.insert(seq);
    ScriptedDrafter::end(seq);
  }

  bool throws = false;
  std::set<SeqId> told_to_end;
};

// A draft's, which is left as llama.cpp's is: without the texts of all sequences.
class DraftShortOfMemory : public FakeModel {
 public:
  using FakeModel::FakeModel;
  Status truncate(SeqId seq, Pos length) override {
    if (!std::exchange(throws, false)) return FakeModel::truncate(seq, length);
    for (SeqId any = 0; any < capabilities().n_sequences; ++any) {
      (void)FakeModel::truncate(any, 0);
    }
    throw std::bad_alloc();
  }

  // Whether a sequence holds a first draft only, of which length() says nothing.
  bool holds_first_draft() const {
    for (SeqId seq = 0; seq < capabilities().n_sequences; ++seq) {
      if (waits(seq) && length(seq) == 0) return true;
    }
    return false;
  }

  bool throws = false;
};

class TargetShortOfMemory : public FakeModel {
 public:
  using FakeModel::FakeModel;
  Status share(SeqId from, SeqId to, Pos length) override {
    const Status status = FakeModel::share(from, to, length);
    if (std::exchange(throws, false)) throw std::bad_alloc();
    return status;
  }

  bool throws = false;
};

class SamplerShortOfMemory : public FakeSampler {
 public:
  SamplerShortOfMemory() : FakeSampler(1.0f) {}
  void begin(std::span<const Token> /*text*/, std::uint64_t /*seed*/) override {
    throw std::bad_alloc();
  }
};

// 20 tokens that two prompts begin with, then one of each.
std::vector<Token> long_prompt(Token own) {
  std::vector<Token> prompt(20, 3);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<Token>(i * 5 % kVocab);
  prompt.push_back(own);
  return prompt;
}

// Two sequences, which hold a long text and a short one. What follows a text depends on all of it.
class TwoIdleTexts {
 public:
  TwoIdleTexts()
      : rows_(random_rows(kVocab, 1, 3.0f, /*memory=*/64)),
        target(sharing(), rows_),
        engine(target, vocabulary_, {&drafter}, {.reuse_prefix = true, .least_awaited = 1}) {
    run(long_prompt(1), 30);
    short_text = std::vector<Token>(10, 7);
    for (const Token token : run(short_text, 5).tokens) short_text.push_back(token);
  }

  Completion run(const std::vector<Token>& prompt, std::int32_t max_tokens) {
    const Result<RequestId> id = engine.add(request(prompt, 1.0f, 5, max_tokens, 4));
    EXPECT_TRUE(id.ok());
    run_all(engine);
    return *engine.take(*id);
  }

  // Both sequences are there, and what goes on from the short text is its own continuation.
  void expect_sound() {
    EXPECT_EQ(engine.check_integrity(), "");
    std::vector<Token> prompt = short_text;
    prompt.push_back(2);
    EXPECT_EQ(run(prompt, 10).tokens, reference(rows_, prompt, 1.0f, 5, 10));
    EXPECT_EQ(run(long_prompt(2), 10).tokens, reference(rows_, long_prompt(2), 1.0f, 5, 10));
  }

 private:
  static Capabilities sharing() {
    Capabilities caps = capabilities(2);
    caps.can_share = true;
    return caps;
  }

  RowFunction rows_;
  FakeVocabulary vocabulary_{kVocab};

 public:
  TargetShortOfMemory target;
  DrafterShortOfMemory drafter;
  Engine engine;
  std::vector<Token> short_text;
};

TEST(EngineAdd, WhatMemoryRanOutForLeavesNoOthersTextUnderAnIdleOnesName) {
  for (const bool of_target : {false, true}) {
    TwoIdleTexts world;
    (of_target ? world.target.throws : world.drafter.throws) = true;
    world.drafter.told_to_end.clear();
    // It begins like the long text, and is given the short one's sequence.
    EXPECT_THROW((void)world.engine.add(request(long_prompt(2), 1.0f, 5, 10, 4)), std::bad_alloc);
    EXPECT_FALSE(world.target.throws || world.drafter.throws) << "there was nothing to fail";
    EXPECT_EQ(world.drafter.told_to_end, (std::set<SeqId>{0, 1})) << "its model may be empty";
    ASSERT_EQ(world.engine.idle().entries().size(), 2U);
    for (const IdleTexts::Entry& entry : world.engine.idle().entries()) {
      EXPECT_NE(entry.text().size(), world.short_text.size() - 1) << "given up";
    }
    world.expect_sound();
  }
}

// However far the text that goes on is: its draft is read again, and it goes on as it would have.
TEST(EngineAdd, ADraftThatLosesAllTextsGuessesForTheOthersAgain) {
  bool first_draft_lost = false;
  for (int n_steps = 1; n_steps <= 6; ++n_steps) {
    DraftShortOfMemory draft(capabilities(), random_rows(kVocab, 6, 3.0f));
    DraftModelDrafter drafter(draft, kVocab, {});
    EngineOnFake on(6, {&drafter});
    // Every other pass is interrupted, so that drafts are held from one step to the next.
    on.target.on_evaluate([&on] { on.engine.cancel(999); });
    const Result<RequestId> running = on.engine.add(request({1, 2, 3}, 1.0f, 5, 30, 4));
    ASSERT_TRUE(running.ok());
    for (int i = 0; i < n_steps; ++i) on.engine.step();
    ASSERT_TRUE(on.engine.busy());
    first_draft_lost = first_draft_lost || draft.holds_first_draft();
    draft.throws = true;
    EXPECT_THROW((void)on.engine.add(request({4, 5}, 1.0f, 7, 10, 4)), std::bad_alloc);
    EXPECT_FALSE(draft.throws) << "there was nothing to fail";
    EXPECT_EQ(drafter.check_integrity(), "");
    const Result<RequestId> later = on.engine.add(request({4, 5}, 1.0f, 7, 10, 4));
    ASSERT_TRUE(later.ok());
    run_all(on.engine, &drafter);
    const Result<Completion> got = on.engine.take(*running);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->tokens, reference(on.rows, {1, 2, 3}, 1.0f, 5, 30)) << n_steps << " steps";
    EXPECT_TRUE(got->speculation.enabled) << got->speculation.reason;
    EXPECT_GT(got->speculation.accepted, 0);
    const Result<Completion> other = on.engine.take(*later);
    ASSERT_TRUE(other.ok());
    EXPECT_EQ(other->tokens, reference(on.rows, {4, 5}, 1.0f, 7, 10)) << n_steps << " steps";
  }
  EXPECT_TRUE(first_draft_lost) << "the case that lengths do not tell";
}

TEST(EngineAdd, ASamplerThatCannotBeginChangesNothing) {
  TwoIdleTexts world;
  Request r = request(long_prompt(2), 1.0f, 5, 10, 4);
  r.sampler = std::make_unique<SamplerShortOfMemory>();
  EXPECT_THROW((void)world.engine.add(std::move(r)), std::bad_alloc);
  std::vector<Token> prompt = world.short_text;
  prompt.push_back(2);
  EXPECT_EQ(world.engine.check_integrity(), "");
  EXPECT_EQ(world.run(prompt, 3).cached_tokens,
            static_cast<std::int64_t>(world.short_text.size()) - 1);
  world.expect_sound();
}

TEST(EngineAdd, EverySequenceIsStillThereAfterManyFailures) {
  TwoIdleTexts world;
  for (int i = 0; i < 5; ++i) {
    world.drafter.throws = true;
    EXPECT_THROW((void)world.engine.add(request(long_prompt(2), 1.0f, 5, 10, 4)), std::bad_alloc);
  }
  EXPECT_TRUE(world.engine.add(request({1}, 1.0f, 1, 5, 1)).ok());
  EXPECT_TRUE(world.engine.add(request({2}, 1.0f, 1, 5, 1)).ok());
  run_all(world.engine);
}

}  // namespace
}  // namespace outrider
