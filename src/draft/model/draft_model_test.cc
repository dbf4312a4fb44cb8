#include "draft/model/draft_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "dist/gumbel.h"
#include "draft/model/draft_model_test.h"
#include "testing/chi_square.h"
#include "testing/fake_model.h"

namespace outrider {
namespace {

using testing::FakeModel;
using testing::FakeSampler;

using namespace testing::draft_model;  // NOLINT: the shared names of these tests

TEST(DraftModel, DraftsWhatItWouldSayItselfWithTheTargetsNoise) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 1, 2.0f);
  FakeModel model(capabilities(), rows);
  DraftModelDrafter drafter(model, kVocab, {});
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  Talk talk({1, 2, 3});
  DraftRequest request[] = {talk.request(5)};
  ASSERT_TRUE(drafter.draft(request).ok());
  EXPECT_EQ(talk.drafted(), expected(rows, {1, 2, 3}, 5));
  EXPECT_TRUE(talk.tree->is_chain());
  EXPECT_EQ(drafter.check_integrity(), "");
  // The prompt's pass gives the first token, four more passes the others.
  EXPECT_EQ(model.evaluations(), 5);
}

TEST(DraftModel, AfterEveryAcceptanceCountTheNextDraftCostsNoExtraPass) {
  for (std::size_t accepted = 0; accepted <= 4; ++accepted) {
    FourGuessed four;
    auto& [rows, model, drafter, talk, drafted] = four;
    talk.text.insert(talk.text.end(), drafted.begin(),
                     drafted.begin() + static_cast<std::ptrdiff_t>(accepted));
    const Token other = accepted < 4 ? (drafted[accepted] + 1) % kVocab : 7;
    talk.text.push_back(other);
    drafter.accept(0, talk.text);

    const std::int64_t passes = model.evaluations();
    const std::int64_t tokens = model.tokens_evaluated();
    DraftRequest second[] = {talk.request(4)};
    ASSERT_TRUE(drafter.draft(second).ok());
    EXPECT_EQ(talk.drafted(), expected(rows, talk.text, 4)) << accepted << " accepted";
    EXPECT_EQ(model.evaluations() - passes, 4);
    // Only after full acceptance a token more: the last drafted one, which rides along.
    EXPECT_EQ(model.tokens_evaluated() - tokens, accepted == 4 ? 5 : 4);
    EXPECT_EQ(drafter.check_integrity(), "");
  }
}

// While a tree is tentative the model cannot rebuild its cache.
TEST(DraftModel, AGuessIsHeldNoLongerThanTheTextMayFollowIt) {
  FourGuessed four;
  auto& [rows, model, drafter, talk, drafted] = four;
  talk.text.push_back(drafted[0]);
  drafter.accept(0, talk.text);
  EXPECT_TRUE(model.waits(0)) << "the text may take the next guess, too";
  talk.text.push_back((drafted[1] + 1) % kVocab);
  drafter.accept(0, talk.text);
  EXPECT_FALSE(model.waits(0));
  EXPECT_EQ(model.text(0), (std::vector<Token>{1, 2, 3, drafted[0]})) << "what was right stays";
  EXPECT_EQ(drafter.check_integrity(), "");
}

TEST(DraftModel, ATextThatRestsKeepsWhatWasRightAndNoGuesses) {
  FourGuessed four;
  auto& [rows, model, drafter, talk, drafted] = four;
  talk.text.insert(talk.text.end(), {drafted[0], drafted[1]});
  drafter.accept(0, talk.text);
  drafter.rest(0, talk.text);
  EXPECT_FALSE(model.waits(0));
  EXPECT_EQ(model.text(0), (std::vector<Token>{1, 2, 3, drafted[0]}));
  EXPECT_EQ(drafter.check_integrity(), "");
  ASSERT_TRUE(drafter.begin(0, 4).ok());
  EXPECT_EQ(model.length(0), 4);
}

// A cache that is full of others' guesses is no reason to guess nothing for the rest of the text.
TEST(DraftModel, OthersGuessesMakeRoomAndARefusalIsForgotten) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 2, 2.0f);
  FakeModel model(capabilities(), rows);
  model.set_total_cells(14, /*told=*/true);
  DraftModelDrafter drafter(model, kVocab, {});
  Talk first({1, 2, 3}, 0);
  Talk second({4, 5, 6}, 1);
  for (const SeqId seq : {0, 1}) ASSERT_TRUE(drafter.begin(seq, 0).ok());
  DraftRequest many[] = {first.request(8)};
  ASSERT_TRUE(drafter.draft(many).ok());
  ASSERT_EQ(model.room(1), 14 - 3 - 7) << "the last guess was not run";
  second.text = {4, 5, 6, 7, 8, 9};
  DraftRequest other[] = {second.request(2)};
  ASSERT_TRUE(drafter.draft(other).ok());
  EXPECT_EQ(second.drafted().size(), 2U);
  EXPECT_EQ(drafter.limit_reason(1), "");
  EXPECT_EQ(model.text(0), (std::vector<Token>{1, 2}));

  model.set_total_cells(9, /*told=*/true);
  second.text.insert(second.text.end(), {1, 2, 3});
  DraftRequest full[] = {second.request(2)};
  ASSERT_TRUE(drafter.draft(full).ok());
  EXPECT_NE(drafter.limit_reason(1), "");
  model.set_total_cells(40, /*told=*/true);
  DraftRequest again[] = {second.request(2)};
  ASSERT_TRUE(drafter.draft(again).ok());
  EXPECT_EQ(second.drafted().size(), 2U);
  EXPECT_EQ(drafter.limit_reason(1), "");
}

// Down the tree for some nodes, then some tokens of its own.
void go_on(Talk& talk, std::uint64_t& state) {
  NodeId at = kRoot;
  for (std::uint64_t n = mix64(++state) % 5; n > 0; --n) {
    for (NodeId id = at + 1; id < talk.tree->size(); ++id) {
      if (talk.tree->node(id).parent != at || mix64(++state) % 3 == 0) continue;
      at = id;
      talk.text.push_back(talk.tree->token(id));
      break;
    }
  }
  for (std::uint64_t n = 1 + mix64(++state) % 3; n > 0; --n) {
    talk.text.push_back(static_cast<Token>(mix64(++state) % kVocab));
  }
}

// By what it says the planner decides whether reading pays, and takes passes for reading.
TEST(DraftModel, WhatItSaysItKnowsIsWhatTheNextDraftDoesNotRead) {
  std::uint64_t state = testing::test_seed(23);
  Capabilities caps = capabilities(1, 200);
  caps.max_leaves = 4;
  int own_guesses = 0;
  for (int round = 0; round < 200; ++round) {
    FakeModel model(caps, testing::random_rows(kVocab, mix64(++state), 2.0f));
    DraftModelDrafter drafter(model, kVocab, {});
    ASSERT_TRUE(drafter.begin(0, 0).ok());
    Talk talk({1, 2, 3});
    std::int64_t asked_at = 0;
    for (int step = 0; step < 12; ++step) {
      const std::int64_t length = static_cast<std::int64_t>(talk.text.size());
      const std::int64_t known = drafter.known(0, talk.text);
      own_guesses += known > asked_at ? 1 : 0;
      const std::int64_t before = model.tokens_evaluated();
      DraftRequest one_pass[] = {talk.request(1)};
      const bool fails = mix64(++state) % 8 == 0;
      if (fails) model.fail_evaluate({internal_error("made up")});
      ASSERT_EQ(drafter.draft(one_pass).ok(), !fails);
      if (!fails) {
        ASSERT_EQ(model.tokens_evaluated() - before, length - known) << "step " << step;
        ASSERT_LT(known, length);
      }
      // The same text again, with more of a tree behind it.
      DraftRequest more[] = {talk.request(5)};
      more[0].shape.branches = 3;
      ASSERT_TRUE(drafter.draft(more).ok());
      asked_at = length;
      go_on(talk, state);
      if (mix64(++state) % 6 != 0) continue;
      const std::size_t kept = mix64(++state) % talk.text.size();
      talk.text.resize(kept + 1);
      ASSERT_TRUE(drafter.begin(0, kept).ok());
      ASSERT_LE(drafter.known(0, talk.text), static_cast<std::int64_t>(kept));
    }
  }
  EXPECT_GT(own_guesses, 200);
}

// Asks how sure the drafter is, and wants chains of three.
class WantsThree : public DraftGuide {
 public:
  float chance(std::int32_t /*depth*/, float confidence) const override { return confidence; }
  bool another_pass(float /*tip_chance*/, std::int32_t tip_depth) override { return tip_depth < 3; }
};

// A model that is flatter than its target learns to guess more sharply, and is right more often.
TEST(DraftModel, LearnsHowSharpItsGuessesShouldBe) {
  constexpr std::size_t kTokens = 3000;
  const testing::RowFunction rows = testing::random_rows(kVocab, 1, 2.0f);
  const auto flat_rows = [&rows](std::span<const Token> text) {
    std::vector<float> row = rows(text);
    for (float& logit : row) logit *= 0.5f;
    return row;
  };
  const auto accepted = [&](bool learns, std::vector<double>* learned) {
    FakeModel model(capabilities(1, 2 * kTokens), flat_rows);
    DraftModelDrafter drafter(model, kVocab, {}, learns);
    EXPECT_TRUE(drafter.begin(0, 0).ok());
    Talk talk({1, 2, 3});
    const std::vector<Token> said = expected(rows, talk.text, kTokens);
    WantsThree guide;
    std::size_t n_accepted = 0;
    for (std::size_t at = 0; at + 4 < kTokens;) {
      DraftRequest request[] = {talk.request(3)};
      request[0].guide = &guide;
      EXPECT_TRUE(drafter.draft(request).ok());
      const std::vector<Token> guesses = talk.drafted();
      std::size_t right = 0;
      while (right < guesses.size() && guesses[right] == said[at + right]) ++right;
      n_accepted += right;
      for (std::size_t i = 0; i <= right; ++i) talk.text.push_back(said[at++]);
      drafter.accept(0, talk.text);
      EXPECT_EQ(drafter.check_integrity(), "");
    }
    *learned = drafter.learned();
    return n_accepted;
  };
  std::vector<double> learned;
  const std::size_t plain = accepted(false, &learned);
  EXPECT_EQ(learned[0], 1.0);
  const std::size_t sharp = accepted(true, &learned);
  EXPECT_GT(learned[0], 1.4);
  EXPECT_GT(sharp, plain + plain / 20);
}

TEST(DraftModel, LongTextsAreCaughtUpInBatches) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 3, 2.0f);
  FakeModel model(capabilities(), rows);
  DraftModelDrafter drafter(model, kVocab, {});
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  std::vector<Token> prompt;
  for (Token t = 0; t < 70; ++t) prompt.push_back(t % kVocab);
  Talk talk(prompt);
  DraftRequest request[] = {talk.request(3)};
  ASSERT_TRUE(drafter.draft(request).ok());
  EXPECT_EQ(talk.drafted(), expected(rows, prompt, 3));
}

TEST(DraftModel, SequencesShareItsPasses) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 4, 2.0f);
  FakeModel model(capabilities(), rows);
  DraftModelDrafter drafter(model, kVocab, {});
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  ASSERT_TRUE(drafter.begin(1, 0).ok());
  Talk a({1, 2}, 0), b({3}, 1);
  DraftRequest requests[] = {a.request(4), b.request(2)};
  ASSERT_TRUE(drafter.draft(requests).ok());
  EXPECT_EQ(a.drafted(), expected(rows, {1, 2}, 4));
  EXPECT_EQ(b.drafted(), expected(rows, {3}, 2));
  EXPECT_EQ(model.evaluations(), 4);
  EXPECT_EQ(drafter.check_integrity(), "");
}

TEST(DraftModel, NothingIsDraftedBehindAnEndToken) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 5, 2.0f);
  const std::vector<Token> would = expected(rows, {1}, 6);
  FakeModel model(capabilities(), rows);
  DraftModelDrafter drafter(model, kVocab, [&](Token t) { return t == would[2]; });
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  Talk talk({1});
  DraftRequest request[] = {talk.request(6)};
  ASSERT_TRUE(drafter.draft(request).ok());
  const std::vector<Token>::const_iterator end = std::find(would.begin(), would.end(), would[2]);
  EXPECT_EQ(talk.drafted(), std::vector<Token>(would.begin(), end + 1));
}

TEST(DraftModel, IdsBeyondTheTargetsVocabularyAreNeverProposed) {
  // The padded ids have by far the largest logits.
  const testing::RowFunction rows = [](std::span<const Token>) {
    return std::vector<float>{0, 1, 2, 0, 1, 2, 0, 1, 50, 50};
  };
  FakeModel model(capabilities(), rows);
  DraftModelDrafter drafter(model, /*n_target_vocab=*/8, {});
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  Talk talk({1});
  DraftRequest request[] = {talk.request(8)};
  ASSERT_TRUE(drafter.draft(request).ok());
  ASSERT_EQ(talk.drafted().size(), 8U);
  for (const Token t : talk.drafted()) EXPECT_LT(t, 8);
}

TEST(DraftModel, AFailedPassLeavesAUsableDraftAndAStateThatIsInStep) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 6, 2.0f);
  FakeModel model(capabilities(), rows);
  DraftModelDrafter drafter(model, kVocab, {});
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  Talk talk({1, 2});
  model.fail_evaluate({Status(), Status(), internal_error("broken")});
  DraftRequest request[] = {talk.request(5)};
  EXPECT_EQ(drafter.draft(request).message(), "broken");
  EXPECT_EQ(talk.drafted(), expected(rows, {1, 2}, 2));
  EXPECT_EQ(drafter.check_integrity(), "");
  DraftRequest again[] = {talk.request(5)};
  ASSERT_TRUE(drafter.draft(again).ok());
  EXPECT_EQ(talk.drafted(), expected(rows, {1, 2}, 5));
}

TEST(DraftModel, AFullContextIsSaidAndDraftingGoesOnForOthers) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 7, 2.0f);
  FakeModel model(capabilities(2, /*n_ctx=*/6), rows);
  DraftModelDrafter drafter(model, kVocab, {});
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  ASSERT_TRUE(drafter.begin(1, 0).ok());
  Talk full({1, 2, 3, 4, 5, 6, 7}, 0), fits({1}, 1);
  DraftRequest requests[] = {full.request(3), fits.request(3)};
  ASSERT_TRUE(drafter.draft(requests).ok());
  EXPECT_TRUE(full.drafted().empty());
  EXPECT_NE(drafter.limit_reason(0).find("context of 6 tokens is full"), std::string::npos);
  EXPECT_EQ(fits.drafted(), expected(rows, {1}, 3));
  EXPECT_EQ(drafter.limit_reason(1), "");
  EXPECT_FALSE(drafter.has_room(0, full.text));
  EXPECT_TRUE(drafter.has_room(1, fits.text));
}

// Grants every pass.
class GrantsAll : public DraftGuide {
 public:
  float chance(std::int32_t /*depth*/, float confidence) const override { return confidence; }
  bool another_pass(float /*tip_chance*/, std::int32_t /*tip_depth*/) override {
    ++granted;
    return true;
  }
  void ended() override { ++ends; }

  int granted = 0;
  int ends = 0;
};

// What is granted is timed, so one that could not be made would count as one of no time.
TEST(DraftModel, WhereTheContextEndsNoPassIsAskedFor) {
  FakeModel model(capabilities(1, /*n_ctx=*/6), testing::random_rows(kVocab, 8, 2.0f));
  DraftModelDrafter drafter(model, kVocab, {});
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  Talk talk({1, 2, 3});
  GrantsAll guide;
  DraftRequest request[] = {talk.request(8)};
  request[0].guide = &guide;
  ASSERT_TRUE(drafter.draft(request).ok());
  EXPECT_EQ(model.evaluations(), 4) << "of the text, and of three guesses";
  EXPECT_EQ(guide.granted, 3);
  EXPECT_EQ(guide.ends, 1);
}

}  // namespace
}  // namespace outrider
