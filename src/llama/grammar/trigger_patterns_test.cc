#include "llama/grammar/trigger_patterns.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace outrider::llama {
namespace {

std::vector<std::size_t> begins(const std::vector<std::string>& patterns, const std::string& text,
                                std::size_t fresh, bool from_start = true) {
  const Result<std::shared_ptr<const TriggerPatterns>> made = TriggerPatterns::create(patterns);
  EXPECT_TRUE(made.ok());
  return (*made)->begins_in(text, fresh, from_start);
}

using Begins = std::vector<std::size_t>;

TEST(TriggerPatternsTest, AFindingBeginsAtItsFirstGroupThatHoldsSomething) {
  EXPECT_EQ(begins({"ab"}, "xxab", 3), Begins{2});
  EXPECT_EQ(begins({"a(b)"}, "xxab", 3), Begins{3});
  EXPECT_EQ(begins({"(z*)a(b)"}, "xxab", 3), Begins{3});
  EXPECT_EQ(begins({"<s>a(\\s+to)"}, "<s>a  to", 6), Begins{4});
}

TEST(TriggerPatternsTest, OnlyWhatEndsInTheFreshBytesCounts) {
  EXPECT_EQ(begins({"ab"}, "abxxab", 2), Begins{4});
  EXPECT_EQ(begins({"ab"}, "abxx", 2), Begins{});
  EXPECT_EQ(begins({"ab", "b"}, "xab", 2), (Begins{1, 2}));
}

TEST(TriggerPatternsTest, TheTextsBeginningIsOnlyWhereItIsInTheWindow) {
  EXPECT_EQ(begins({"^\\s+to$"}, "  to", 3), Begins{0});
  EXPECT_EQ(begins({"^\\s+to$"}, "  to", 3, /*from_start=*/false), Begins{});
  EXPECT_EQ(begins({"^\\s+to$"}, "a to", 3), Begins{});
}

TEST(TriggerPatternsTest, WhatIsNoExpressionIsRefused) {
  EXPECT_EQ(TriggerPatterns::create({"(a"}).status().code(), StatusCode::kInvalidArgument);
}

TEST(ReasoningGateTest, MarksAreSeenHoweverTheyAreCut) {
  const std::string text = "a<think>b</think>c<think>";
  for (std::size_t cut = 1; cut <= text.size(); ++cut) {
    ReasoningGate gate({.begin = "<think>", .end = {"</think>", "[END]"}});
    for (std::size_t at = 0; at < text.size(); at += cut) {
      const std::string piece = text.substr(at, cut);
      gate.say(piece);
      const std::size_t n = at + piece.size();
      const bool expected = (n >= 8 && n < 17) || n >= 25;
      EXPECT_EQ(gate.inside(), expected) << "cut " << cut << ", after " << n << " bytes";
    }
  }
}

TEST(ReasoningGateTest, AnOpenGateEndsWithAnyOfItsMarks) {
  ReasoningGate gate({.begin = "<think>", .end = {"</think>", "[END]"}, .open = true});
  EXPECT_TRUE(gate.inside());
  EXPECT_FALSE(gate.say("hm <think> </thi"));
  EXPECT_TRUE(gate.inside());
  EXPECT_TRUE(gate.say("x [END]"));
  EXPECT_FALSE(gate.inside());
}

TEST(ReasoningGateTest, WithoutMarksNothingIsReasoning) {
  ReasoningGate gate{ReasoningMarks()};
  EXPECT_FALSE(gate.say("<think>"));
  EXPECT_FALSE(gate.inside());
}

}  // namespace
}  // namespace outrider::llama
