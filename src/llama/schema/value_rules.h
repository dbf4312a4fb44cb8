// Values that llama-common's converter of schemas has no words for: strings of a pattern, numbers
// between bounds. In the schema each stands as a constant that nobody else writes, its mark; in the
// grammar that comes out of the converter, the mark's literal is replaced by a rule of our own.
//
// The mark of a number is a number: formats of tool calls that write strings without quotation
// marks ask a schema whether it may be a string.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"

namespace outrider::llama {

class ValueRules {
 public:
  // A schema for what `expression` (of a GBNF grammar) describes: strings, or numbers.
  json::Json string_mark(std::string expression);
  json::Json number_mark(std::string expression);

  // `gbnf` with the marks replaced, and the rules behind it.
  std::string write(std::string gbnf) const;

 private:
  struct Rule {
    std::string literal;  // of the mark, as the converter writes it
    std::string expression;
  };
  std::vector<Rule> rules_;
};

}  // namespace outrider::llama
