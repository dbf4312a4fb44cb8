// Which proposed nodes are sent, where they were drawn.
#include <gtest/gtest.h>

#include "engine/step_test.h"
#include "testing/fake_engine.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

constexpr DrafterMask kSuffix = 1;
constexpr DrafterMask kDraft = 2;

// What is sent, at a width of four, of this tree by the rule `rejection`, estimates behind tokens:
//     1 +- 2 (0.5) -- 3 (0.2)          all drawn by a draft model
//       +- 4 (0.4) -- `last` (0.2)
// before which another drafter has proposed 4 and 5 behind it.
TokenTree sent_with(Token last) {
  FakeModel target(capabilities(), random_rows(kVocab, 1, 1.0f));
  const FakeVocabulary vocabulary(kVocab);
  Planner planner;
  Request r = request({1}, 1.0f, 1, 20, 4);
  r.rule = AcceptanceRule::kRejection;
  Sequence s(1, 0, std::move(r), 64);
  s.width = 4;
  TokenTree tree(1);
  tree.add(tree.add(kRoot, 4, 0.9f, kSuffix), 5, 0.8f, kSuffix);
  const NodeId first = tree.add(kRoot, 2, 0.5f, kDraft);
  const NodeId second = tree.add(kRoot, 4, 0.4f, kDraft);
  tree.set_draw(kRoot, s.draws.add({.p = Pmf(), .tokens = {2, 4}, .chances = {0.5f, 0.4f}}));
  tree.add(first, 3, 0.2f, kDraft);
  tree.set_draw(first, s.draws.add({.p = Pmf(), .tokens = {3}, .chances = {0.2f}}));
  tree.add(second, last, 0.2f, kDraft);
  tree.set_draw(second, s.draws.add({.p = Pmf(), .tokens = {last}, .chances = {0.2f}}));
  s.proposed = tree;
  Step step = step_of(s, target, vocabulary, planner);
  plan(step);
  EXPECT_EQ(s.sent->check_integrity(), "");
  return *s.sent;
}

// The tie between the two of depth 2 was decided for a token that had been proposed before it was
// drawn, which shifts the text towards what others propose.
TEST(Plan, WhichOfEquallyLikelyDrawsIsSentDoesNotDependOnWhatTheyAre) {
  for (const Token last : {5, 6}) {
    const TokenTree sent = sent_with(last);
    ASSERT_EQ(sent.size(), 4);
    const NodeId first = sent.child(kRoot, 2);
    const NodeId second = sent.child(kRoot, 4);
    ASSERT_NE(first, kNoNode);
    ASSERT_NE(second, kNoNode);
    EXPECT_NE(sent.child(first, 3), kNoNode) << last;
    EXPECT_EQ(sent.child(second, last), kNoNode) << last;
  }
}

TEST(Plan, ADrawnTokenKeepsWhoProposedItFirstAndWhatItIsDrawnFrom) {
  const TokenTree sent = sent_with(6);
  const TokenTree::Node& both = sent.node(sent.child(kRoot, 4));
  EXPECT_EQ(both.proposed_by, kSuffix | kDraft);
  EXPECT_EQ(both.first_by, 0);
  EXPECT_FLOAT_EQ(both.chance, 0.4f);
  const TokenTree::Node& one = sent.node(sent.child(kRoot, 2));
  EXPECT_EQ(one.proposed_by, kDraft);
  EXPECT_EQ(one.first_by, 1);
  EXPECT_EQ(sent.node(kRoot).draw, 0);
  EXPECT_EQ(one.draw, 1);
  EXPECT_EQ(both.draw, 2);
}

}  // namespace
}  // namespace outrider
