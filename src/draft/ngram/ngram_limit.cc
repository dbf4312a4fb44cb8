#include "draft/ngram/ngram_limit.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace outrider {
namespace {

constexpr std::uint64_t kNgramBytes = 4 * kMaxNgram + 4 + 4;  // tokens, followers, age
constexpr std::uint64_t kFollowerBytes = 8;

}  // namespace

std::uint64_t ngram_file_bytes(const NgramCache& cache) {
  return cache.size() * kNgramBytes + cache.followers() * kFollowerBytes;
}

NgramCache limited_ngrams(NgramCache cache, std::uint64_t most_bytes) {
  if (ngram_file_bytes(cache) <= most_bytes) return cache;
  std::vector<std::size_t> order(cache.size());  // the best first
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&cache](std::size_t a, std::size_t b) {
    const std::uint64_t uses_a = cache.part(a).total;
    const std::uint64_t uses_b = cache.part(b).total;
    return uses_a != uses_b ? uses_a > uses_b : a > b;
  });
  std::uint64_t bytes = 0;
  std::size_t n = 0;
  for (; n < order.size(); ++n) {
    bytes += kNgramBytes + cache.part(order[n]).followers.size() * kFollowerBytes;
    if (bytes > most_bytes) break;
  }
  order.resize(n);
  std::sort(order.begin(), order.end());  // as they were seen
  NgramCache kept;
  kept.reserve(n);
  for (const std::size_t i : order) {
    const NgramPart part = cache.part(i);
    for (const Follower& follower : part.followers) {
      if (follower.token != part.best.token)
        kept.add(cache.ngram(i), follower.token, follower.count);
    }
    kept.add(cache.ngram(i), part.best.token, part.best.count);  // last: it stays the best
  }
  return kept;
}

}  // namespace outrider
