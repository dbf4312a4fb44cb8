#include "engine/idle_texts.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

using Use = IdleTexts::Use;

IdleTexts three() {
  IdleTexts idle;
  idle.put(0, {1, 2, 3, 4, 5});
  idle.put(1, {1, 9});
  idle.put(2, {});
  return idle;
}

void expect_choice(const std::optional<IdleTexts::Choice>& choice, SeqId seq, std::size_t kept) {
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->seq, seq);
  EXPECT_EQ(choice->kept, kept);
}

TEST(IdleTexts, APromptGetsTheTextThatItSharesMostWith) {
  expect_choice(three().choose(std::vector<Token>{1, 2, 3, 7, 7, 7, 7, 7, 7}, Use::kOwn), 0, 3);
  expect_choice(three().choose(std::vector<Token>{1, 9, 3}, Use::kOwn), 1, 2);
}

TEST(IdleTexts, ThePromptsLastTokenIsAlwaysRead) {
  expect_choice(three().choose(std::vector<Token>{1, 2, 3}, Use::kOwn), 0, 2);
  expect_choice(three().choose(std::vector<Token>{1, 2, 3, 4, 5}, Use::kOwn), 0, 4);
  expect_choice(three().choose(std::vector<Token>{1, 2, 3, 4, 5, 6}, Use::kOwn), 0, 5);
}

TEST(IdleTexts, ALongTextIsNotGivenUpForAShortGain) {
  // Text 0 is the older of two: a lost token of it counts a third.
  IdleTexts idle;
  idle.put(0, {1, 2, 3, 4, 5});
  idle.put(1, {});
  expect_choice(idle.choose(std::vector<Token>{1, 7, 7, 7}, Use::kOwn), 1, 0);  // 1 - 4/3
  expect_choice(idle.choose(std::vector<Token>{1, 2, 7, 7}, Use::kOwn), 0, 2);  // 2 - 3/3
  // The newest text counts more: a half.
  IdleTexts newest;
  newest.put(1, {});
  newest.put(0, {1, 2, 3, 4, 5, 6, 7});
  expect_choice(newest.choose(std::vector<Token>{1, 2, 9, 9}, Use::kOwn), 1, 0);     // 2 - 5/2
  expect_choice(newest.choose(std::vector<Token>{1, 2, 3, 9, 9}, Use::kOwn), 0, 3);  // 3 - 4/2
}

TEST(IdleTexts, ASharedInstructionIsReadOnceThoughTheRestDiffers) {
  // 180 of 500 tokens are shared by all texts, and every sequence holds one.
  std::vector<Token> shared(180, 7);
  IdleTexts idle;
  for (SeqId seq = 0; seq < 4; ++seq) {
    std::vector<Token> text = shared;
    text.resize(500, seq == 1 ? 7 : seq + 100);
    if (seq == 0) text.assign(500, 3);  // but the oldest
    idle.put(seq, text);
  }
  std::vector<Token> prompt = shared;
  prompt.resize(450, 55);
  expect_choice(idle.choose(prompt, Use::kOwn), 1, 180);
}

TEST(IdleTexts, WithoutAnEmptyOneTheOldestGivesWayAndKeepsWhatIsUsable) {
  IdleTexts idle;
  idle.put(4, {1, 2, 3, 4, 5, 6, 7, 8});
  idle.put(3, {5, 5, 5, 5, 5, 5});
  expect_choice(idle.choose(std::vector<Token>{1, 2, 9, 9, 9, 9, 9, 9}, Use::kOwn), 4, 2);
  expect_choice(idle.choose(std::vector<Token>{8}, Use::kOwn), 4, 0);
  EXPECT_EQ(idle.oldest(), 4);
  idle.clear(4);
  EXPECT_EQ(idle.oldest(), 3);
  idle.remove(3);
  EXPECT_EQ(idle.oldest(), std::nullopt);
  idle.remove(4);
  EXPECT_FALSE(idle.choose(std::vector<Token>{1}, Use::kOwn).has_value());
}

TEST(IdleTexts, AModelThatCannotForgetAPartNeedsTheWholeText) {
  expect_choice(three().choose(std::vector<Token>{1, 2, 3, 4, 5, 6}, Use::kWhole), 0, 5);
  expect_choice(three().choose(std::vector<Token>{1, 2, 3, 4, 5}, Use::kWhole), 2,
                0);  // one too many
  expect_choice(three().choose(std::vector<Token>{1, 2, 3, 4, 6, 6}, Use::kWhole), 2, 0);
}

TEST(IdleTexts, ASharedBeginningLeavesItsTextWhereAnotherIsLostWithLessRegret) {
  const std::optional<IdleTexts::Choice> choice =
      three().choose(std::vector<Token>{1, 2, 3, 7, 7, 7}, Use::kShared);
  expect_choice(choice, 2, 3);  // the empty one
  EXPECT_EQ(choice->from, 0);
  // Without an empty one: of the short text two tokens are lost, of the long one five.
  IdleTexts idle;
  idle.put(0, {1, 2, 3, 4, 5, 6, 7, 8});
  idle.put(1, {9, 9});
  const std::optional<IdleTexts::Choice> other =
      idle.choose(std::vector<Token>{1, 2, 3, 7}, Use::kShared);
  expect_choice(other, 1, 3);
  EXPECT_EQ(other->from, 0);
  // A text that the prompt goes on is taken over: nothing of it is lost.
  const std::optional<IdleTexts::Choice> same =
      three().choose(std::vector<Token>{1, 2, 3, 4, 5, 6}, Use::kShared);
  expect_choice(same, 0, 5);
  EXPECT_EQ(same->from, 0);
}

TEST(IdleTexts, ARunningTextIsSharedAsFarAsItIsReadAndAwaitedForTheRest) {
  IdleTexts idle;
  idle.put(1, {1, 2});
  const std::vector<Token> text = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<Token> prompt = {1, 2, 3, 4, 5, 6, 9, 9};
  const auto choose = [&](std::size_t held, std::size_t least, Use use) {
    const std::vector<IdleTexts::Running> running = {{.seq = 4, .text = text, .held = held}};
    return *idle.choose(prompt, use, running, least);
  };
  for (const std::size_t held : {0U, 1U, 2U}) {
    const IdleTexts::Choice choice = choose(held, 1, Use::kShared);
    EXPECT_EQ(choice.seq, 1);
    EXPECT_EQ(choice.from, 1);
    EXPECT_EQ(choice.kept, 2U);
    EXPECT_EQ(choice.awaited, 6U);
    EXPECT_EQ(choice.awaited_seq, 4);
    EXPECT_EQ(choose(held, 5, Use::kShared).awaited, 0U) << "it would save four";
    EXPECT_EQ(choose(held, 1, Use::kOwn).awaited, 0U);
  }
  EXPECT_EQ(choose(4, 1, Use::kShared).from, 4);
  EXPECT_EQ(choose(4, 1, Use::kShared).kept, 4U);
  EXPECT_EQ(choose(4, 1, Use::kShared).awaited, 6U);
  EXPECT_EQ(choose(7, 1, Use::kShared).kept, 6U);
  EXPECT_EQ(choose(7, 1, Use::kShared).awaited, 0U) << "it has read all that they share";
  EXPECT_EQ(choose(7, 1, Use::kOwn).kept, 2U);
}

}  // namespace

}  // namespace outrider
