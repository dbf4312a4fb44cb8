// The rules of a GBNF grammar as llama.cpp builds them, and the measures of gbnf.h on them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "llama/grammar/gbnf.h"

namespace outrider::llama {

// Those that a terminal takes; a token's takes none.
struct GbnfCharacters {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;  // first and last
  bool all_others = false;                                      // [^...], and '.' without ranges

  bool takes(std::uint32_t character) const {
    const auto holds_it = [character](const std::pair<std::uint32_t, std::uint32_t>& range) {
      return range.first <= character && character <= range.second;
    };
    return std::any_of(ranges.begin(), ranges.end(), holds_it) != all_others;
  }
};

struct GbnfElement {
  enum class Kind : std::uint8_t {
    kTerminal,  // a character, a class or a token
    kRule,      // a reference to the rule `rule`
    kOr,        // between two alternatives
  };
  Kind kind = Kind::kTerminal;
  std::uint32_t rule = 0;
  std::uint32_t characters = 0;  // of a terminal, in GbnfRules::characters
};

struct GbnfRules {
  std::vector<std::vector<GbnfElement>>
      rules;  // [n_rules]; defined[i] says whether rules[i] counts
  std::vector<bool> defined;
  std::vector<std::string> names;  // of the rule that was written, for parts of one too
  std::vector<GbnfCharacters> characters;
};

// Errors as check_gbnf's for what concerns all rules together: references, left recursion, and the
// ways to a first character and on from each place.
Status check_gbnf_rules(const GbnfRules& grammar, const GbnfLimits& limits);

}  // namespace outrider::llama
