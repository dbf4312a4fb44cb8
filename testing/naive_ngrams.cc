#include "testing/naive_ngrams.h"

#include <algorithm>

namespace outrider::testing {
namespace {

// llama.cpp's numbers, a second time on purpose.
struct Thresholds {
  std::uint64_t min_total[4];
  std::uint64_t min_percent[4];
};
constexpr Thresholds kLax = {{2, 2, 1, 1}, {66, 50, 50, 50}};
constexpr Thresholds kStrict = {{4, 3, 2, 2}, {75, 66, 66, 66}};

std::vector<Token> tail(std::span<const Token> text, std::size_t n) {
  return std::vector<Token>(text.end() - static_cast<std::ptrdiff_t>(n), text.end());
}

std::uint64_t total_of(const NaiveNgrams::Followers& followers) {
  std::uint64_t total = 0;
  for (const auto& [token, counted] : followers) total += counted.count;
  return total;
}

bool enough(const Thresholds& t, std::size_t order, std::uint64_t total, std::uint64_t count) {
  return total >= t.min_total[order - 1] && 100 * count >= t.min_percent[order - 1] * total;
}

Token ask(const NaiveNgrams& cache, const Thresholds& thresholds,
          const NaiveNgrams::Followers* corpus, std::span<const Token> text) {
  for (std::size_t order = std::min<std::size_t>(4, text.size()); order >= 1; --order) {
    const NaiveNgrams::Followers* followers = cache.find(tail(text, order));
    if (followers == nullptr) continue;
    const auto product = [&](Token token) {
      std::uint64_t weight = 1;
      if (corpus != nullptr && corpus->count(token) > 0) weight = 100 * corpus->at(token).count;
      return followers->at(token).count * weight;
    };
    Token chosen = naive_best(*followers);
    for (const auto& [token, counted] : *followers) {
      if (product(token) > product(chosen)) chosen = token;
    }
    if (enough(thresholds, order, total_of(*followers), followers->at(chosen).count)) return chosen;
  }
  return kNoToken;
}

}  // namespace

void NaiveNgrams::add(const std::vector<Token>& ngram, Token token, std::uint32_t times) {
  Counted& counted = ngrams_[ngram][token];
  counted.count = std::min<std::uint64_t>(counted.count + times, kMaxNgramCount);
  counted.reached = ++now_;
}

void NaiveNgrams::count(std::span<const Token> text, std::int32_t min_order,
                        std::int32_t max_order) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (std::size_t n = static_cast<std::size_t>(min_order);
         n <= static_cast<std::size_t>(max_order) && n <= i; ++n) {
      add(tail(text.first(i), n), text[i], 1);
    }
  }
}

void NaiveNgrams::merge(const NaiveNgrams& other) {
  for (const auto& [ngram, followers] : other.ngrams_) {
    const Token best = naive_best(followers);
    for (const auto& [token, counted] : followers) {
      if (token != best) add(ngram, token, static_cast<std::uint32_t>(counted.count));
    }
    add(ngram, best, static_cast<std::uint32_t>(followers.at(best).count));
  }
}

const NaiveNgrams::Followers* NaiveNgrams::find(const std::vector<Token>& ngram) const {
  const std::map<std::vector<Token>, Followers>::const_iterator at = ngrams_.find(ngram);
  return at == ngrams_.end() ? nullptr : &at->second;
}

std::string NaiveNgrams::difference(const NgramCache& cache) const {
  if (cache.size() != ngrams_.size()) {
    return std::to_string(cache.size()) + " n-grams instead of " + std::to_string(ngrams_.size());
  }
  for (const auto& [ngram, followers] : ngrams_) {
    NgramPart part;
    if (!cache.find(Ngram(ngram), part)) return "an n-gram is missing";
    if (part.followers.size() != followers.size()) return "a follower is missing or too many";
    for (const auto& [token, counted] : followers) {
      if (part.count(token) != counted.count) return "a count differs";
    }
    if (part.total != total_of(followers)) return "a total differs";
    if (part.best.token != naive_best(followers)) return "a best follower differs";
  }
  return "";
}

Token naive_best(const NaiveNgrams::Followers& followers) {
  Token best = followers.begin()->first;
  for (const auto& [token, counted] : followers) {
    const NaiveNgrams::Counted& b = followers.at(best);
    const bool newer = counted.count == b.count && counted.reached > b.reached;
    if (counted.count > b.count || newer) best = token;
  }
  return best;
}

Token naive_guess(const NaiveNgrams* context, const NaiveNgrams* dynamic, const NaiveNgrams* corpus,
                  std::span<const Token> text) {
  const NaiveNgrams::Followers* weights =
      corpus == nullptr || text.size() < 2 ? nullptr : corpus->find(tail(text, 2));
  Token guess = kNoToken;
  if (context != nullptr) guess = ask(*context, kLax, weights, text);
  if (guess == kNoToken && dynamic != nullptr) guess = ask(*dynamic, kStrict, weights, text);
  if (guess != kNoToken || weights == nullptr) return guess;
  const Token best = naive_best(*weights);
  return enough(kLax, 2, total_of(*weights), weights->at(best).count) ? best : kNoToken;
}

}  // namespace outrider::testing
