// PieceVocabulary: a vocabulary with a tokenizer that can be worked out on paper.
//
// The tokenizer takes the longest piece that matches, from left to right. So new bytes behind a
// text change only tokens that begin less than the longest piece before its end, and what a
// tokenizer for growing texts must give is known exactly.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/vocabulary.h"
#include "testing/simple_chat.h"

namespace outrider::testing {

class PieceVocabulary : public Vocabulary {
 public:
  // Token i has the bytes pieces[i]; an empty one is a control token.
  explicit PieceVocabulary(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}

  // The tokenizer puts a space in front of a text, as SentencePiece does.
  void add_space(bool add) { adds_space_ = add; }
  // The tokenizer turns each `from` into `to` first.
  void change(char from, char to) {
    from_ = from;
    to_ = to;
  }
  // The next calls of tokenize() fail.
  void fail(bool failing) { fails_ = failing; }

  std::int32_t size() const override { return static_cast<std::int32_t>(pieces_.size()); }
  std::string_view piece(Token token) const override {
    return pieces_.at(static_cast<std::size_t>(token));
  }
  bool is_end_of_generation(Token) const override { return false; }

  Result<std::vector<Token>> tokenize(std::string_view text, bool, bool) const override {
    if (fails_) return internal_error("the tokenizer fails on purpose");
    std::string given = (adds_space_ && !text.empty() ? " " : "") + std::string(text);
    for (char& c : given) c = c == from_ ? to_ : c;
    std::vector<Token> tokens;
    for (std::size_t at = 0; at < given.size();) {
      const Token token = longest(std::string_view(given).substr(at));
      if (token == kNoToken) return invalid_argument("no piece for " + given.substr(at, 1));
      tokens.push_back(token);
      at += piece(token).size();
    }
    return tokens;
  }

  Result<std::string> detokenize(const std::vector<Token>& tokens) const override {
    std::string text;
    for (const Token token : tokens) text += piece(token);
    return text;
  }

  Result<ChatPrompt> chat_prompt(const std::vector<ChatMessage>& messages,
                                 const ChatOptions& options) const override {
    return simple_chat_prompt(messages, options);
  }

 private:
  // Of equal pieces the one with the highest id.
  Token longest(std::string_view text) const {
    Token best = kNoToken;
    for (Token token = 0; token < size(); ++token) {
      const std::string_view p = piece(token);
      if (p.empty() || !text.starts_with(p)) continue;
      if (best == kNoToken || p.size() >= piece(best).size()) best = token;
    }
    return best;
  }

  std::vector<std::string> pieces_;
  bool adds_space_ = false;
  bool fails_ = false;
  char from_ = 0;
  char to_ = 0;
};

// The bytes 1 to 255 as single pieces, behind `pieces`.
inline std::vector<std::string> with_all_bytes(std::vector<std::string> pieces) {
  for (int byte = 1; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  return pieces;
}

}  // namespace outrider::testing
