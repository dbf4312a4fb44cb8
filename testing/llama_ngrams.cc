#include "testing/llama_ngrams.h"

#include "ngram-cache.h"

namespace outrider::testing {

struct LlamaNgrams::Cache {
  common_ngram_cache map;
};

LlamaNgrams::LlamaNgrams() : cache_(std::make_unique<Cache>()) {}
LlamaNgrams::~LlamaNgrams() = default;
LlamaNgrams::LlamaNgrams(LlamaNgrams&&) noexcept = default;

LlamaNgrams LlamaNgrams::load(const std::string& path) {
  LlamaNgrams result;
  result.cache_->map = common_ngram_cache_load(path);
  return result;
}

void LlamaNgrams::save(const std::string& path) { common_ngram_cache_save(cache_->map, path); }

void LlamaNgrams::update(const std::vector<Token>& text, std::int32_t n_new, std::int32_t min_order,
                         std::int32_t max_order) {
  std::vector<llama_token> tokens(text.begin(), text.end());
  common_ngram_cache_update(cache_->map, min_order, max_order, tokens, n_new, false);
}

void LlamaNgrams::merge(LlamaNgrams& other) {
  common_ngram_cache_merge(cache_->map, other.cache_->map);
}

void LlamaNgrams::clear() { cache_->map.clear(); }

std::string LlamaNgrams::difference(const NgramCache& cache) const {
  if (cache.size() != cache_->map.size()) return "another number of n-grams";
  for (const auto& [ngram, followers] : cache_->map) {
    Ngram ours;
    std::copy(ngram.tokens, ngram.tokens + kMaxNgram, ours.tokens.begin());
    NgramPart part;
    if (!cache.find(ours, part)) return "an n-gram is missing";
    if (part.followers.size() != followers.size()) return "another number of followers";
    for (const auto& [token, count] : followers) {
      if (part.count(token) != static_cast<std::uint32_t>(count)) return "another count";
    }
  }
  return "";
}

std::vector<Token> LlamaNgrams::draft(const std::vector<Token>& text, std::int32_t n,
                                      LlamaNgrams& context, LlamaNgrams& dynamic,
                                      LlamaNgrams& corpus) {
  std::vector<llama_token> tokens(text.begin(), text.end());
  std::vector<llama_token> draft = {tokens.back()};
  common_ngram_cache_draft(tokens, draft, n, LLAMA_NGRAM_MIN, LLAMA_NGRAM_MAX, context.cache_->map,
                           dynamic.cache_->map, corpus.cache_->map);
  return {draft.begin() + 1, draft.end()};
}

}  // namespace outrider::testing
