// add_to_ngrams(): texts that join a file which others have, too.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "draft/ngram/ngram_file.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

using testing::read_bytes;
using testing::write_bytes;

const TokenizerId kAddedTokenizer = {.hash = 0xFEDCBA9876543210u, .n_vocab = 300};

class NgramAdding : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "x.ngram") const { return dir_.file(name); }

  testing::TempDir dir_;
};

TEST_F(NgramAdding, ThoseThatAddATextAtOnceWaitForEachOther) {
  constexpr Token kWriters = 8;
  constexpr Token kTexts = 4;
  // Half of them know the file by another name.
  const std::string file = path();
  const std::string link = path("link");
  std::filesystem::create_symlink(file, link);
  std::vector<std::thread> threads;
  for (Token i = 0; i < kWriters; ++i) {
    threads.emplace_back([&name = i % 2 == 0 ? file : link, i] {
      for (Token k = 0; k < kTexts; ++k) {
        const std::vector<Token> text = {1, 2, 10 + i * kTexts + k};  // a follower of its own
        EXPECT_TRUE(add_to_ngrams(text, kAddedTokenizer, name, 1 << 20).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Result<NgramCache> cache = load_ngrams(file, kAddedTokenizer);
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  NgramPart part;
  ASSERT_TRUE(cache->find(Ngram(std::vector<Token>{1, 2}), part));
  EXPECT_EQ(part.followers.size(), static_cast<std::size_t>(kWriters * kTexts));
  EXPECT_EQ(part.total, static_cast<std::uint64_t>(kWriters * kTexts));
}

TEST_F(NgramAdding, WhatIsNoCacheOfTheTokenizerIsNotAddedTo) {
  const std::vector<Token> text = {1, 2, 3};
  write_bytes(path(), "something else");
  EXPECT_FALSE(add_to_ngrams(text, kAddedTokenizer, path(), 1 << 20).ok());
  EXPECT_EQ(read_bytes(path()), "something else");
  ASSERT_TRUE(add_to_ngrams(text, kAddedTokenizer, path("new"), 1 << 20).ok());
  const std::string before = read_bytes(path("new"));
  EXPECT_EQ(add_to_ngrams(text, {.hash = 1, .n_vocab = 300}, path("new"), 1 << 20).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(read_bytes(path("new")), before);
}

// Whoever has it may be stopped, and `run` must come to its end.
TEST_F(NgramAdding, NobodyWaitsWithoutEndForAnothersLock) {
  constexpr std::chrono::milliseconds kShort{20};
  const std::vector<Token> text = {1, 2, 3};
  ASSERT_TRUE(add_to_ngrams(text, kAddedTokenizer, path(), 1 << 20).ok());
  const std::string before = read_bytes(path());
  {
    const FileLock of_another(path() + ".lock");
    const Status refused = add_to_ngrams(text, kAddedTokenizer, path(), 1 << 20, kShort);
    EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
    EXPECT_NE(refused.message().find(path() + ".lock"), std::string::npos) << refused.message();
    EXPECT_EQ(read_bytes(path()), before);
  }
  EXPECT_TRUE(add_to_ngrams(text, kAddedTokenizer, path(), 1 << 20, kShort).ok()) << "the control";
  EXPECT_NE(read_bytes(path()), before);
}

}  // namespace
}  // namespace outrider
