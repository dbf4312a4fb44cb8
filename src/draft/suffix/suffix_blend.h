// Blending what followed contexts of several lengths into one chance for each next token.
//
// Idea. A long match says more than a short one, and one that was seen often more than one seen
// once, but none says everything: after "the quick" the text may do something that it never did
// behind these two words, and often did behind "quick". So each level, longest first, gives its own
// counts all but an escape of the remaining weight, and the next shorter one shares the escape out
// (prediction by partial matching). With n continuations of d different tokens behind a match of L
// tokens
//
//     escape = d * kDistinct / (n + d * kDistinct) * 1 / (1 + L / kLengthScale) + kFloor
//     chance = (1 - escape) * ((count + kRecency * n * [used last]) / (n + kRecency * n))
//
// Example. Behind 20 tokens, "a" followed once: escape 4/5 * 16/36 + 0.05 = 0.41, so a: 0.59;
// behind the last 3 of them "a" 2 times and "b" 3 times, b last: shares of 0.41 follow.
//
// The constants were fitted on the first 30,000 tokens of agent traces; what each is worth on
// texts that they were not fitted on is in docs/benchmarks-counts.md. Recency matters most: texts
// that change (a file being edited, a log) go on as they did the last time.
//
// Source: Cleary and Witten, "Data compression using adaptive coding and partial string matching",
// 1984 (levels and escapes; d / (n + d) is Moffat's method C, 1990); SuffixDecoding, arXiv
// 2411.04975, ranks by counts and match length alone. Tested by suffix_drafter_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "draft/suffix/suffix_index.h"

namespace outrider {

// What followed one context, at some places.
struct SuffixLevel {
  std::uint32_t length = 0;         // tokens of the match, >= 1
  std::uint32_t total = 0;          // continuations counted, >= the sum of `continuations`, >= 1
  std::uint32_t n_distinct = 0;     // different ones, >= continuations.size()
  bool first_is_last_used = false;  // continuations[0] is what followed last
  std::span<const SuffixIndex::Continuation> continuations;  // not empty, distinct tokens
};

struct SuffixChance {
  Token token = kNoToken;
  float chance = 0.0f;  // 0 < chance <= 1
};

struct SuffixBlend {
  float distinct = 4.0f;       // kDistinct above
  float length_scale = 16.0f;  // kLengthScale
  float floor = 0.05f;         // kFloor: nothing is certain
  float recency = 0.4f;        // kRecency
  float least_weight = 0.02f;  // levels that would share less than this are left out

  // The chance that what follows is nothing that followed `level`'s context; 0 < escape <= 0.95.
  float escape(const SuffixLevel& level) const;

  // `levels`, longest first, become chances in `out`, which sum to at most 1, in no order.
  void blend(std::span<const SuffixLevel> levels, std::vector<SuffixChance>& out) const;
};

}  // namespace outrider
