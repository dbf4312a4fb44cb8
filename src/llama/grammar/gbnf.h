// Checks a GBNF grammar before llama.cpp sees it.
//
// Why. llama.cpp v0.5.0's grammar code trusts its input. Reading src/llama-grammar.cpp:
//  - the parser calls itself for each group: 20,000 nested ones overflow a stack of 8 MiB;
//  - the search for left recursion calls itself along first symbols (a chain of 66,000 rules
//    overflows), forgets what it has seen (a::=b b|b b, b::=c c|c c, ... takes 2^n steps), and
//    does not see left recursion behind a symbol that is empty only through another one, on which
//    the matcher then grows its stacks without end;
//  - the matcher keeps one stack for each way to go on, so first symbols that fan out cost the
//    product, and {0,2000} of a rule that is itself {0,2000} costs 4,000,000 stacks a character;
//    for each stack it looks at all ways behind that one, and compares each with all others: with
//    "x" and 1,000 optional characters seconds a character, and the cube of that with more;
//  - it follows a token in each way that its text can be read, without merging equal ones: with 30
//    optional letters in a row one word holds it for minutes;
//  - {3,1} makes it count down from 2^64; {0,3000} silently becomes {0,}; an empty class [] matches
//    nothing at all and vanishes; an empty grammar means none, and a NUL ends the text: the output
//    would not be constrained;
//  - errors are printed to stderr with the whole grammar.
// So here is the same language once more, parsed without recursion, with limits, and with the
// measures that tell what the other code will do. The smallest cases: docs/bugs.md.
//
// Cost: linear in the text and in what repetitions expand to; 2 ms at the limits, 60 ms at those of
// grammars that we make; and up to 60 ms more for the texts of gbnf_ambiguity.h.
//
// Source of the language: llama.cpp's grammars/README.md. Tested by gbnf_test.cc and
// gbnf_ambiguity_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace outrider::llama {

struct GbnfLimits {
  std::size_t bytes = 1 << 20;
  std::size_t depth = 200;         // of nested groups
  std::size_t rules = 10000;       // groups and what repetitions become included
  std::size_t elements = 50000;    // characters, classes and references, after repetition
  std::size_t repetitions = 2000;  // in {m,n}, and its product with the rules repeated: llama.cpp's
  std::size_t first_depth = 500;   // rules entered one in another before the first character
  std::size_t first_ways = 1024;   // ways to get from the start of a rule to its first character
  std::size_t place_ways = 1536;   // ways to get from any place to the next character
  std::size_t step_ways = 8192;    // ways through a character from one place, and on behind it
  std::size_t token_ways = 250000;  // ways into a text of 16 characters that is then refused
};

// Of grammars that we make of schemas, which are larger than what people write: of 128 tools with
// 40 properties each 20,813 rules, 153,673 elements and 1.8 MB. What grows with them is llama.cpp's
// copying of a grammar (grammar_mask.h).
inline constexpr GbnfLimits kMadeGbnfLimits{.bytes = 4 << 20, .rules = 40000, .elements = 200000};

// What it says of tokens instead of text: ids from <[12]>, names such as "<think>".
struct GbnfSummary {
  std::size_t n_rules = 0;  // for the fuzz target
  std::vector<std::uint32_t> token_ids;
  std::vector<std::string> token_names;
};

// Errors: kInvalidArgument, "line 3, column 7: ..." or naming the rule, for what is not GBNF, is
// over a limit, has no rule "root", refers to an undefined rule, or is left-recursive.
Result<GbnfSummary> check_gbnf(std::string_view text, const GbnfLimits& limits = {});

}  // namespace outrider::llama
