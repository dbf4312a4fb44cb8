// Answers taken apart while they are said: what is shown is shown once, whatever the pieces.
#include "http/completion/answer.h"

#include <gtest/gtest.h>

namespace outrider::http {
namespace {

// "reasoning|content|name:arguments|...", as far as it is there. A mark at the end may still become
// something else, so that content is held back at it until the text is complete.
class BarReader : public ChatReader {
 public:
  ChatReply given() const override {
    return {.content = "So ", .reasoning = "hm ", .tool_calls = {}};
  }
  ChatReply read(std::string_view text, bool complete) const override {
    if (!complete && text.ends_with('?')) text.remove_suffix(1);
    ChatReply reply;
    std::size_t part = 0;
    for (;;) {
      const std::size_t end = text.find('|');
      const std::string_view one = text.substr(0, end);
      if (part == 0) {
        reply.reasoning = one;
      } else if (part == 1) {
        reply.content = one;
      } else if (const std::size_t colon = one.find(':'); colon != std::string_view::npos) {
        reply.tool_calls.push_back({.name = std::string(one.substr(0, colon)),
                                    .arguments = std::string(one.substr(colon + 1))});
      }
      if (end == std::string_view::npos) return reply;
      text.remove_prefix(end + 1);
      ++part;
    }
  }
};

const NowMs kStandingClock = [] { return 0.0; };  // nothing takes long

SaidToken said(std::string text) { return {.text = std::move(text), .by = "target"}; }

struct Joined {
  ChatReply reply;
  void add(const AnswerDelta& delta) {
    reply.content += delta.content;
    reply.reasoning += delta.reasoning;
    for (const ToolCallDelta& call : delta.tool_calls) {
      if (call.index >= reply.tool_calls.size()) {
        ASSERT_EQ(call.index, reply.tool_calls.size());
        EXPECT_FALSE(call.id.empty());
        EXPECT_FALSE(call.name.empty());
        reply.tool_calls.push_back({.id = call.id, .name = call.name});
      } else {
        EXPECT_TRUE(call.id.empty() && call.name.empty()) << "these come once";
      }
      reply.tool_calls[call.index].arguments += call.arguments;
    }
  }
};

TEST(Answer, WithoutAReaderAllTextIsContent) {
  Answer answer(nullptr);
  EXPECT_EQ(answer.add({said("a|"), said("b")}).content, "a|b");
  EXPECT_TRUE(answer.finish(std::make_shared<CompletionResult>()).silent());
  EXPECT_EQ(answer.reply().content, "a|b");
  EXPECT_EQ(answer.tokens().size(), 2U);
}

TEST(Answer, TheDeltasJoinToTheWholeHoweverTheTextIsCut) {
  const std::string text = "why?|said?|f:{\"a\":1}|g:{}";
  const ChatReply whole = BarReader().read(text, true);
  // Every way to cut the text in three.
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      Answer answer(std::make_shared<BarReader>(), &kStandingClock);
      Joined joined;
      joined.add(answer.add({said(text.substr(0, first))}));
      joined.add(answer.add({said(text.substr(first, second - first)), said(text.substr(second))}));
      joined.add(answer.finish(std::make_shared<CompletionResult>()));
      EXPECT_EQ(joined.reply.content, whole.content) << first << " " << second;
      EXPECT_EQ(joined.reply.reasoning, whole.reasoning);
      ASSERT_EQ(joined.reply.tool_calls.size(), 2U);
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(joined.reply.tool_calls[i].name, whole.tool_calls[i].name);
        EXPECT_EQ(joined.reply.tool_calls[i].arguments, whole.tool_calls[i].arguments);
        EXPECT_EQ(joined.reply.tool_calls[i].id, answer.reply().tool_calls[i].id);
      }
    }
  }
}

TEST(Answer, WhatWasHeldBackComesWithTheEnd) {
  Answer answer(std::make_shared<BarReader>(), &kStandingClock);
  EXPECT_EQ(answer.add({said("|done?")}).content, "done");
  EXPECT_EQ(answer.finish(std::make_shared<CompletionResult>()).content, "?");
  EXPECT_NE(answer.result(), nullptr);
}

TEST(Answer, WhatWasGivenOfItIsAPartOfItWhereThatIsWanted) {
  for (const bool with_given : {false, true}) {
    const std::string content = with_given ? "So said" : "said";
    const std::string reasoning = with_given ? "hm why" : "why";
    Answer answer(std::make_shared<BarReader>(), &kStandingClock, with_given);
    Joined joined;
    for (const char* text : {"w", "hy|sa", "id"}) joined.add(answer.add({said(text)}));
    joined.add(answer.finish(std::make_shared<CompletionResult>()));
    EXPECT_EQ(joined.reply.content, content);
    EXPECT_EQ(joined.reply.reasoning, reasoning);
    EXPECT_EQ(answer.reply().content, content);
    EXPECT_EQ(answer.reply().reasoning, reasoning);
    EXPECT_EQ(answer.tokens().size(), 3U);
  }
  Answer silent(std::make_shared<BarReader>(), &kStandingClock, /*with_given=*/true);
  EXPECT_EQ(silent.finish(std::make_shared<CompletionResult>()).content, "So ");
}

// Log-probabilities come with tokens: none may be lost with a delta that says nothing.
TEST(Answer, TokensOfWhatIsHeldBackComeWithTheNextDeltaThatSaysSomething) {
  Answer answer(std::make_shared<BarReader>(), &kStandingClock);
  EXPECT_TRUE(answer.add({said("|"), said("?")}).tokens.empty());
  EXPECT_TRUE(answer.add({said("?")}).tokens.size() == 3U) << "the first mark is told by now";
  EXPECT_EQ(answer.add({said("a")}).tokens.size(), 1U);
  EXPECT_TRUE(answer.add({said("|")}).tokens.empty());
  const AnswerDelta end = answer.finish(std::make_shared<CompletionResult>());
  EXPECT_TRUE(end.silent());
  EXPECT_EQ(end.tokens.size(), 1U);
}

// On a made-up clock: a reader that takes 10 microseconds more for each letter, and tokens that
// come 5 ms after each other.
class SlowReader : public BarReader {
 public:
  explicit SlowReader(double* now) : now_(now) {}
  ChatReply read(std::string_view text, bool complete) const override {
    *now_ += 0.01 * static_cast<double>(text.size());
    ++n_reads;
    return BarReader::read(text, complete);
  }
  mutable int n_reads = 0;

 private:
  double* now_;
};

TEST(Answer, ReadingALongOneTakesAShareOfTheTimeOnly) {
  double now = 0.0;
  const NowMs clock = [&now] { return now; };
  const auto reader = std::make_shared<SlowReader>(&now);
  Answer answer(reader, &clock);
  Joined joined;
  double between = 0.0;
  std::size_t told = 0;
  for (int i = 0; i < 2000; ++i) {
    const AnswerDelta delta = answer.add({said("a")});
    told += delta.tokens.size();
    joined.add(delta);
    now += 5.0;
    between += 5.0;
  }
  EXPECT_LT(now - between, 0.06 * now);
  EXPECT_GT(reader->n_reads, 100);
  EXPECT_LT(told, 2000U);
  const AnswerDelta rest = answer.finish(std::make_shared<CompletionResult>());
  joined.add(rest);
  EXPECT_EQ(told + rest.tokens.size(), 2000U);
  EXPECT_EQ(joined.reply.reasoning, std::string(2000, 'a'));
  EXPECT_EQ(answer.reasoning_tokens(), 2000);
}

}  // namespace
}  // namespace outrider::http
