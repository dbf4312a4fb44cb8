// What the drafters find of a sequence when a step asks them.
#include <gtest/gtest.h>

#include "engine/step_test.h"
#include "testing/fake_engine.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

// A text of a million steps would keep a distribution for each token that was drafted.
TEST(Propose, WhatWasDrawnForAStepIsForgottenWithTheNext) {
  FakeModel target(capabilities(), random_rows(kVocab, 1, 1.0f));
  const FakeVocabulary vocabulary(kVocab);
  Planner planner;
  Request r = request({1, 2}, 1.0f, 1, 20, 4);
  r.rule = AcceptanceRule::kRejection;
  Sequence s(1, 0, std::move(r), 64);
  for (int i = 0; i < 3; ++i) {
    Step step = step_of(s, target, vocabulary, planner);
    propose(step);
    ASSERT_TRUE(s.proposed.has_value());
    EXPECT_EQ(s.proposed->size(), 1);
    EXPECT_EQ(s.proposed->token(kRoot), 2);
    EXPECT_EQ(s.draws.add({.p = Pmf(), .tokens = {4}, .chances = {0.5f}}), 0) << "step " << i;
    EXPECT_EQ(s.draws.add({.p = Pmf(), .tokens = {5}, .chances = {0.5f}}), 1) << "step " << i;
  }
}

}  // namespace
}  // namespace outrider
