// Replaying token texts: files by the drafters' table, and what is learned from piece to piece.
#include "lab/replay_run.h"

#include <gtest/gtest.h>

#include <atomic>

#include "testing/drafter_fixture.h"

namespace outrider::lab {
namespace {

using testing::kVocab;

class ReplayRunTest : public testing::DrafterTest {
 protected:
  ReplayPlan replaying(const std::string& drafters, const std::vector<DrafterFile>& files = {}) {
    ReplayPlan plan{.drafter = drafters, .drafters = testing::plan(drafters), .n_vocab = kVocab};
    plan.width = 6;
    plan.shape.branches = 6;
    const testing::FakeVocabulary vocabulary(kVocab, kNoToken);
    for (const DrafterFile& file : files) {
      Result<OpenedDrafterFile> opened = open_drafter_file(file, tokenizer_id(vocabulary));
      EXPECT_TRUE(opened.ok()) << opened.status().message();
      plan.files.push_back({*std::move(opened), 1.0});
    }
    return plan;
  }
  static Result<ReplayResult> run(const ReplayPlan& plan, const std::vector<Token>& text,
                                  const Watcher& watcher = {}) {
    return run_replay(plan, {.plain = true, .texts = {{.tokens = text, .given = 1}}, .notes = {}},
                      watcher);
  }
};

TEST_F(ReplayRunTest, AFileOfEveryDrafterMakesItGuessBetter) {
  const std::vector<Token> text = whole_text({1, 2}, 3, 200);
  const std::vector<DrafterFile> files = {
      {"suffix", store("store", kVocab, {text})},
      {"ngram-cache", ngrams("static", kVocab, text), "static"},
      {"ngram-cache", ngrams("dynamic", kVocab, text), "dynamic"}};
  for (const DrafterFile& file : files) {
    const Result<ReplayResult> without = run(replaying(file.drafter), text);
    const ReplayPlan plan = replaying(file.drafter, {file});
    const Result<ReplayResult> with = run(plan, text);
    ASSERT_TRUE(with.ok()) << with.status().message();
    EXPECT_GT(with->stats.accepted, without->stats.accepted) << file.path;
    EXPECT_GT(with->context_bytes, 0U);
    const json::Json object = replay_json(plan, *with);
    const std::string key = file.tier.empty() ? "stores_mapped" : file.tier;
    for (const char* other : {"static", "dynamic", "stores_mapped"}) {
      EXPECT_EQ(object["memory_bytes"][other] > 0, key == other) << key << " " << other;
    }
    EXPECT_NE(replay_table(plan, *with).find("tokens a step"), std::string::npos);
  }
}

TEST_F(ReplayRunTest, WhatAPieceHeldDraftsForTheNextOnesAndTheFileStaysAsItIs) {
  std::vector<Token> text;
  for (int i = 0; i < 8; ++i) {
    const std::vector<Token> piece = whole_text({1, 2}, 3, 38);
    text.insert(text.end(), piece.begin(), piece.end());
  }
  text.push_back(1);
  for (const bool with_file : {false, true}) {
    std::vector<DrafterFile> files;
    if (with_file) files = {{"ngram-cache", ngrams("dynamic", kVocab, {7, 8, 9, 7}), "dynamic"}};
    ReplayPlan plan = replaying("ngram-cache", files);
    plan.chunk = 40;
    const std::uint64_t before = with_file ? plan.files[0].opened.contents->memory_bytes() : 0;
    const Result<ReplayResult> learned = run(plan, text);
    ASSERT_TRUE(learned.ok()) << learned.status().message();
    EXPECT_EQ(learned->stats.texts, 8);
    EXPECT_EQ(learned->skipped, 1U);
    EXPECT_GT(learned->learned_bytes, before);
    if (with_file) {
      EXPECT_EQ(plan.files[0].opened.contents->memory_bytes(), before);
    }
    ReplayPlan forgetful = replaying("suffix");  // learns nothing
    forgetful.chunk = 40;
    EXPECT_GT(learned->stats.accepted, run(forgetful, text)->stats.accepted);
  }
}

TEST_F(ReplayRunTest, ShortTextsAndInterruptionsAreErrors) {
  EXPECT_EQ(run(replaying("suffix"), {1}).status().code(), StatusCode::kInvalidArgument);
  const std::atomic<bool> interrupt{true};
  EXPECT_EQ(run(replaying("suffix"), {1, 2, 3}, {.interrupt = &interrupt}).status().code(),
            StatusCode::kCancelled);
}

}  // namespace
}  // namespace outrider::lab
