// Walking along texts that were said, with drafters that know what is right.
#include "lab/draft_walk.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "testing/fake_drafter.h"
#include "testing/fake_model.h"

namespace outrider::lab {
namespace {

constexpr std::int32_t kVocab = 12;

SaidText some_text() {
  SaidText text{.prompt = {1, 2}, .said = {}, .seed = 3};
  for (std::int32_t i = 0; i < 40; ++i) text.said.push_back((7 * i + 3) % kVocab);
  return text;
}

std::vector<Token> whole(const SaidText& text) {
  std::vector<Token> tokens = text.prompt;
  tokens.insert(tokens.end(), text.said.begin(), text.said.end());
  return tokens;
}

DraftWalk walk(testing::ScriptedDrafter& drafter, std::int32_t most = 4) {
  testing::FakeSampler sampler(1.0f);
  DraftWalk result;
  const Status status = walk_text(some_text(), drafter, sampler, {.most = most}, result);
  EXPECT_TRUE(status.ok()) << status.message();
  return result;
}

TEST(DraftWalk, AProphetIsRightAtEveryDepthAndTheWalkGoesOnBehindItsGuesses) {
  int drafts = 0;
  const testing::Script always = testing::prophet(whole(some_text()), 4, 0, kVocab);
  testing::ScriptedDrafter drafter([&](DraftRequest& request) {
    ++drafts;
    return always(request);
  });
  const DraftWalk result = walk(drafter);
  EXPECT_EQ(drafts, 8) << "39 tokens behind the first, five a step";
  EXPECT_EQ(result.right, result.asked);
  EXPECT_EQ(result.first_chance(), 1.0);
  EXPECT_EQ(drafter.ended, 1);
}

TEST(DraftWalk, AGuessBehindAWrongOneDoesNotCount) {
  // The second of each three is wrong.
  testing::ScriptedDrafter drafter([text = whole(some_text())](DraftRequest& request) {
    const std::size_t at = request.text.size();
    std::vector<Token> guesses;
    for (std::size_t i = 0; i < 3 && at + i < text.size(); ++i) {
      guesses.push_back(i == 1 ? (text[at + i] + 1) % kVocab : text[at + i]);
    }
    testing::add_chain(request, guesses);
    return Status();
  });
  const DraftWalk result = walk(drafter);
  EXPECT_GT(result.asked[0], 10);
  EXPECT_EQ(result.right[0], result.asked[0]);
  EXPECT_GE(result.asked[1] + 1, result.asked[0]) << "at the text's end there is no second one";
  EXPECT_EQ(result.right[1], 0);
  EXPECT_EQ(result.asked[2], 0);
  EXPECT_GT(result.chances()[0], 0.9);
  EXPECT_LT(result.chances()[1], 0.1);
  EXPECT_EQ(result.chances()[2], 0.5) << "nothing is known";
}

TEST(DraftWalk, ADrafterThatSaysNothingIsNeverRight) {
  testing::ScriptedDrafter drafter([](DraftRequest&) { return Status(); });
  const DraftWalk result = walk(drafter);
  EXPECT_EQ(result.asked[0], 39);
  EXPECT_EQ(result.first_chance(), 0.0);
}

TEST(DraftWalk, ItEndsWithTheDraftersErrorAndWithAnInterruption) {
  testing::FakeSampler sampler(1.0f);
  DraftWalk result;
  testing::ScriptedDrafter failing([](DraftRequest&) { return internal_error("broken"); });
  EXPECT_EQ(walk_text(some_text(), failing, sampler, {}, result).message(), "broken");
  EXPECT_EQ(failing.ended, 1);
  std::atomic<bool> interrupt{true};
  testing::ScriptedDrafter silent([](DraftRequest&) { return Status(); });
  EXPECT_EQ(walk_text(some_text(), silent, sampler, {.interrupt = &interrupt}, result).code(),
            StatusCode::kCancelled);
}

}  // namespace
}  // namespace outrider::lab
