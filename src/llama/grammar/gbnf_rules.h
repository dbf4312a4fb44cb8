// The rules of a GBNF grammar as llama.cpp builds them, and the measures of gbnf.h on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "llama/grammar/gbnf.h"

namespace outrider::llama {

struct GbnfElement {
  enum class Kind : std::uint8_t {
    kTerminal,  // a character, a class or a token
    kRule,      // a reference to the rule `rule`
    kOr,        // between two alternatives
  };
  Kind kind = Kind::kTerminal;
  std::uint32_t rule = 0;
};

struct GbnfRules {
  std::vector<std::vector<GbnfElement>>
      rules;  // [n_rules]; defined[i] says whether rules[i] counts
  std::vector<bool> defined;
  std::vector<std::string> names;  // of the rule that was written, for parts of one too
};

// Errors as check_gbnf's for what concerns all rules together: references, left recursion, and the
// ways to a first character and on from each place.
Status check_gbnf_rules(const GbnfRules& grammar, const GbnfLimits& limits);

}  // namespace outrider::llama
