// For grammar_mask.cc and grammar_wait.cc, the two parts of GrammarMask.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/types.h"

namespace outrider::llama {

// A token is taken in microseconds. A grammar that can be read in more ways with each token doubles
// that every time, inside llama.cpp, where nothing can be limited or interrupted: this long, and
// the request ends before the next doubling.
inline constexpr double kMostGrammarMs = 2000.0;

inline constexpr const char* kGrammarRoot = "root";

inline bool holds(const std::vector<Token>& sorted, Token token) {
  return std::binary_search(sorted.begin(), sorted.end(), token);
}

inline Status check_grammar_time(const Stopwatch& watch) {
  const double ms = watch.elapsed_ms();
  if (ms <= kMostGrammarMs) return Status();
  return resource_exhausted(
      "the grammar is too ambiguous: one more token took " +
      std::to_string(static_cast<int>(ms / 1000.0)) +
      " s, since it can be read in ever more ways; give rules of which only one fits at a time");
}

}  // namespace outrider::llama
