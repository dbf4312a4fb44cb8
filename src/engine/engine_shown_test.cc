// Control tokens that an answer is to show (Request::shown): as text, wherever they are said.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/fake_engine.h"

namespace outrider {
namespace {

using testing::capabilities;
using testing::complete;
using testing::FakeModel;
using testing::FakeVocabulary;
using testing::kVocab;
using testing::random_rows;
using testing::reference;
using testing::request;
using testing::RowFunction;

TEST(EngineShown, AControlTokenSaysItsTextWhereItIsAskedFor) {
  const RowFunction rows = random_rows(kVocab, 5, 3.0f);
  const std::vector<Token> said = reference(rows, {1, 2}, 1.0f, 9, 30);
  const Token control = said[7];
  const FakeVocabulary vocabulary(kVocab, kNoToken, {{control, ""}});
  std::string plain;
  std::string shown;
  for (const Token token : said) {
    plain += vocabulary.piece(token);
    shown += token == control ? "<tool>" : vocabulary.piece(token);
  }
  for (const std::int32_t width : {1, 4}) {
    FakeModel target(capabilities(), rows);
    EXPECT_EQ(complete(target, vocabulary, {}, request({1, 2}, 1.0f, 9, 30, width)).text, plain);
    Request asked = request({1, 2}, 1.0f, 9, 30, width);
    asked.shown = {{control, "<tool>"}};
    asked.logprobs = kVocab;
    const Completion got = complete(target, vocabulary, {}, std::move(asked));
    EXPECT_EQ(got.text, shown);
    EXPECT_EQ(got.tokens, said);
    std::string named;
    bool among_others = false;
    for (const TokenLogprob& one : got.logprobs) {
      named += one.chosen.text;
      for (const RankedToken& top : one.top) {
        if (top.id != control) continue;
        among_others = true;
        EXPECT_EQ(top.text, "<tool>");
      }
    }
    EXPECT_EQ(named, shown) << "log-probabilities name it, too";
    EXPECT_TRUE(among_others);
  }
}

TEST(EngineShown, AnEndTokenIsShownToo) {
  const RowFunction rows = random_rows(kVocab, 5, 3.0f);
  const std::vector<Token> said = reference(rows, {1, 2}, 1.0f, 9, 30);
  const Token end = said[7];
  const FakeVocabulary vocabulary(kVocab, end);
  FakeModel target(capabilities(), rows);
  Request asked = request({1, 2}, 1.0f, 9, 30, 4);
  asked.shown = {{end, "<|call|>"}};
  const Completion got = complete(target, vocabulary, {}, std::move(asked));
  EXPECT_EQ(got.finish, FinishReason::kStop);
  EXPECT_TRUE(got.text.ends_with("<|call|>")) << got.text;
  const Completion plain = complete(target, vocabulary, {}, request({1, 2}, 1.0f, 9, 30, 4));
  EXPECT_EQ(got.text, plain.text + "<|call|>");
}

TEST(EngineShown, AStopTextMayRunIntoIt) {
  const RowFunction rows = random_rows(kVocab, 5, 3.0f);
  const std::vector<Token> said = reference(rows, {1, 2}, 1.0f, 9, 30);
  const Token control = said[7];
  const FakeVocabulary vocabulary(kVocab, kNoToken, {{control, ""}});
  FakeModel target(capabilities(), rows);
  Request asked = request({1, 2}, 1.0f, 9, 30, 4);
  asked.shown = {{control, "<tool>"}};
  asked.stop = {"<to"};
  const Completion got = complete(target, vocabulary, {}, std::move(asked));
  EXPECT_EQ(got.stop, "<to");
  EXPECT_EQ(got.text.find('<'), std::string::npos);
}

}  // namespace
}  // namespace outrider
