// Texts that begin anew, and one that the model cannot read.
#include "draft/model/draft_model.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace outrider
