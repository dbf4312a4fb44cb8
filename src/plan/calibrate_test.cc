#include "plan/calibrate.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

constexpr DrafterMask kFirst = 1;
constexpr DrafterMask kSecond = 2;

// Chances are learned for single steps, so a path's claim is taken apart and put together again.
TEST(Calibrate, AnUnknownDraftersClaimsStandAsTheyAre) {
  TokenTree tree(0);
  const NodeId a = tree.add(kRoot, 1, 0.8f, kFirst);
  const NodeId b = tree.add(a, 2, 0.4f, kFirst);
  calibrate(tree, AcceptanceTable(), AcceptanceBias());
  EXPECT_NEAR(tree.node(a).chance, 0.8f, 1e-5f);
  EXPECT_NEAR(tree.node(b).chance, 0.4f, 1e-5f);
  EXPECT_EQ(tree.check_integrity(), "");
}

TEST(Calibrate, TheSurestOfSeveralDraftersCounts) {
  TokenTree tree(0);
  const NodeId a = tree.add(kRoot, 1, 0.3f, kFirst);
  EXPECT_EQ(tree.add(kRoot, 1, 0.7f, kSecond), a);
  calibrate(tree, AcceptanceTable(), AcceptanceBias());
  EXPECT_NEAR(tree.node(a).chance, 0.7f, 1e-5f);
}

TEST(Calibrate, SiblingsShareOneTokensChance) {
  TokenTree tree(0);
  for (Token token = 1; token <= 4; ++token) tree.add(kRoot, token, 0.6f, kFirst);
  calibrate(tree, AcceptanceTable(), AcceptanceBias());
  float sum = 0.0f;
  for (NodeId id = 1; id < tree.size(); ++id) sum += tree.node(id).chance;
  EXPECT_LE(sum, 1.0f + 1e-5f);
  EXPECT_EQ(tree.check_integrity(), "");
}

// Else a sure guess would be starved by whoever was asked before.
TEST(Calibrate, TheSurestSiblingIsServedFirst) {
  TokenTree tree(0);
  for (Token token = 1; token <= 3; ++token) tree.add(kRoot, token, 0.3f, kFirst);
  const NodeId sure = tree.add(kRoot, 9, 0.9f, kSecond);
  const NodeId behind = tree.add(sure, 8, 0.81f, kSecond);
  calibrate(tree, AcceptanceTable(), AcceptanceBias());
  EXPECT_NEAR(tree.node(sure).chance, 0.9f, 1e-5f);
  EXPECT_NEAR(tree.node(behind).chance, 0.81f, 1e-5f);
  EXPECT_EQ(tree.check_integrity(), "");
}

TEST(Calibrate, FillersHaveNoChance) {
  TokenTree tree(0);
  const NodeId a = tree.add(kRoot, 1, 0.0f, kFillerMask);
  calibrate(tree, AcceptanceTable(), AcceptanceBias());
  EXPECT_EQ(tree.node(a).chance, 0.0f);
}

// The text went 1, 2, 5: the first two guesses were right, the third was not, and what hangs below
// the wrong one was never put to the test.
TEST(Calibrate, LearnsAsFarAsGuessesWerePutToTheTest) {
  TokenTree tree(0);
  const NodeId a = tree.add(kRoot, 1, 0.5f, kFirst);
  const NodeId b = tree.add(a, 2, 0.25f, kFirst);
  const NodeId c = tree.add(b, 3, 0.125f, kFirst);
  tree.add(c, 4, 0.0625f, kFirst);
  AcceptanceTable table;
  AcceptanceBias bias;
  CalibrationScore score;
  learn_from(tree, std::vector<Token>{1, 2, 5}, kFirst, table, bias, &score);
  EXPECT_EQ(score.n(), 3);
  EXPECT_GT(table.prediction(0, 1), 0.5);
  EXPECT_GT(table.prediction(0, 2), 0.5);
  EXPECT_LT(table.prediction(0, 3), table.prediction(0, 2));
  EXPECT_GT(table.chance({.drafter = 0, .depth = 1, .confidence = 0.5f}),
            table.chance({.drafter = 0, .depth = 3, .confidence = 0.5f}));
}

// A drafter with nothing to say counts as wrong where it was asked, and only there.
TEST(Calibrate, SilenceCountsForThoseThatWereAsked) {
  const TokenTree tree(0);
  AcceptanceTable table;
  AcceptanceBias bias;
  for (int i = 0; i < 20; ++i) {
    learn_from(tree, std::vector<Token>{1}, kFirst, table, bias, nullptr);
  }
  EXPECT_LT(table.prediction(0, 1), 0.2);
  EXPECT_NEAR(table.prediction(1, 1), 0.6, 1e-9);
}

}  // namespace
}  // namespace outrider
