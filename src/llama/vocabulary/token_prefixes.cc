#include "llama/vocabulary/token_prefixes.h"

#include <algorithm>
#include <string_view>

#include "base/utf8.h"

namespace outrider::llama {

TokenPrefixes::TokenPrefixes(const Vocabulary& vocabulary) {
  const std::size_t n = static_cast<std::size_t>(vocabulary.size());
  std::vector<Token> sorted;  // by text, those without one left out
  std::vector<Token> above(n, kNoToken);
  for (Token token = 0; token < vocabulary.size(); ++token) {
    if (vocabulary.piece(token).empty() || vocabulary.is_end_of_generation(token)) {
      roots_.push_back(token);
    } else {
      sorted.push_back(token);
    }
  }
  std::sort(sorted.begin(), sorted.end(), [&vocabulary](Token a, Token b) {
    const int order = vocabulary.piece(a).compare(vocabulary.piece(b));
    return order != 0 ? order < 0 : a < b;
  });
  // In this order a token follows the tokens that it begins with; `open` holds the valid ones.
  std::vector<Token> open;
  for (const Token token : sorted) {
    const std::string_view text = vocabulary.piece(token);
    while (!open.empty() && text.rfind(vocabulary.piece(open.back()), 0) != 0) open.pop_back();
    if (open.empty()) {
      roots_.push_back(token);
    } else {
      above[static_cast<std::size_t>(token)] = open.back();
    }
    if (!first_invalid_utf8(text)) open.push_back(token);
  }
  offsets_.assign(n + 1, 0);
  for (const Token token : above) {
    if (token != kNoToken) ++offsets_[static_cast<std::size_t>(token) + 1];
  }
  for (std::size_t i = 0; i < n; ++i) offsets_[i + 1] += offsets_[i];
  below_.resize(offsets_[n]);
  std::vector<std::uint32_t> next(offsets_.begin(), offsets_.end() - 1);
  for (std::size_t i = 0; i < n; ++i) {
    if (above[i] == kNoToken) continue;
    below_[next[static_cast<std::size_t>(above[i])]++] = static_cast<Token>(i);
  }
}

}  // namespace outrider::llama
