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
  // One token of five, and of a prompt of eight: the empty sequence is taken.
  IdleTexts idle;
  idle.put(0, {1, 2, 3, 4, 5});
  idle.put(1, {});
  expect_choice(idle.choose(std::vector<Token>{1, 7, 7, 7, 7, 7, 7, 7}, false), 1, 0);
  // Half of the text, or half of the prompt, is enough.
  expect_choice(idle.choose(std::vector<Token>{1, 2, 3, 7, 7, 7, 7, 7}, false), 0, 3);
  expect_choice(idle.choose(std::vector<Token>{1, 7}, false), 0, 1);
}

TEST(IdleTexts, WithoutAnEmptyOneTheOldestGivesWayAndKeepsWhatIsUsable) {
  IdleTexts idle;
  idle.put(4, {1, 2, 3, 4, 5, 6, 7, 8});
  idle.put(3, {5, 5, 5, 5, 5});
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
