// Guessing the next token from n-gram caches, as lookup decoding does.
//
// Idea. Three tiers are asked in turn, and the first that is sure enough wins:
//   context  this text's own n-grams, longest first (4 tokens down to 1), lax thresholds
//   dynamic  those of earlier texts, the same way, strict thresholds
//   static   a large corpus' followers of the last 2 tokens, lax thresholds
// An n-gram is sure enough when it was seen often enough and its guess makes up a large enough
// share. In the first two tiers the guess is the follower with the largest product of its count
// and, as far as the corpus knows the last two tokens, 100 times its count there (1 where the
// corpus never saw it): text that is rare here may be decided by what is common elsewhere.
//
// Example, static cache empty, context "x y 1 x y 2 x y": after "x y" come 1 and 2, once each. Two
// sightings are enough for order 2, one half is at least 50 %, and of equals the newer wins: 2.
//
// Thresholds, order and weights are llama.cpp's (common/ngram-cache.cpp, v0.5.0; measured there in
// PR #5479). Differences, all deliberate: ties go to the newest follower, not to the hash table's
// order; an n-gram never reaches back beyond the text's beginning.
//
// Cost. At most ten look-ups a token; where a static cache has to decide, a binary search per
// follower of the shorter list.
//
// Tested by ngram_lookup_test.cc against the rules written out slowly, and against llama.cpp itself
// (testing/llama_ngrams_test.cc).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "draft/ngram/ngram_cache.h"

namespace outrider {

// When an n-gram of each order is sure enough. [order - 1]
struct NgramThresholds {
  std::array<std::uint32_t, kMaxNgram> min_total;    // sightings
  std::array<std::uint32_t, kMaxNgram> min_percent;  // share of the guess; at least 50
};
inline constexpr NgramThresholds kLaxNgram = {{2, 2, 1, 1}, {66, 50, 50, 50}};
inline constexpr NgramThresholds kStrictNgram = {{4, 3, 2, 2}, {75, 66, 66, 66}};

enum class NgramTier { kNone, kContext, kDynamic, kStatic };

// The caches to ask; null: none of that kind. Not owned.
struct NgramTiers {
  const NgramCache* context = nullptr;
  const NgramCache* dynamic = nullptr;
  const NgramCache* corpus = nullptr;  // the static one; only its n-grams of kStaticNgram are used
};

struct NgramGuess {
  Token token = kNoToken;  // kNoToken: nobody is sure enough
  NgramTier tier = NgramTier::kNone;
  std::int32_t order = 0;  // of the n-gram that knew
  float chance = 0.0f;     // that the text goes on like this: count / (total + 1)
};

// The guess behind `text`, of which only the last kMaxNgram tokens matter.
NgramGuess guess_next(const NgramTiers& tiers, std::span<const Token> text);

}  // namespace outrider
