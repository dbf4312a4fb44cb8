// TriggerTokens: which tokens can complete a trigger, so that only these need to be looked at while
// a text waits for one.
//
// A token completes a trigger when its text holds a whole one, or begins with the ending of one
// whose beginning the text ends with. Both can be told from the token's text alone, once; at each
// place in the text it is then a comparison with the endings that are open there, mostly none.
//
// Example. Trigger "END": "END!", "xEND" and "END" hold it; "D", "D!" and "ND\n" begin with an
// ending of it. Behind "the EN" the open ending is "D"; behind "the" there is none.
//
// Cost. 49,152 tokens: 1 ms to build, for each request with a trigger.
//
// Tested by grammar_trigger_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace outrider::llama {

class LlamaVocabulary;

// All bytes of a token that llama.cpp's grammar sees: those of control tokens included.
std::string grammar_text(const LlamaVocabulary& vocabulary, Token token);

// Immutable; any thread.
class TriggerTokens {
 public:
  struct Piece {
    Token token;
    std::string text;  // grammar_text()
    bool whole;        // holds a whole trigger
  };

  // REQUIRES: no trigger is empty.
  TriggerTokens(std::vector<std::string> triggers, const LlamaVocabulary& vocabulary);

  const std::vector<std::string>& triggers() const { return triggers_; }
  std::size_t longest() const { return longest_; }  // bytes

  // Where the first of triggers() that `text` holds begins; npos when it holds none. (The first of
  // the list, not of the text: so llama.cpp looks for them.)
  std::size_t begin_in(std::string_view text) const;

  // What is missing of the triggers whose beginnings `tail` ends with. Points into triggers().
  std::vector<std::string_view> endings(std::string_view tail) const;

  // The tokens that can complete a trigger, by id.
  const std::vector<Piece>& pieces() const { return pieces_; }

  // The tokens whose texts begin inside a character of several bytes, by id.
  const std::vector<Token>& continuing() const { return continuing_; }

 private:
  std::vector<std::string> triggers_;
  std::size_t longest_ = 0;
  std::vector<Piece> pieces_;
  std::vector<Token> continuing_;
};

}  // namespace outrider::llama
