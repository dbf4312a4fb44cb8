#include "rpcserver/update_stream.h"

#include <gtest/gtest.h>

namespace outrider::rpcserver {
namespace {

SaidToken by_target(const std::string& text) { return {.id = 1, .text = text, .by = "target"}; }
SaidToken by_draft(const std::string& text) { return {.id = 2, .text = text, .by = "draft-model"}; }

std::vector<std::string> contents(const std::vector<TextUpdate>& updates) {
  std::vector<std::string> texts;
  for (const TextUpdate& update : updates) {
    std::string joined;
    for (const SaidToken& token : update.tokens) joined += token.text;
    EXPECT_EQ(joined, update.content) << "the tokens of an update are those of its text";
    texts.push_back(update.content);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(UpdateStreamTest, ARunEndsWithTheTargetsOwnToken) {
  UpdateStream stream(/*per_token=*/false);
  EXPECT_EQ(contents(stream.add({by_draft("Once"), by_draft(" upon"), by_target(" a"),
                                 by_draft(" ti"), by_target("me")})),
            (Texts{"Once upon a", " time"}));
  EXPECT_TRUE(stream.finish().empty());
}

TEST(UpdateStreamTest, WithoutSpeculationEachTokenIsAnUpdate) {
  UpdateStream stream(/*per_token=*/false);
  EXPECT_EQ(contents(stream.add({by_target("a"), by_target("b")})), (Texts{"a", "b"}));
}

TEST(UpdateStreamTest, EachTokenIsAnUpdateWhenAskedFor) {
  UpdateStream stream(/*per_token=*/true);
  EXPECT_EQ(contents(stream.add({by_draft("a"), by_draft("b"), by_target("c")})),
            (Texts{"a", "b", "c"}));
}

TEST(UpdateStreamTest, ThePollDoesNotWaitForTheRestOfARun) {
  UpdateStream stream(/*per_token=*/false);
  EXPECT_EQ(contents(stream.add({by_target("a"), by_draft("b")})), (Texts{"a", "b"}));
  EXPECT_EQ(contents(stream.add({by_draft("c"), by_target("d")})), (Texts{"cd"}));
}

TEST(UpdateStreamTest, NoUpdateEndsInsideACharacter) {
  for (const bool per_token : {false, true}) {
    UpdateStream stream(per_token);
    EXPECT_EQ(contents(stream.add({by_target("a\xC3"), by_target("\xA4"), by_target("b\xE2")})),
              (Texts{"a\xC3\xA4"}));
    EXPECT_EQ(contents(stream.add({by_target("\x82"), by_target("\xAC"), by_target("c")})),
              (Texts{"b\xE2\x82\xAC", "c"}));
  }
}

TEST(UpdateStreamTest, ACharacterThatIsNeverCompleteComesAtTheEnd) {
  UpdateStream stream(/*per_token=*/false);
  EXPECT_EQ(contents(stream.add({by_target("a"), by_target("\xE2")})), (Texts{"a"}));
  EXPECT_EQ(contents(stream.finish()), (Texts{"\xE2"}));
}

TEST(UpdateStreamTest, TokensWithoutTextGoWithTheTextBehindThem) {
  UpdateStream stream(/*per_token=*/false);
  EXPECT_EQ(contents(stream.add({by_target("a"), by_target("")})), (Texts{"a"}));
  const std::vector<TextUpdate> updates = stream.add({by_target("b")});
  EXPECT_EQ(contents(updates), (Texts{"b"}));
  EXPECT_EQ(updates[0].tokens.size(), 2U);
}

TEST(UpdateStreamTest, TokensWithoutTextAtTheEndAreTheStopStringsAndAreDropped) {
  UpdateStream stream(/*per_token=*/false);
  EXPECT_EQ(contents(stream.add({by_target("a"), by_draft(""), by_target("")})), (Texts{"a"}));
  EXPECT_TRUE(stream.finish().empty());
}

// Whatever the cuts, nothing is lost, doubled or out of order.
TEST(UpdateStreamTest, TheUpdatesJoinedAreTheTextHoweverItIsPolled) {
  const std::vector<SaidToken> tokens = {
      by_draft("a"),    by_draft("\xE2\x82"), by_target("\xACx"), by_target(""),
      by_draft("\xF0"), by_draft("\x9F\x98"), by_target("\x80"),  by_target("b"),
      by_draft(""),     by_target("c\xC3")};
  std::string whole;
  for (const SaidToken& token : tokens) whole += token.text;
  for (std::uint32_t polls = 0; polls < 1U << tokens.size(); ++polls) {
    for (const bool per_token : {false, true}) {
      UpdateStream stream(per_token);
      std::string joined;
      std::size_t n_tokens = 0;
      std::vector<SaidToken> fresh;
      const auto take = [&](const std::vector<TextUpdate>& updates) {
        for (const TextUpdate& update : updates) {
          EXPECT_FALSE(update.content.empty());
          joined += update.content;
          n_tokens += update.tokens.size();
        }
      };
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        fresh.push_back(tokens[i]);
        if ((polls >> i & 1U) != 0) take(stream.add(std::exchange(fresh, {})));
      }
      take(stream.add(fresh));
      take(stream.finish());
      ASSERT_EQ(joined, whole) << polls;
      ASSERT_EQ(n_tokens, tokens.size()) << polls;
    }
  }
}

}  // namespace
}  // namespace outrider::rpcserver
