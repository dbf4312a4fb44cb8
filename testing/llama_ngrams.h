// llama.cpp's own n-gram caches, to compare ours with: its code, linked.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "draft/ngram/ngram_cache.h"

namespace outrider::testing {

// One cache of llama.cpp's. Its functions abort on files that are not sound.
class LlamaNgrams {
 public:
  LlamaNgrams();
  ~LlamaNgrams();
  LlamaNgrams(LlamaNgrams&&) noexcept;

  static LlamaNgrams load(const std::string& path);
  void save(const std::string& path);
  // The last `n_new` tokens of `text` are new.
  void update(const std::vector<Token>& text, std::int32_t n_new, std::int32_t min_order,
              std::int32_t max_order);
  void merge(LlamaNgrams& other);
  void clear();

  // "" when `cache` holds the same n-grams and counts.
  std::string difference(const NgramCache& cache) const;

  // What llama.cpp drafts behind `text`, at most `n` tokens.
  static std::vector<Token> draft(const std::vector<Token>& text, std::int32_t n,
                                  LlamaNgrams& context, LlamaNgrams& dynamic, LlamaNgrams& corpus);

 private:
  struct Cache;
  std::unique_ptr<Cache> cache_;
};

}  // namespace outrider::testing
