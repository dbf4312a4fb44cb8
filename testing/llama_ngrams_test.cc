// Our n-gram caches, their files and their guesses against llama.cpp's own code.
#include "testing/llama_ngrams.h"

#include <gtest/gtest.h>

#include <random>

#include "draft/ngram/llama_ngram_file.h"
#include "draft/ngram/ngram_lookup.h"
#include "testing/chi_square.h"
#include "testing/tiny_dir.h"

namespace outrider::testing {
namespace {

using Tokens = std::vector<Token>;

Tokens random_text(std::mt19937_64& random, std::size_t length, std::uint64_t n_tokens) {
  Tokens text(length);
  for (Token& token : text) {
    token = static_cast<Token>(std::min(random() % n_tokens, random() % n_tokens));
  }
  return text;
}

struct Pair {
  Pair(const Tokens& text, std::int32_t min_order, std::int32_t max_order) {
    ours.count(text, 0, min_order, max_order);
    theirs.update(text, static_cast<std::int32_t>(text.size()), min_order, max_order);
  }
  NgramCache ours;
  LlamaNgrams theirs;
};

TEST(LlamaNgrams, CountingMergingAndBothWaysThroughFilesGiveTheSameCache) {
  std::mt19937_64 random(test_seed(6120));
  const TempDir dir;
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t n_tokens = 2 + random() % 200;
    const std::int32_t max_order = round % 2 == 0 ? kMaxNgram : kStaticNgram;
    const std::int32_t min_order = round % 2 == 0 ? 1 : kStaticNgram;
    Pair a(random_text(random, 3 + random() % 1000, n_tokens), min_order, max_order);
    Pair b(random_text(random, 3 + random() % 1000, n_tokens), min_order, max_order);
    ASSERT_EQ(a.theirs.difference(a.ours), "");
    a.ours.merge(b.ours);
    a.theirs.merge(b.theirs);
    ASSERT_EQ(a.theirs.difference(a.ours), "");
    a.theirs.save(dir.file("theirs"));
    const Result<ImportedNgrams> imported = import_llama_ngrams(dir.file("theirs"), 300);
    ASSERT_TRUE(imported.ok()) << imported.status().message();
    ASSERT_EQ(a.theirs.difference(imported->cache), "");
    ASSERT_TRUE(export_llama_ngrams(a.ours, dir.file("ours")).ok());
    ASSERT_EQ(LlamaNgrams::load(dir.file("ours")).difference(a.ours), "");
  }
}

// Whether the guess behind `text` hangs on which of equals is taken: then llama.cpp's choice is its
// hash table's. Asked with every tie decided the other way round is too much; a tie anywhere among
// the n-grams that end the text is enough to leave the case out.
bool has_ties(const NgramCache& cache, std::span<const Token> text) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(kMaxNgram, text.size()); ++n) {
    NgramPart part;
    if (!cache.find(Ngram(text.last(n)), part)) continue;
    for (const Follower& f : part.followers) {
      if (f.token != part.best.token && f.count == part.best.count) return true;
    }
  }
  return false;
}

// Or on two equal products of counts: only a static cache makes products.
bool has_product_ties(const NgramCache& cache, const NgramCache& corpus,
                      std::span<const Token> text) {
  NgramPart known;
  if (text.size() < 2 || !corpus.find(Ngram(text.last(2)), known)) return false;
  for (std::size_t n = 1; n <= std::min<std::size_t>(kMaxNgram, text.size()); ++n) {
    NgramPart part;
    if (!cache.find(Ngram(text.last(n)), part)) continue;
    std::vector<std::uint64_t> products;
    for (const Follower& f : part.followers) {
      const std::uint64_t count = known.count(f.token);
      products.push_back(f.count * (count == 0 ? 1 : 100 * count));
    }
    std::sort(products.begin(), products.end());
    if (products.size() > 1 && products.back() == products[products.size() - 2]) return true;
  }
  return false;
}

TEST(LlamaNgrams, EveryGuessIsLlamaCppsExceptWhereItsHashTableDecides) {
  std::mt19937_64 random(test_seed(6121));
  std::int64_t compared = 0;
  std::int64_t guessed = 0;
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t n_tokens = 2 + random() % 15;
    Pair context(random_text(random, 60, n_tokens), 1, kMaxNgram);
    Pair dynamic(random_text(random, 300, n_tokens), 1, kMaxNgram);
    Pair corpus(random_text(random, round % 2 == 0 ? 0 : 500, n_tokens), kStaticNgram,
                kStaticNgram);
    const NgramTiers tiers = {
        .context = &context.ours, .dynamic = &dynamic.ours, .corpus = &corpus.ours};
    for (int i = 0; i < 50; ++i) {
      const Tokens text = random_text(random, 4 + random() % 4, n_tokens);
      if (has_ties(context.ours, text) || has_ties(dynamic.ours, text) ||
          has_ties(corpus.ours, text) || has_product_ties(context.ours, corpus.ours, text) ||
          has_product_ties(dynamic.ours, corpus.ours, text)) {
        continue;
      }
      const NgramGuess guess = guess_next(tiers, text);
      const Tokens theirs =
          LlamaNgrams::draft(text, 1, context.theirs, dynamic.theirs, corpus.theirs);
      ASSERT_EQ(theirs.empty() ? kNoToken : theirs[0], guess.token);
      ++compared;
      guessed += theirs.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(compared, 500);
  EXPECT_GT(guessed, 100);
}

}  // namespace
}  // namespace outrider::testing
