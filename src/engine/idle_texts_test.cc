#include "engine/idle_texts.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

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
  expect_choice(three().choose(std::vector<Token>{1, 2, 3, 7, 7, 7, 7, 7, 7}, false), 0, 3);
  expect_choice(three().choose(std::vector<Token>{1, 9, 3}, false), 1, 2);
}

TEST(IdleTexts, ThePromptsLastTokenIsAlwaysRead) {
  expect_choice(three().choose(std::vector<Token>{1, 2, 3}, false), 0, 2);
  expect_choice(three().choose(std::vector<Token>{1, 2, 3, 4, 5}, false), 0, 4);
  expect_choice(three().choose(std::vector<Token>{1, 2, 3, 4, 5, 6}, false), 0, 5);
}

TEST(IdleTexts, ALongTextIsNotGivenUpForAShortGain) {
  // Text 0 is the older of two: a lost token of it counts a third.
  IdleTexts idle;
  idle.put(0, {1, 2, 3, 4, 5});
  idle.put(1, {});
  expect_choice(idle.choose(std::vector<Token>{1, 7, 7, 7}, false), 1, 0);  // 1 - 4/3
  expect_choice(idle.choose(std::vector<Token>{1, 2, 7, 7}, false), 0, 2);  // 2 - 3/3
  // The newest text counts more: a half.
  IdleTexts newest;
  newest.put(1, {});
  newest.put(0, {1, 2, 3, 4, 5, 6, 7});
  expect_choice(newest.choose(std::vector<Token>{1, 2, 9, 9}, false), 1, 0);     // 2 - 5/2
  expect_choice(newest.choose(std::vector<Token>{1, 2, 3, 9, 9}, false), 0, 3);  // 3 - 4/2
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
  expect_choice(idle.choose(prompt, false), 1, 180);
}

TEST(IdleTexts, WithoutAnEmptyOneTheOldestGivesWayAndKeepsWhatIsUsable) {
  IdleTexts idle;
  idle.put(4, {1, 2, 3, 4, 5, 6, 7, 8});
  idle.put(3, {5, 5, 5, 5, 5, 5});
  expect_choice(idle.choose(std::vector<Token>{1, 2, 9, 9, 9, 9, 9, 9}, false), 4, 2);
  expect_choice(idle.choose(std::vector<Token>{8}, false), 4, 0);
  EXPECT_EQ(idle.oldest(), 4);
  idle.clear(4);
  EXPECT_EQ(idle.oldest(), 3);
  idle.remove(3);
  EXPECT_EQ(idle.oldest(), std::nullopt);
  idle.remove(4);
  EXPECT_FALSE(idle.choose(std::vector<Token>{1}, false).has_value());
}

TEST(IdleTexts, AModelThatCannotForgetAPartNeedsTheWholeText) {
  expect_choice(three().choose(std::vector<Token>{1, 2, 3, 4, 5, 6}, true), 0, 5);
  expect_choice(three().choose(std::vector<Token>{1, 2, 3, 4, 5}, true), 2, 0);  // one too many
  expect_choice(three().choose(std::vector<Token>{1, 2, 3, 4, 6, 6}, true), 2, 0);
}

}  // namespace

}  // namespace outrider
