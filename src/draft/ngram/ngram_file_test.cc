#include "draft/ngram/ngram_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <vector>

#include "draft/ngram/llama_ngram_file.h"
#include "store/store_writer.h"
#include "testing/chi_square.h"
#include "testing/faulty_file_ops.h"
#include "testing/sanitized.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

using testing::read_bytes;
using testing::write_bytes;

const TokenizerId kTokenizer = {.hash = 0xFEDCBA9876543210u, .n_vocab = 300};

NgramCache random_cache(std::size_t length, std::int32_t min_order, std::int32_t max_order,
                        std::uint64_t seed, Token n_tokens = 300) {
  std::mt19937_64 random(seed);
  std::vector<Token> text(length);
  for (Token& token : text) {
    token = static_cast<Token>(std::min(random() % static_cast<std::uint64_t>(n_tokens),
                                        random() % static_cast<std::uint64_t>(n_tokens)));
  }
  NgramCache cache;
  cache.count(text, 0, min_order, max_order);
  return cache;
}

// "" when both hold the same, best followers included.
std::string difference(const NgramCache& a, const NgramCache& b) {
  if (a.size() != b.size() || a.followers() != b.followers()) return "another size";
  for (std::size_t i = 0; i < a.size(); ++i) {
    const NgramPart wanted = a.part(i);
    NgramPart part;
    if (!b.find(a.ngram(i), part)) return "an n-gram is missing";
    if (!std::ranges::equal(part.followers, wanted.followers)) return "another count";
    if (!(part.best == wanted.best) || part.total != wanted.total) return "another best one";
  }
  return "";
}

// Overwrites one byte in place: writing whole files anew costs a flush each on some file systems.
void put(const std::string& path, std::size_t at, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at)).put(byte);
  ASSERT_TRUE(file.flush().good());
}

class NgramFileTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "x.ngram") const { return dir_.file(name); }

  testing::TempDir dir_;
};

TEST_F(NgramFileTest, ASavedCacheIsLoadedAsItWas) {
  const std::uint64_t seed = testing::test_seed(6110);
  const std::vector<NgramCache> caches = {NgramCache(), random_cache(2, 1, 4, seed),
                                          random_cache(3000, 1, 4, seed + 1),
                                          random_cache(3000, 2, 2, seed + 2, 20)};
  for (const NgramCache& cache : caches) {
    ASSERT_TRUE(save_ngrams(cache, kTokenizer, path()).ok());
    const Result<NgramCache> loaded = load_ngrams(path(), kTokenizer);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(loaded->check_integrity(), "");
    EXPECT_EQ(difference(cache, *loaded), "");
    // Saved again it is the same file, byte for byte: nothing depends on the order of adding.
    ASSERT_TRUE(save_ngrams(*loaded, kTokenizer, path("again")).ok());
    EXPECT_EQ(read_bytes(path()), read_bytes(path("again")));
  }
}

TEST_F(NgramFileTest, AnotherTokenizersFileIsRefusedWithBothNames) {
  ASSERT_TRUE(save_ngrams(random_cache(50, 1, 4, 1), kTokenizer, path()).ok());
  for (const TokenizerId& other : {TokenizerId{.hash = 1, .n_vocab = 300},
                                   TokenizerId{.hash = kTokenizer.hash, .n_vocab = 301}}) {
    const Status status = load_ngrams(path(), other).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("300 tokens"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(path()), std::string::npos);
  }
}

TEST_F(NgramFileTest, EveryTruncationIsRefused) {
  std::size_t length = 900;
  do {  // a file of 64 KiB
    ASSERT_TRUE(save_ngrams(random_cache(length += 100, 1, 4, 7), kTokenizer, path()).ok());
  } while (read_bytes(path()).size() < 65536);
  ASSERT_TRUE(load_ngrams(path()).ok()) << "the negative control";
  const std::size_t size = read_bytes(path()).size();
  for (std::size_t n = size; n-- > 0;) {  // cut shorter and shorter in place
    std::filesystem::resize_file(path(), n);
    ASSERT_FALSE(load_ngrams(path()).ok()) << "cut to " << n << " of " << size << " bytes";
  }
}

TEST_F(NgramFileTest, EveryFlippedByteIsRefused) {
  ASSERT_TRUE(save_ngrams(random_cache(45, 1, 4, 8), kTokenizer, path()).ok());
  const std::string whole = read_bytes(path());
  ASSERT_GT(whole.size(), 4000U);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    put(path(), i, static_cast<char>(whole[i] ^ (1 << (i % 8))));
    ASSERT_FALSE(load_ngrams(path(), kTokenizer).ok()) << "byte " << i;
    put(path(), i, whole[i]);
  }
  ASSERT_TRUE(load_ngrams(path(), kTokenizer).ok()) << "the negative control";
}

struct Record {
  Token tokens[kMaxNgram];
  std::uint32_t n_followers;
};

// A file with good checksums and whatever it should not hold.
struct Forged {
  std::vector<Record> records = {{{1, 2, -1, -1}, 2}, {{3, -1, -1, -1}, 1}};
  std::vector<Follower> followers = {{5, 2}, {4, 1}, {6, 1}};
  std::vector<std::uint32_t> ages;  // none: a file without them
  std::uint64_t sum = 4;
  std::uint64_t n_records = 2;
};

Status load_forged(const Forged& forged, const std::string& path) {
  StoreContents contents;
  contents.kind = "ngram";
  contents.tokenizer = kTokenizer;
  contents.params = {1, 2, forged.n_records, forged.followers.size(), forged.sum, 0};
  contents.sections = {make_section("ngrams", std::span<const Record>(forged.records)),
                       make_section("followers", std::span<const Follower>(forged.followers))};
  if (!forged.ages.empty()) {
    contents.sections.push_back(make_section("ages", std::span<const std::uint32_t>(forged.ages)));
  }
  EXPECT_TRUE(save_store(path, contents).ok());
  return load_ngrams(path).status();
}

TEST_F(NgramFileTest, WhatNoCacheCouldHoldIsRefusedThoughTheChecksumsAreRight) {
  EXPECT_TRUE(load_forged(Forged(), path()).ok()) << "the negative control";
  Forged aged;
  aged.ages = {1, 0};
  EXPECT_TRUE(load_forged(aged, path()).ok()) << "the same with ages";
  const std::vector<std::pair<std::string, std::function<void(Forged&)>>> cases = {
      {"id", [](Forged& f) { f.records[0].tokens[1] = 300; }},
      {"huge id", [](Forged& f) { f.records[0].tokens[0] = 1 << 30; }},
      {"negative id", [](Forged& f) { f.records[0].tokens[0] = -2; }},
      {"no tokens", [](Forged& f) { f.records[0].tokens[0] = f.records[0].tokens[1] = -1; }},
      {"a hole", [](Forged& f) { f.records[0].tokens[3] = 4; }},
      {"order", [](Forged& f) { std::swap(f.records[0].tokens, f.records[1].tokens); }},
      {"twice", [](Forged& f) { std::memcpy(f.records[1].tokens, f.records[0].tokens, 16); }},
      {"no followers", [](Forged& f) { f.records[1].n_followers = 0; }},
      {"too many", [](Forged& f) { f.records[1].n_followers = 0xFFFFFFFFu; }},
      {"too few", [](Forged& f) { f.records[0].n_followers = 1; }},
      {"follower's id", [](Forged& f) { f.followers[1].token = 300; }},
      {"follower's sign", [](Forged& f) { f.followers[1].token = -1; }},
      {"count 0", [](Forged& f) { f.followers[1].count = 0; }},
      {"huge count", [](Forged& f) { f.followers[0].count = kMaxNgramCount + 1; }},
      {"not the best", [](Forged& f) { f.followers[1].count = 3; }},
      {"follower twice", [](Forged& f) { f.followers[1].token = 5; }},
      {"sum", [](Forged& f) { f.sum = 5; }},
      {"number", [](Forged& f) { f.n_records = 3; }},
      {"age twice",
       [](Forged& f) {
         f.ages = {1, 1};
       }},
      {"age without a place",
       [](Forged& f) {
         f.ages = {0, 2};
       }},
      {"too few ages", [](Forged& f) { f.ages = {0}; }},
  };
  for (const auto& [name, change] : cases) {
    Forged forged;
    change(forged);
    const Status status = load_forged(forged, path());
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << name << ": " << status.message();
  }
}

TEST_F(NgramFileTest, ASaveThatFailsLeavesTheOldFile) {
  const NgramCache old_cache = random_cache(100, 1, 4, 9);
  const NgramCache new_cache = random_cache(400, 1, 4, 10);
  for (const bool llama : {false, true}) {
    const auto save = [&](const NgramCache& cache, FileOps& ops) {
      return llama ? export_llama_ngrams(cache, path(), ops)
                   : save_ngrams(cache, kTokenizer, path(), ops);
    };
    testing::FaultyFileOps good;
    ASSERT_TRUE(save(old_cache, good).ok());
    const std::string before = read_bytes(path());
    const int calls = good.calls();
    for (int at = 0; at < calls - 1; ++at) {  // the last call syncs the folder, when it is too late
      testing::FaultyFileOps ops;
      ops.fail_at = at;
      ops.reason = ENOSPC;
      ASSERT_FALSE(save(new_cache, ops).ok()) << at;
      ASSERT_EQ(read_bytes(path()), before) << at;
    }
    EXPECT_EQ(dir_.n_entries(), 1) << "no part files";
    testing::FaultyFileOps slow;
    slow.most_per_write = 100;
    ASSERT_TRUE(save(new_cache, slow).ok()) << "short writes are gone on with";
    EXPECT_NE(read_bytes(path()), before);
  }
}

// One n-gram with very many followers, as a space has them. Moving all of them for each took the
// square of their number.
TEST_F(NgramFileTest, AnNgramWithVeryManyFollowersIsLoadedAsItWas) {
  constexpr Token kFollowers = testing::kSanitized ? 20'000 : 100'000;
  const TokenizerId tokenizer = {.hash = 5, .n_vocab = kFollowers};
  NgramCache cache;
  const Ngram ngram(std::vector<Token>{1});
  for (Token token = 0; token < kFollowers; ++token) cache.add(ngram, token, 1 + token % 3 / 2);
  cache.add(ngram, 4, 1);  // one of the many with the largest count, and the last to reach it
  NgramPart before;
  ASSERT_TRUE(cache.find(ngram, before));
  ASSERT_EQ(before.best, (Follower{4, 2}));
  ASSERT_TRUE(save_ngrams(cache, tokenizer, path()).ok());
  const Result<NgramCache> loaded = load_ngrams(path(), tokenizer);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->check_integrity(), "");
  EXPECT_EQ(difference(cache, *loaded), "");
  NgramPart part;
  ASSERT_TRUE(loaded->find(ngram, part));
  EXPECT_EQ(part.best, (Follower{4, 2}));
  EXPECT_EQ(part.followers.size(), static_cast<std::size_t>(kFollowers));
}

TEST_F(NgramFileTest, IdsOutsideTheVocabularyAreNotSaved) {
  NgramCache cache;
  (void)cache.add(Ngram(std::vector<Token>{1}), 300);
  EXPECT_EQ(save_ngrams(cache, kTokenizer, path()).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(dir_.n_entries(), 0);
}

// --- llama.cpp's format --------------------------------------------------------------------------

std::string words(const std::vector<std::int32_t>& values) {
  std::string bytes(values.size() * 4, '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST_F(NgramFileTest, AnExportedCacheIsImportedAsItWas) {
  for (const std::size_t length : {2, 50, 4000}) {
    const NgramCache cache = random_cache(length, 1, 4, length);
    ASSERT_TRUE(export_llama_ngrams(cache, path()).ok());
    const Result<ImportedNgrams> imported = import_llama_ngrams(path(), 300);
    ASSERT_TRUE(imported.ok()) << imported.status().message();
    EXPECT_EQ(difference(cache, imported->cache), "");
    EXPECT_EQ(imported->n_saturated, 0U);
  }
}

TEST_F(NgramFileTest, EveryTruncationWithinARecordIsRefused) {
  const NgramCache cache = random_cache(120, 1, 4, 12);
  ASSERT_TRUE(export_llama_ngrams(cache, path()).ok());
  const std::string whole = read_bytes(path());
  std::vector<bool> boundary(whole.size() + 1, false);
  std::size_t at = 0;
  for (const std::uint32_t place : sorted_ngrams(cache)) {
    boundary[at += 20 + 8 * cache.part(place).followers.size()] = true;
  }
  ASSERT_EQ(at, whole.size());
  for (std::size_t n = whole.size(); n-- > 0;) {
    std::filesystem::resize_file(path(), n);
    const Result<ImportedNgrams> imported = import_llama_ngrams(path(), 300);
    // The format cannot tell a file that was cut between two records from a shorter one.
    ASSERT_EQ(imported.ok(), boundary[n]) << n;
  }
}

TEST_F(NgramFileTest, EveryFlippedByteIsRefusedOrGivesAnotherWholeCache) {
  const NgramCache cache = random_cache(60, 1, 4, 13);
  ASSERT_TRUE(export_llama_ngrams(cache, path()).ok());
  const std::string whole = read_bytes(path());
  std::size_t refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    put(path(), i, static_cast<char>(whole[i] ^ 0x40));
    const Result<ImportedNgrams> imported = import_llama_ngrams(path(), 300);
    put(path(), i, whole[i]);
    refused += imported.ok() ? 0 : 1;
    if (imported.ok()) {
      ASSERT_EQ(imported->cache.check_integrity(), "") << i;
      ASSERT_EQ(imported->cache.followers(), cache.followers()) << "no silent part of a cache";
    }
  }
  EXPECT_GT(refused, whole.size() / 2) << "most bytes are those of ids and lengths";
}

TEST_F(NgramFileTest, WhatLlamaCppWouldTakeOrDieOfIsRefusedWithItsPlace) {
  const std::vector<std::int32_t> good = {1, 2, -1, -1, 2, 7, 1, 8, 3};
  const auto changed = [&good](std::size_t at, std::int32_t value) {
    std::vector<std::int32_t> record = good;
    record[at] = value;
    return words(record);
  };
  write_bytes(path(), words(good));
  EXPECT_TRUE(import_llama_ngrams(path(), 300).ok()) << "the negative control";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "empty"},
      {changed(0, 1 << 30), "1073741824"},
      {changed(0, -1), "-1"},
      {changed(1, 300), "300"},
      {changed(2, -7), "-7"},
      {changed(3, 5), "goes on behind its end"},
      {changed(4, 0), "0 followers"},
      {changed(4, -5), "-5 followers"},
      {changed(4, 3), "cut off"},
      {changed(4, 2147483647), "cut off"},
      {changed(5, 1 << 30), "1073741824"},
      {changed(6, 0), "a count is 0"},
      {changed(6, -2), "a count is -2"},
      {changed(7, 7), "twice"},
      {words(good) + words(good), "twice"},
      {words(good) + "x", "cut off"},
  };
  for (const auto& [bytes, message] : cases) {
    write_bytes(path(), bytes);
    const Status status = import_llama_ngrams(path(), 300).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << message;
    EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("byte "), std::string::npos) << status.message();
  }
  EXPECT_EQ(import_llama_ngrams(path("none"), 300).status().code(), StatusCode::kNotFound);
}

TEST_F(NgramFileTest, CountsBeyondOursSaturateAndAreCounted) {
  write_bytes(path(), words({1, -1, -1, -1, 2, 7, 2147483647, 8, 3}));
  const Result<ImportedNgrams> imported = import_llama_ngrams(path(), 300);
  ASSERT_TRUE(imported.ok());
  EXPECT_EQ(imported->n_saturated, 1U);
  NgramPart part;
  ASSERT_TRUE(imported->cache.find(Ngram(std::vector<Token>{1}), part));
  EXPECT_EQ(part.count(7), kMaxNgramCount);
}

}  // namespace
}  // namespace outrider
