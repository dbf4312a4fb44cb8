#include "draft/ngram/ngram_lookup.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr std::uint64_t kCorpusWeight = 100;  // of a sighting in the static cache

std::uint64_t weight(const NgramPart* corpus, Token token) {
  const std::uint64_t count = corpus == nullptr ? 0 : corpus->count(token);
  return count == 0 ? 1 : kCorpusWeight * count;
}

// The follower with the largest product of count and weight. Tokens that the corpus does not know
// weigh 1, so none of them can beat the best follower: only those in both lists need to be looked
// at, and the shorter list is gone through.
Follower choose(const NgramPart& part, const NgramPart* corpus) {
  Follower chosen = part.best;
  if (corpus == nullptr || part.followers.size() == 1) return chosen;
  std::uint64_t product = chosen.count * weight(corpus, chosen.token);
  const auto consider = [&](Token token, std::uint64_t count, std::uint64_t corpus_count) {
    if (count * kCorpusWeight * corpus_count <= product) return;
    product = count * kCorpusWeight * corpus_count;
    chosen = {.token = token, .count = static_cast<std::uint32_t>(count)};
  };
  if (part.followers.size() < corpus->followers.size()) {
    for (const Follower& f : part.followers) consider(f.token, f.count, corpus->count(f.token));
  } else {
    for (const Follower& f : corpus->followers) consider(f.token, part.count(f.token), f.count);
  }
  return chosen;
}

bool sure_enough(const NgramThresholds& thresholds, std::int32_t order, std::uint64_t total,
                 std::uint64_t count) {
  const std::size_t i = static_cast<std::size_t>(order - 1);
  return total >= thresholds.min_total[i] && 100 * count >= thresholds.min_percent[i] * total;
}

NgramGuess guess(const NgramPart& part, Follower chosen, NgramTier tier, std::int32_t order) {
  return {.token = chosen.token,
          .tier = tier,
          .order = order,
          .chance = static_cast<float>(chosen.count) / static_cast<float>(part.total + 1)};
}

Ngram last_tokens(std::span<const Token> text, std::int32_t order) {
  return Ngram(text.last(static_cast<std::size_t>(order)));
}

NgramGuess ask(const NgramCache& cache, const NgramThresholds& thresholds, NgramTier tier,
               std::span<const Token> text, const NgramPart* corpus) {
  NgramPart part;
  for (std::int32_t order =
           static_cast<std::int32_t>(std::min<std::size_t>(kMaxNgram, text.size()));
       order >= 1; --order) {
    if (!cache.find(last_tokens(text, order), part)) continue;
    // No other follower has a larger count than the best one, so most n-grams end here.
    if (!sure_enough(thresholds, order, part.total, part.best.count)) continue;
    const Follower chosen = choose(part, corpus);
    if (!sure_enough(thresholds, order, part.total, chosen.count)) continue;
    return guess(part, chosen, tier, order);
  }
  return {};
}

}  // namespace

NgramGuess guess_next(const NgramTiers& tiers, std::span<const Token> text) {
  NgramPart corpus;
  const bool known = tiers.corpus != nullptr &&
                     text.size() >= static_cast<std::size_t>(kStaticNgram) &&
                     tiers.corpus->find(last_tokens(text, kStaticNgram), corpus);
  const NgramPart* weights = known ? &corpus : nullptr;
  NgramGuess result;
  if (tiers.context != nullptr) {
    result = ask(*tiers.context, kLaxNgram, NgramTier::kContext, text, weights);
  }
  if (result.token == kNoToken && tiers.dynamic != nullptr) {
    result = ask(*tiers.dynamic, kStrictNgram, NgramTier::kDynamic, text, weights);
  }
  if (result.token == kNoToken && known &&
      sure_enough(kLaxNgram, kStaticNgram, corpus.total, corpus.best.count)) {
    result = guess(corpus, corpus.best, NgramTier::kStatic, kStaticNgram);
  }
  return result;
}

}  // namespace outrider
