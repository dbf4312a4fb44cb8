#include "draft/suffix/suffix_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <random>

#include "store/store_writer.h"
#include "testing/chi_square.h"
#include "testing/faulty_file_ops.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

const TokenizerId kTokenizer = {.hash = 77, .n_vocab = 40};
using Texts = std::vector<std::vector<Token>>;

// Lengths of the matches of the context's end with something behind them, longest first.
std::vector<std::uint32_t> naive_lengths(const Texts& texts, std::span<const Token> context) {
  std::vector<std::uint32_t> lengths;
  for (const std::vector<Token>& text : texts) {
    for (std::size_t next = 1; next < text.size(); ++next) {
      std::uint32_t n = 0;
      while (n < std::min({next, context.size(), std::size_t{SuffixStore::kMostMatch}}) &&
             text[next - 1 - n] == context[context.size() - 1 - n]) {
        ++n;
      }
      if (n > 0) lengths.push_back(n);
    }
  }
  std::sort(lengths.rbegin(), lengths.rend());
  return lengths;
}

// Changes one byte of a file in place.
void poke(const std::string& path, std::size_t offset, char byte) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

class SuffixStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<SuffixStore> build(const Texts& texts, const std::string& name = "s.store") {
    SuffixStoreBuilder builder(kTokenizer);
    for (const std::vector<Token>& text : texts) EXPECT_TRUE(builder.add(text).ok());
    const Status written = builder.write(dir_.file(name));
    EXPECT_TRUE(written.ok()) << written.message();
    Result<std::unique_ptr<SuffixStore>> store = SuffixStore::open(dir_.file(name));
    EXPECT_TRUE(store.ok()) << store.status().message();
    const Status verified = (*store)->verify();
    EXPECT_TRUE(verified.ok()) << verified.message();
    return *std::move(store);
  }

  // Of these sections, with the checksums put right, as whoever forges a file would.
  Result<std::unique_ptr<SuffixStore>> forge(std::uint64_t n_texts,
                                             std::span<const std::uint32_t> tokens,
                                             std::span<const std::uint32_t> order,
                                             std::span<const std::uint32_t> starts) {
    StoreContents contents;
    contents.kind = "suffix";
    contents.tokenizer = kTokenizer;
    contents.params = {n_texts, order.size(), SuffixStore::kMostMatch};
    contents.sections = {make_section("tokens", tokens), make_section("starts", starts),
                         make_section("order", order)};
    EXPECT_TRUE(save_store(dir_.file("forged"), contents).ok());
    return SuffixStore::open(dir_.file("forged"));
  }

  testing::TempDir dir_;
};

Texts random_texts(std::mt19937_64& random, std::size_t n, std::uint64_t alphabet) {
  Texts texts(n);
  for (std::vector<Token>& text : texts) {
    text.resize(random() % 120);
    for (Token& token : text) token = static_cast<Token>(random() % alphabet);
  }
  return texts;
}

TEST_F(SuffixStoreTest, RandomStoresFindWhatASearchFinds) {
  const std::uint64_t seed = testing::test_seed(20261121);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 40; ++round) {
    const std::uint64_t alphabet = std::uint64_t{1} << (random() % 6);
    const Texts texts = random_texts(random, 1 + random() % 12, alphabet);
    const std::unique_ptr<SuffixStore> store = build(texts);
    for (int query = 0; query < 40; ++query) {
      std::vector<Token> context(1 + random() % 60);
      for (Token& token : context) token = static_cast<Token>(random() % alphabet);
      const std::vector<Token>& some = texts[random() % texts.size()];
      if (random() % 2 == 0 && !some.empty()) {
        context.insert(context.end(), some.begin(),
                       some.begin() + static_cast<long>(random() % some.size()));
      }
      std::vector<SuffixStore::Place> places;
      const std::size_t most = 1 + random() % 30;
      store->find(context, most, places);
      std::vector<std::uint32_t> wanted = naive_lengths(texts, context);
      // Places at texts' ends are skipped, at most 3 for each wanted one.
      ASSERT_LE(places.size(), std::min(most, wanted.size()));
      if (texts.size() < 3 * most) {
        ASSERT_EQ(places.size(), std::min(most, wanted.size())) << "seed " << seed;
      }
      for (std::size_t i = 0; i < places.size(); ++i) {
        ASSERT_EQ(places[i].length, wanted[i]) << "seed " << seed << ", round " << round;
        for (std::uint32_t k = 0; k < places[i].length; ++k) {  // the place is what it says
          ASSERT_EQ(store->token_at(places[i].next - 1 - k), context[context.size() - 1 - k]);
        }
        ASSERT_NE(store->token_at(places[i].next), kNoToken);
        for (std::size_t k = 0; k < i; ++k) ASSERT_NE(places[k].next, places[i].next);
      }
    }
  }
}

TEST_F(SuffixStoreTest, AnEmptyStoreFindsNothing) {
  const std::unique_ptr<SuffixStore> store = build({{}, {}});
  std::vector<SuffixStore::Place> places;
  store->find(std::vector<Token>{1, 2, 3}, 10, places);
  EXPECT_TRUE(places.empty());
  EXPECT_EQ(store->n_tokens(), 0u);
}

TEST_F(SuffixStoreTest, TokensOutsideTheVocabularyAreRefusedAndNeverLookedUp) {
  SuffixStoreBuilder builder(kTokenizer);
  EXPECT_EQ(builder.add(std::vector<Token>{1, 40}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(builder.add(std::vector<Token>{-1}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(builder.n_texts(), 0u);
  const std::unique_ptr<SuffixStore> store = build({{1, 2, 3}});
  std::vector<SuffixStore::Place> places;
  for (const Token token : {-1, 40, 1 << 30}) {
    store->find(std::vector<Token>{1, token}, 10, places);
    EXPECT_TRUE(places.empty());
  }
}

TEST_F(SuffixStoreTest, MergingStoresIsBuildingFromAllTexts) {
  std::mt19937_64 random(3);
  const Texts first = random_texts(random, 5, 8);
  const Texts second = random_texts(random, 5, 8);
  Texts both = first;
  both.insert(both.end(), second.begin(), second.end());
  (void)build(both, "both");
  SuffixStoreBuilder merged(kTokenizer);
  ASSERT_TRUE(build(first, "first")->copy_to(merged).ok());
  ASSERT_TRUE(build(second, "second")->copy_to(merged).ok());
  ASSERT_TRUE(merged.write(dir_.file("merged")).ok());
  EXPECT_EQ(testing::read_bytes(dir_.file("merged")), testing::read_bytes(dir_.file("both")));
}

// As a drafter sees a damaged file: it opens or not; what is read is right, or nothing, and then
// the damage is told.
TEST_F(SuffixStoreTest, EveryFlippedByteIsRefusedOrToldAndFindsNothingWrong) {
  std::mt19937_64 random(4);
  const Texts texts = random_texts(random, 6, 4);
  (void)build(texts);
  const std::string whole = testing::read_bytes(dir_.file("s.store"));
  ASSERT_LT(whole.size(), 8000u);
  const std::vector<Token> context = {2, 1, 0, 3, 1, 2};
  std::vector<SuffixStore::Place> wanted;
  SuffixStore::open(dir_.file("s.store")).value()->find(context, 20, wanted);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i > 0) poke(dir_.file("s.store"), i - 1, whole[i - 1]);
    poke(dir_.file("s.store"), i, static_cast<char>(whole[i] ^ 0x10));
    Result<std::unique_ptr<SuffixStore>> store = SuffixStore::open(dir_.file("s.store"));
    if (!store.ok()) continue;
    std::vector<SuffixStore::Place> places;
    (*store)->find(context, 20, places);
    const bool same = std::ranges::equal(places, wanted, [](const auto& a, const auto& b) {
      return a.next == b.next && a.length == b.length;
    });
    ASSERT_TRUE(same || !(*store)->file().damage().ok()) << "byte " << i;
    ASSERT_FALSE((*store)->verify().ok()) << "byte " << i;
  }
}

// A file says itself how many texts it has: so a token without a place may pass for a text's end.
TEST_F(SuffixStoreTest, AForgedTokenInPlaceOfATextsEndIsTold) {
  for (const std::uint32_t forged : {40U, 0xFFFFFFCBU}) {
    const std::vector<std::uint32_t> tokens = {kSuffixTextEnd, 1, forged, kSuffixTextEnd};
    const std::vector<std::uint32_t> order = {1};
    std::vector<std::uint32_t> starts(41, 1);
    starts[0] = starts[1] = 0;
    const Result<std::unique_ptr<SuffixStore>> store = forge(2, tokens, order, starts);
    ASSERT_TRUE(store.ok()) << store.status().message();
    EXPECT_EQ((*store)->verify().code(), StatusCode::kDataLoss);
    SuffixStoreBuilder builder(kTokenizer);
    const Status copied = (*store)->copy_to(builder);
    EXPECT_EQ(copied.code(), StatusCode::kDataLoss);
    EXPECT_NE(copied.message().find("forged"), std::string::npos) << copied.message();
  }
}

// With the checksums put right by whoever forged it: nothing is read outside.
TEST_F(SuffixStoreTest, ForgedPlacesAndTokensNeverLeadOutside) {
  const std::uint64_t seed = testing::test_seed(20261123);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint32_t> tokens(50);
    std::vector<std::uint32_t> order(48);
    std::vector<std::uint32_t> starts(41);
    for (std::vector<std::uint32_t>* part : {&tokens, &order, &starts}) {
      for (std::uint32_t& word : *part) {
        word = static_cast<std::uint32_t>(random() % 4 == 0 ? random() : random() % 50);
      }
    }
    const Result<std::unique_ptr<SuffixStore>> store = forge(1, tokens, order, starts);
    ASSERT_TRUE(store.ok());
    EXPECT_FALSE((*store)->verify().ok()) << "seed " << seed;
    for (Token last = 0; last < 40; ++last) {
      std::vector<SuffixStore::Place> places;
      (*store)->find(std::vector<Token>{last, last, 3, last}, 20, places);
      for (const SuffixStore::Place& place : places) {
        const Token token = (*store)->token_at(place.next);
        ASSERT_TRUE(token >= 0 && token < 40);
      }
    }
  }
}

TEST_F(SuffixStoreTest, AFailedSaveLeavesTheOldStore) {
  (void)build({{1, 2, 3}});
  SuffixStoreBuilder builder(kTokenizer);
  ASSERT_TRUE(builder.add(std::vector<Token>{4, 5, 6, 7}).ok());
  for (int call = 0; call < 5; ++call) {
    testing::FaultyFileOps ops;
    ops.fail_at = call;
    ops.reason = ENOSPC;
    EXPECT_EQ(builder.write(dir_.file("s.store"), ops).code(), StatusCode::kResourceExhausted);
    Result<std::unique_ptr<SuffixStore>> store = SuffixStore::open(dir_.file("s.store"));
    ASSERT_TRUE(store.ok());
    EXPECT_EQ((*store)->n_tokens(), 3u);
  }
}

}  // namespace
}  // namespace outrider
