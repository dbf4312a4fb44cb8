#include "lab/text_replay.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "draft/ngram/ngram_drafter.h"
#include "testing/chi_square.h"
#include "testing/fake_drafter.h"

namespace outrider {
namespace {

using Tokens = std::vector<Token>;
using testing::ScriptedDrafter;

Tokens counting(std::size_t n) {
  Tokens text(n);
  for (std::size_t i = 0; i < n; ++i) text[i] = static_cast<Token>(i % 50);
  return text;
}

TEST(TextReplay, AProphetGetsTheWholeWidthInEveryStep) {
  const Tokens text = counting(41);
  ScriptedDrafter drafter(testing::prophet(text, 100, 0, 50));
  TextReplay replay(drafter, {.width = 4});
  ASSERT_TRUE(replay.run(text, 1, false, nullptr).ok());
  const ReplayStats& s = replay.stats();
  EXPECT_EQ(s.texts, 1);
  EXPECT_EQ(s.tokens, 40);
  EXPECT_EQ(s.steps, 10);
  EXPECT_EQ(s.accepted, 30);
  EXPECT_EQ(s.steps_by_width[4], 10);
}

TEST(TextReplay, WithoutGuessesEachStepGivesOneToken) {
  ScriptedDrafter silent([](DraftRequest&) { return Status(); });
  TextReplay replay(silent, {.width = 8});
  ASSERT_TRUE(replay.run(counting(30), 10, false, nullptr).ok());
  EXPECT_EQ(replay.stats().tokens, 20);
  EXPECT_EQ(replay.stats().steps, 20);
  EXPECT_EQ(replay.stats().steps_by_width[1], 20);
  TextReplay plain(silent, {.width = 1});
  ASSERT_TRUE(plain.run(counting(30), 10, false, nullptr).ok());
  EXPECT_EQ(plain.stats().steps, 20);
}

TEST(TextReplay, ATreesBranchesAllCountAsDraftedAndThePathAsAccepted) {
  ScriptedDrafter branching([](DraftRequest& r) {
    const Token next = r.text.back() + 1;
    r.tree->add(kRoot, 99, 0.5f, r.mask);
    const NodeId right = r.tree->add(kRoot, next, 0.4f, r.mask);
    r.tree->add(right, 98, 0.2f, r.mask);
    return Status();
  });
  TextReplay replay(branching, {.width = 8});
  ASSERT_TRUE(replay.run(counting(11), 1, false, nullptr).ok());
  EXPECT_EQ(replay.stats().steps, 5);
  EXPECT_EQ(replay.stats().drafted, 15);
  EXPECT_EQ(replay.stats().accepted, 5);
  TextReplay narrow(branching, {.width = 2});
  ASSERT_TRUE(narrow.run(counting(11), 1, false, nullptr).ok());
  EXPECT_EQ(narrow.stats().drafted, 10) << "no step is wider than asked for";
  EXPECT_EQ(narrow.stats().accepted, 0);
}

TEST(TextReplay, TheNextTextMayKeepWhatItShares) {
  ScriptedDrafter silent([](DraftRequest&) { return Status(); });
  TextReplay replay(silent, {.width = 4});
  ASSERT_TRUE(replay.run(counting(20), 5, true, nullptr).ok());
  EXPECT_EQ(silent.last_kept, 0U);
  ASSERT_TRUE(replay.run(counting(40), 30, true, nullptr).ok());
  EXPECT_EQ(silent.last_kept, 20U);
  ASSERT_TRUE(replay.run(counting(40), 30, false, nullptr).ok());
  EXPECT_EQ(silent.last_kept, 0U);
}

// Says the tokens that it is given behind every text, each as likely as its place says.
class Parrot : public ScriptedDrafter {
 public:
  Parrot(std::string_view name, Tokens offsets, float chance)
      : ScriptedDrafter([this, offsets, chance](DraftRequest& r) {
          ++asked;
          NodeId at = kRoot;
          float reached = 1.0f;
          for (const Token offset : offsets) {
            reached *= chance;
            at = r.tree->add(at, r.text.back() + offset, reached, r.mask);
          }
          return Status();
        }),
        name_(name) {}
  std::string_view name() const override { return name_; }

  std::int64_t asked = 0;

 private:
  std::string_view name_;
};

TEST(TextReplay, SeveralDraftersAreMergedAndTheLikeliestNodesAreSent) {
  const Tokens text = counting(13);  // 0 1 2 ... 12
  Parrot right("right", {1, 2}, 0.5f);
  Parrot wrong("wrong", {7, 8, 9}, 0.9f);
  const DrafterPlan merged{.chains = {{"right"}, {"wrong"}}};
  TextReplay wide({&right, &wrong}, merged, {.width = 6});
  ASSERT_TRUE(wide.run(text, 1, false, nullptr).ok());
  EXPECT_EQ(wide.stats().steps, 4);
  EXPECT_EQ(wide.stats().drafted, 20);
  EXPECT_EQ(wide.stats().accepted, 8);
  const std::vector<ReplayDrafterStats>& s = wide.stats().drafters;
  EXPECT_EQ(s[0].name, "right");
  EXPECT_EQ(s[0].drafted, 8);
  EXPECT_EQ(s[0].accepted, 8);
  EXPECT_EQ(s[0].accepted_drafts, 4);
  EXPECT_EQ(s[1].drafted, 12);
  EXPECT_EQ(s[1].accepted, 0);
  EXPECT_EQ(s[1].accepted_drafts, 0);
  EXPECT_EQ(s[0].foregone + s[1].foregone, 0) << "all was sent";
  // Chances 0.9, 0.81, 0.729 and 0.5, 0.25: of the right ones the first fits at width 5, none at 4.
  TextReplay narrow({&right, &wrong}, merged, {.width = 5});
  ASSERT_TRUE(narrow.run(text, 1, false, nullptr).ok());
  EXPECT_EQ(narrow.stats().steps, 6);
  EXPECT_EQ(narrow.stats().drafters[0].drafted, 6);
  EXPECT_EQ(narrow.stats().drafters[0].accepted, 6);
  EXPECT_EQ(narrow.stats().drafters[0].foregone, 6) << "in each step, the second";
  TextReplay none({&right, &wrong}, merged, {.width = 4});
  ASSERT_TRUE(none.run(text, 1, false, nullptr).ok());
  EXPECT_EQ(none.stats().steps, 12);
  EXPECT_EQ(none.stats().drafters[0].drafted, 0);
  EXPECT_EQ(none.stats().drafters[0].drafts, 12);
  EXPECT_EQ(none.stats().drafters[0].foregone, 12);
}

TEST(TextReplay, AChainAsksTheNextOnlyWhereTheFirstFindsNothing) {
  const Tokens text = counting(21);
  Parrot even("even", {}, 0.5f);
  Parrot right("right", {1}, 0.5f);
  TextReplay chain({&even, &right}, {.chains = {{"right", "even"}}}, {.width = 4});
  ASSERT_TRUE(chain.run(text, 1, false, nullptr).ok());
  EXPECT_EQ(chain.stats().steps, 10);
  EXPECT_EQ(even.asked, 0);
  TextReplay back({&even, &right}, {.chains = {{"even", "right"}}}, {.width = 4});
  ASSERT_TRUE(back.run(text, 1, false, nullptr).ok());
  EXPECT_EQ(even.asked, 10);
  EXPECT_EQ(back.stats().drafters[0].calls, 10);
  EXPECT_EQ(back.stats().drafters[0].drafts, 0);
  EXPECT_EQ(back.stats().drafters[1].accepted, 10);
}

TEST(TextReplay, ItEndsWhenInterruptedAndPassesErrorsOn) {
  const std::atomic<bool> raised{true};
  ScriptedDrafter failing([](DraftRequest&) { return internal_error("on purpose"); });
  TextReplay replay(failing, {.width = 4});
  EXPECT_EQ(replay.run(counting(9), 1, false, &raised).code(), StatusCode::kCancelled);
  EXPECT_EQ(replay.run(counting(9), 1, false, nullptr).code(), StatusCode::kInternal);
}

// lookup-stats' own loop, written down once more with our caches: chunks, a context for each, which
// goes into the dynamic cache behind it.
ReplayStats lookup_stats(const Tokens& text, std::size_t chunk, std::int32_t n_draft) {
  ReplayStats stats;
  NgramCache context;
  NgramCache dynamic;
  for (std::size_t start = 0; start + chunk < text.size(); start += chunk) {
    const std::span<const Token> slice = std::span(text).subspan(start, chunk);
    std::size_t n = 1;
    while (n < chunk) {
      Tokens behind(slice.begin(), slice.begin() + static_cast<std::ptrdiff_t>(n));
      Tokens draft;
      while (static_cast<std::int32_t>(draft.size()) < n_draft) {
        const NgramGuess guess =
            guess_next({.context = &context, .dynamic = &dynamic, .corpus = nullptr}, behind);
        if (guess.token == kNoToken) break;
        draft.push_back(guess.token);
        behind.push_back(guess.token);
      }
      stats.drafted += static_cast<std::int64_t>(draft.size());
      ++stats.steps;
      for (std::size_t j = 0; j < draft.size() && n < chunk && slice[n] == draft[j]; ++j) {
        ++stats.accepted;
        ++n;
        context.count(slice.first(n), n - 1, 1, kMaxNgram);
      }
      if (n < chunk) {
        ++n;
        context.count(slice.first(n), n - 1, 1, kMaxNgram);
      }
    }
    dynamic.merge(context);
    context.clear();
  }
  return stats;
}

// Phrases of 3 to 12 tokens, said again and again with a slip in every tenth token: some n-grams
// are sure, some are not, and a chunk says what an earlier one said.
Tokens repetitive_text(std::mt19937_64& random, std::size_t length) {
  std::vector<Tokens> phrases(6);
  for (Tokens& phrase : phrases) {
    phrase.resize(3 + random() % 10);
    for (Token& token : phrase) token = static_cast<Token>(random() % 30);
  }
  Tokens text;
  while (text.size() < length) {
    for (const Token token : phrases[random() % phrases.size()]) {
      text.push_back(random() % 10 == 0 ? static_cast<Token>(random() % 30) : token);
    }
  }
  text.resize(length);
  return text;
}

TEST(TextReplay, InChunksWithTheContextLearnedItIsLookupStats) {
  std::mt19937_64 random(testing::test_seed(6130));
  std::int64_t accepted = 0;
  std::int64_t without_learning = 0;
  for (int round = 0; round < 20; ++round) {
    const Tokens text = repetitive_text(random, 600);
    const std::size_t chunk = 30 + random() % 100;
    NgramDrafter drafter(nullptr, std::make_shared<NgramCache>());
    TextReplay replay(drafter, {.width = 6});
    NgramDrafter forgetful(nullptr, std::make_shared<NgramCache>());
    TextReplay control(forgetful, {.width = 6});
    for (std::size_t start = 0; start + chunk < text.size(); start += chunk) {
      const std::span<const Token> piece = std::span(text).subspan(start, chunk);
      ASSERT_TRUE(replay.run(piece, 1, false, nullptr).ok());
      drafter.learn(0);
      ASSERT_TRUE(control.run(piece, 1, false, nullptr).ok());
    }
    const ReplayStats wanted = lookup_stats(text, chunk, 5);
    EXPECT_EQ(replay.stats().drafted, wanted.drafted);
    EXPECT_EQ(replay.stats().accepted, wanted.accepted);
    EXPECT_EQ(replay.stats().steps, wanted.steps);
    EXPECT_GT(wanted.accepted, 60);
    EXPECT_LT(wanted.accepted, wanted.drafted) << "some guesses are wrong";
    accepted += wanted.accepted;
    without_learning += control.stats().accepted;
  }
  EXPECT_LT(without_learning, accepted) << "a chunk's context helps the next ones";
}

}  // namespace
}  // namespace outrider
