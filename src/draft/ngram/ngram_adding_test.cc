// add_to_ngrams(): texts that join a file which others have, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "draft/ngram/ngram_file.h"
#include "store/file_lock.h"
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

// The others take a turn each, and with a large file turns are long.
TEST_F(NgramAdding, NobodyGivesUpWhileOthersWriteTheFile) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPatience{400};
  const std::vector<Token> text = {1, 2, 3};
  ASSERT_TRUE(add_to_ngrams(text, kAddedTokenizer, path(), 1 << 20).ok());
  const std::string before = read_bytes(path());
  Status added;
  Clock::duration longest{};  // that nobody has replaced it
  {
    std::optional<FileLock> of_others(std::in_place, path() + ".lock");
    std::thread waits(
        [&] { added = add_to_ngrams(text, kAddedTokenizer, path(), 1 << 20, kPatience); });
    Clock::time_point last = Clock::now();
    const Clock::time_point end = last + 3 * kPatience;
    while (last < end) {
      write_bytes(path("next"), before);
      std::filesystem::rename(path("next"), path());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      longest = std::max(longest, Clock::now() - last);
      last = Clock::now();
    }
    of_others.reset();
    waits.join();
  }
  if (longest > kPatience / 2) GTEST_SKIP() << "this machine paused for too long";
  EXPECT_TRUE(added.ok()) << added.message();
  EXPECT_NE(read_bytes(path()), before);
}

}  // namespace
}  // namespace outrider
