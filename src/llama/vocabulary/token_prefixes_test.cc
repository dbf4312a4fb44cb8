#include "llama/vocabulary/token_prefixes.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/llama_fixture.h"

namespace outrider::llama {
namespace {

using TokenPrefixesTest = testing::TinyModelTest;

TEST_F(TokenPrefixesTest, EveryTokenHangsBelowTheLongestValidOneThatItBeginsWith) {
  const LlamaVocabulary& vocabulary = file().vocabulary();
  const TokenPrefixes& prefixes = vocabulary.prefixes();
  std::map<Token, Token> above;
  for (const Token root : prefixes.roots()) above[root] = kNoToken;
  for (Token token = 0; token < vocabulary.size(); ++token) {
    for (const Token child : prefixes.below(token)) {
      EXPECT_EQ(above.count(child), 0u) << "twice: " << child;
      above[child] = token;
    }
  }
  ASSERT_EQ(above.size(), static_cast<std::size_t>(vocabulary.size()));
  int n_below = 0;
  for (Token token = 0; token < vocabulary.size(); ++token) {
    const std::string text(vocabulary.piece(token));
    std::size_t longest = 0;
    for (Token other = 0; other < vocabulary.size(); ++other) {
      const std::string start(vocabulary.piece(other));
      const bool same = start == text;  // of equal texts the one with the smaller id is above
      if (start.empty() || vocabulary.is_end_of_generation(other) || first_invalid_utf8(start)) {
        continue;
      }
      if (other == token || (same && other > token) || text.rfind(start, 0) != 0) continue;
      longest = std::max(longest, start.size());
    }
    const bool root = text.empty() || vocabulary.is_end_of_generation(token) || longest == 0;
    EXPECT_EQ(above[token] == kNoToken, root) << token << " '" << text << "'";
    if (root || above[token] == kNoToken) continue;
    EXPECT_EQ(vocabulary.piece(above[token]).size(), longest) << "'" << text << "'";
    ++n_below;
  }
  EXPECT_GE(n_below, 20);
}

}  // namespace
}  // namespace outrider::llama
