// Texts that begin anew, that are read in pieces, and one that the model cannot read.
#include "draft/model/draft_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "draft/model/draft_model_test.h"

namespace outrider {
namespace {

using testing::FakeModel;
using namespace testing::draft_model;  // NOLINT: the shared names of these tests

// A target's vocabulary may have a few ids more: who has said one loses the draft, and nobody else.
TEST(DraftModel, ATokenThatTheModelDoesNotKnowIsItsTextsFailureAlone) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 1, 2.0f);
  FakeModel model(capabilities(), rows);
  DraftModelDrafter drafter(model, kVocab + 1, {});
  Talk knows({1, 2, 3}, 0);
  Talk says({1, kVocab, 3}, 1);
  for (const SeqId seq : {0, 1}) ASSERT_TRUE(drafter.begin(seq, 0).ok());
  DraftRequest requests[] = {knows.request(3), says.request(3)};
  ASSERT_TRUE(drafter.draft(requests).ok());
  EXPECT_TRUE(requests[0].failure.ok()) << requests[0].failure.message();
  EXPECT_EQ(knows.drafted(), expected(rows, {1, 2, 3}, 3));
  EXPECT_EQ(requests[1].failure.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(requests[1].failure.message().find("token 10"), std::string::npos);
  EXPECT_TRUE(says.drafted().empty());
}

// Who begins a text again that the model has read whole.
TEST(DraftModel, ABeginningThatIsAskedForAgainIsReadOnce) {
  FourGuessed four;
  auto& [rows, model, drafter, talk, drafted] = four;
  talk.text.insert(talk.text.end(), drafted.begin(), drafted.end());
  talk.text.push_back(7);
  drafter.accept(0, talk.text);
  ASSERT_TRUE(drafter.begin(0, 2).ok());
  talk.text.resize(2);
  DraftRequest again[] = {talk.request(4)};
  ASSERT_TRUE(drafter.draft(again).ok());
  EXPECT_EQ(talk.drafted(), expected(rows, {1, 2}, 4));
  EXPECT_EQ(drafter.check_integrity(), "");
}

TEST(DraftModel, ANewTextForgetsTheOldOne) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 8, 2.0f, 50);
  FakeModel model(capabilities(), rows);
  DraftModelDrafter drafter(model, kVocab, {});
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  Talk old({1, 2, 3, 4});
  DraftRequest first[] = {old.request(4)};
  ASSERT_TRUE(drafter.draft(first).ok());
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  EXPECT_EQ(model.length(0), 0);
  Talk fresh({1, 2, 9});
  DraftRequest second[] = {fresh.request(4)};
  ASSERT_TRUE(drafter.draft(second).ok());
  EXPECT_EQ(fresh.drafted(), expected(rows, {1, 2, 9}, 4));
}

// In pieces of any size, behind guesses of its own, too.
TEST(DraftModel, WhatIsReadInPiecesIsDraftedForAsIfItHadBeenReadAtOnce) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 3, 2.0f);
  for (const std::int64_t piece : {1, 7, 16, 40}) {
    FakeModel model(capabilities(), rows);
    DraftModelDrafter drafter(model, kVocab, {});
    ASSERT_TRUE(drafter.begin(0, 0).ok());
    Talk talk({1, 2, 3});
    DraftRequest first[] = {talk.request(2)};
    ASSERT_TRUE(drafter.draft(first).ok());
    for (Token t = 0; t < 60; ++t) talk.text.push_back(t % kVocab);
    const std::int64_t length = static_cast<std::int64_t>(talk.text.size());
    std::int64_t known = drafter.known(0, talk.text);
    while (known + 1 < length) {
      const std::int64_t tokens = model.tokens_evaluated();
      ASSERT_TRUE(drafter.read(0, talk.text, piece).ok());
      const std::int64_t now = drafter.known(0, talk.text);
      EXPECT_EQ(now, std::min(known + piece, length - 1));
      EXPECT_EQ(model.tokens_evaluated() - tokens, now - known);
      EXPECT_EQ(drafter.check_integrity(), "");
      known = now;
    }
    const std::int64_t passes = model.evaluations();
    DraftRequest then[] = {talk.request(3)};
    ASSERT_TRUE(drafter.draft(then).ok());
    EXPECT_EQ(talk.drafted(), expected(rows, talk.text, 3)) << piece;
    EXPECT_EQ(model.evaluations() - passes, 3);
  }
}

TEST(DraftModel, APieceOfATextThatDoesNotFitIsNotReadAndThatIsSaid) {
  FakeModel model(capabilities(1, /*n_ctx=*/6), testing::random_rows(kVocab, 3, 2.0f));
  DraftModelDrafter drafter(model, kVocab, {});
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  const std::vector<Token> text = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_FALSE(drafter.has_room(0, text));
  EXPECT_TRUE(drafter.read(0, text, 2).ok());
  EXPECT_EQ(drafter.known(0, text), 0);
  EXPECT_NE(drafter.limit_reason(0).find("context of 6 tokens is full"), std::string::npos);
  model.fail_evaluate({internal_error("broken")});
  const std::vector<Token> shorter = {1, 2, 3};
  EXPECT_EQ(drafter.read(0, shorter, 2).message(), "broken") << "of this text, and no limit";
  EXPECT_TRUE(drafter.read(0, shorter, 2).ok());
  EXPECT_EQ(drafter.limit_reason(0), "");
  EXPECT_EQ(drafter.known(0, shorter), 2);
}

}  // namespace
}  // namespace outrider
