// How large an n-gram cache may grow: what is kept of one that has grown larger.
//
// Rule. n-grams with the fewest uses go first; of equals those that have been in the cache longest,
// since what was said lately is said again sooner. How long is the cache's order, which the file
// keeps. An n-gram goes with all its followers.
//
// Cost. n log n comparisons for n n-grams: a second for ten million.
//
// Tested by ngram_limit_test.cc.
#pragma once

#include <cstdint>

#include "draft/ngram/ngram_cache.h"

namespace outrider {

// Bytes of its file, ages included (draft/ngram/ngram_file.h), to a few hundred and the checksums'
// 0.1 %.
std::uint64_t ngram_file_bytes(const NgramCache& cache);

// What of `cache` fits into `most_bytes` of a file; all of it where it does.
NgramCache limited_ngrams(NgramCache cache, std::uint64_t most_bytes);

}  // namespace outrider
