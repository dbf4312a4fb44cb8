#include "llama/vocabulary/dry_breakers.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "llama/vocabulary/vocabulary.h"
#include "testing/llama_fixture.h"

namespace outrider::llama {
namespace {

class DryBreakersTest : public testing::TinyModelTest {
 protected:
  const LlamaVocabulary& vocabulary() const { return file().vocabulary(); }

  std::shared_ptr<const DryBreakers> breakers(const std::vector<std::string>& texts) const {
    return vocabulary().dry_breakers(texts);
  }

  // One token for each byte.
  static std::vector<Token> bytes(const std::string& text) {
    std::vector<Token> tokens;
    for (const char c : text) {
      tokens.push_back(testing::kTinyFirstByte + static_cast<unsigned char>(c));
    }
    return tokens;
  }

  // The token that spells `text`; kNoToken: there is none.
  Token token_of(const std::string& text) const {
    for (Token token = testing::kTinyFirstPiece; token < vocabulary().size(); ++token) {
      if (vocabulary().piece(token) == text) return token;
    }
    return kNoToken;
  }
};

TEST_F(DryBreakersTest, ATokenThatHasAllOfABreakerEndsARepetitionAlone) {
  const std::shared_ptr<const DryBreakers> of = breakers({"N", "x"});
  ASSERT_NE(token_of("END"), kNoToken);
  EXPECT_TRUE(of->ends_alone(token_of("END")));
  EXPECT_TRUE(of->ends_alone(bytes("x")[0]));
  EXPECT_FALSE(of->ends_alone(bytes("E")[0]));
  EXPECT_FALSE(of->ends_alone(vocabulary().size())) << "of a draft model with more tokens";
  EXPECT_FALSE(of->ends_alone(kNoToken));
}

TEST_F(DryBreakersTest, ABreakerIsFoundAcrossTokensAndTheLastOfThemCounts) {
  const std::shared_ptr<const DryBreakers> of = breakers({"ab", "Dcd"});
  EXPECT_EQ(of->n_behind_last({}), 0U);
  EXPECT_EQ(of->n_behind_last(bytes("efgh")), 4U) << "there is none";
  EXPECT_EQ(of->n_behind_last(bytes("cabde")), 2U);
  EXPECT_EQ(of->n_behind_last(bytes("abcab")), 0U);
  EXPECT_EQ(of->n_behind_last(bytes("aab")), 0U);
  EXPECT_EQ(of->n_behind_last(bytes("abca")), 2U) << "one that has only begun is none";
  std::vector<Token> text = {token_of("END")};
  for (const Token token : bytes("cde")) text.push_back(token);
  EXPECT_EQ(of->n_behind_last(text), 1U) << "it begins in the middle of one";
  EXPECT_EQ(breakers({})->n_behind_last(text), text.size());
}

TEST_F(DryBreakersTest, AListIsLookedUpOnceWhileItIsAmongTheLast) {
  const std::shared_ptr<const DryBreakers> first = breakers({"a", "b"});
  EXPECT_EQ(breakers({"a", "b"}), first);
  for (std::size_t i = 1; i < DryBreakersCache::kMost; ++i) breakers({std::string(i, 'x')});
  EXPECT_EQ(breakers({"a", "b"}), first) << "and it is the last one again";
  for (std::size_t i = 1; i < DryBreakersCache::kMost; ++i) breakers({std::string(i, 'y')});
  EXPECT_EQ(breakers({"a", "b"}), first);
  EXPECT_EQ(first.use_count(), 2) << "the cache's, and ours";
  for (std::size_t i = 1; i <= DryBreakersCache::kMost; ++i) breakers({std::string(i, 'z')});
  EXPECT_EQ(first.use_count(), 1) << "it holds a bounded number of lists";
  EXPECT_NE(breakers({"a", "b"}), first);
  EXPECT_TRUE(first->ends_alone(bytes("a")[0])) << "samplers that have it keep it";
}

TEST_F(DryBreakersTest, ThreadsThatAskAtOnceShareOne) {
  std::vector<std::shared_ptr<const DryBreakers>> got(4);
  std::vector<std::thread> threads;
  for (std::shared_ptr<const DryBreakers>& one : got) {
    threads.emplace_back([this, &one] { one = breakers({"th", "ing"}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::shared_ptr<const DryBreakers>& one : got) EXPECT_EQ(one, got[0]);
}

}  // namespace
}  // namespace outrider::llama
