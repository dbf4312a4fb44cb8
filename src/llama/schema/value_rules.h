// Values that llama-common's converter of schemas has no words for: strings of a pattern, numbers
// between bounds. In the schema each stands as a constant that nobody else writes, its mark; in the
// grammar that comes out of the converter, the mark's literal is replaced by a rule of our own.
//
// A mark keeps the value's type: formats of tool calls that write strings without quotation marks
// ask a schema whether it may be a string. And it has a number, by which its rule is found.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"

namespace outrider::llama {

class ValueRules {
 public:
  // A schema for what `expression` (of a GBNF grammar) describes: strings, or numbers.
  json::Json string_mark(std::string expression);
  json::Json number_mark(std::string expression, bool whole);

  // A name for a definition that no other schema of these rules has.
  std::string next_definition() { return "t" + std::to_string(n_definitions_++); }

  // Whether a constant could be taken for a mark.
  static bool is_mark(const json::Json& constant);

  // `gbnf` with the marks replaced, and the rules behind it.
  std::string write(const std::string& gbnf) const;

 private:
  std::vector<std::string> expressions_;
  std::size_t n_definitions_ = 0;
};

}  // namespace outrider::llama
