#include "tools/answer_text.h"

#include <unistd.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace outrider::tools {
namespace {

// "thought</t>content"; a mark's beginning at the end is held back while more may come.
class MarkReader : public ChatReader {
 public:
  ChatReply read(std::string_view text, bool complete) const override {
    constexpr std::string_view kMark = "</t>";
    const std::size_t at = text.find(kMark);
    if (at != std::string_view::npos) {
      return {.content = std::string(text.substr(at + kMark.size())),
              .reasoning = std::string(text.substr(0, at)),
              .tool_calls = {}};
    }
    std::size_t n = text.size();
    for (std::size_t k = 1; !complete && k < kMark.size() && k <= text.size(); ++k) {
      if (text.ends_with(kMark.substr(0, k))) n = text.size() - k;
    }
    return {.content = "", .reasoning = std::string(text.substr(0, n)), .tool_calls = {}};
  }
};

// What comes out of a pipe for tokens of the target and, where `drafted`, of the draft model.
std::string shown(const std::vector<SaidToken>& tokens, Thoughts thoughts, bool color,
                  FinishReason finish = FinishReason::kStop) {
  std::array<int, 2> ends = {};
  EXPECT_EQ(pipe(ends.data()), 0);
  TextOutput output(ends[1], color, /*whole_lines=*/true);
  CompletionResult result;
  result.reader = std::make_shared<const MarkReader>();
  result.completion.finish = finish;
  AnswerText answer(output, result.reader, thoughts);
  for (const SaidToken& token : tokens) {
    result.completion.text += token.text;
    answer.add({token});
  }
  answer.finish(result);
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t n = read(ends[0], text.data(), text.size());
  close(ends[0]);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

const std::vector<SaidToken>& tokens() {
  static const std::vector<SaidToken> all = {
      {.text = "Hm", .by = "target"}, {.text = ". <", .by = "draft-model"},
      {.text = "/t", .by = "target"}, {.text = ">Yes", .by = "draft-model"},
      {.text = "!", .by = "target"},
  };
  return all;
}

TEST(AnswerTextTest, ThoughtsAreDimmedAndTheAnswerHasItsColours) {
  EXPECT_EQ(shown(tokens(), Thoughts::kDimmed, true),
            "\033[0;2mHm. \n\n\033[0m\033[32mYes\033[0m!\n");
}

TEST(AnswerTextTest, ACharacterOverTwoTokensKeepsTheColourThatItBeganWith) {
  const std::vector<SaidToken> cut = {{.text = "Hm</t>caf\xC3", .by = "target"},
                                      {.text = "\xA9!", .by = "draft-model"}};
  EXPECT_EQ(shown(cut, Thoughts::kHidden, true), "caf\xC3\xA9\033[32m!\033[0m\n");
}

TEST(AnswerTextTest, WithoutColoursALineSaysWhichIsWhich) {
  EXPECT_EQ(shown(tokens(), Thoughts::kMarked, false), "(thinking)\nHm. \n\n(answer)\nYes!\n");
}

TEST(AnswerTextTest, AReaderOfAnswersGetsNoThoughts) {
  EXPECT_EQ(shown(tokens(), Thoughts::kHidden, false), "Yes!\n");
}

TEST(AnswerTextTest, WhatWasHeldBackComesAtTheEnd) {
  const std::vector<SaidToken> cut = {{.text = "a <", .by = "target"}};
  EXPECT_EQ(shown(cut, Thoughts::kMarked, false), "(thinking)\na <\n");
  EXPECT_EQ(shown(cut, Thoughts::kMarked, false, FinishReason::kCancelled), "(thinking)\na \n")
      << "unless it may be the beginning of a mark";
}

}  // namespace
}  // namespace outrider::tools
