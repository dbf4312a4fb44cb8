// No more is kept than was allowed.
#include "serve/prompt_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "serve/prompt_cache_test.h"
#include "serve/saved_prompt.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

TEST(PromptCache, WhatWasKeptLongestAgoGoesFirst) {
  const TempDir dir;
  {
    Life life(dir.path());
    for (const Token first : {1, 2}) life.run(prompt_of(first));
    life.end();
  }
  std::uint64_t bytes = 0;
  for (const fs::path& path : files_in(dir.path())) {
    bytes += fs::file_size(path);
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  put_contents(dir.file("of somebody else.txt"), "stays");
  const fs::path mine = dir.file("mine.prompt");
  put_contents(mine.string(), "stays, too: the name is none of ours");
  fs::last_write_time(mine, fs::file_time_type::clock::now() - std::chrono::hours(2));
  {
    Life life(dir.path(), "this one", bytes);
    life.run(prompt_of(9));
    life.end();
  }
  std::uint64_t left = 0;
  bool has_new = false;
  for (const fs::path& path : files_in(dir.path())) {
    if (path.extension() != ".prompt" || path == mine) continue;
    left += fs::file_size(path);
    const Result<SavedPrompt> prompt = load_saved_prompt(path.string(), kMuch);
    ASSERT_TRUE(prompt.ok());
    has_new = has_new || prompt->target.tokens[0] == 9;
  }
  EXPECT_LE(left, bytes);
  EXPECT_TRUE(has_new);
  EXPECT_TRUE(fs::exists(dir.file("of somebody else.txt")));
  EXPECT_TRUE(fs::exists(mine));
}

// The draft's part is left out where the file would be too large with it, and a text that does not
// fit at all costs no other its place.
TEST(PromptCache, WhatIsTooLargeCostsNothingThatWasKept) {
  const TempDir dir;
  leave_prompt(dir.path(), 1, "another one");
  const fs::path first = files_in(dir.path()).at(0);
  const std::uint64_t whole = fs::file_size(first);
  const Result<SavedPrompt> saved = load_saved_prompt(first.string(), kMuch);
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(bytes_of_prompt(*saved), whole);
  ASSERT_GT(saved->draft.bytes.size(), 40U);
  {
    Life life(dir.path(), "this one", 2 * whole - 40);
    life.run(prompt_of(2));
    life.end();
  }
  ASSERT_EQ(files_in(dir.path()).size(), 1U) << "one made room for the other";
  {
    Life life(dir.path(), "this one", whole - 40);
    life.run(prompt_of(3));
    life.end();
  }
  ASSERT_EQ(files_in(dir.path()).size(), 1U) << "the last, without the draft's part";
  const fs::path kept = files_in(dir.path()).at(0);
  EXPECT_TRUE(load_saved_prompt(kept.string(), kMuch)->draft.bytes.empty());
  {
    Life life(dir.path(), "this one", fs::file_size(kept));
    std::vector<Token> longer = prompt_of(4);
    longer.resize(45, 3);
    life.run(longer);
    const Status told = life.save();
    EXPECT_EQ(told.code(), StatusCode::kResourceExhausted);
    EXPECT_NE(told.message().find(" tokens is not kept: it takes "), std::string::npos)
        << told.message();
  }
  EXPECT_TRUE(fs::exists(kept)) << "nothing was written that it had to make room for";
  EXPECT_EQ(files_in(dir.path()).size(), 1U);
}

TEST(PromptCache, WhatIsLargerThanTheLimitIsNotCopied) {
  const TempDir dir;
  Life life(dir.path(), "this one", 40);
  life.run(prompt_of(1));
  EXPECT_EQ(life.save().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(life.copies(), 0);
  EXPECT_TRUE(files_in(dir.path()).empty());
}

TEST(PromptCache, NothingIsWrittenThatTheLimitTakesAwayAgain) {
  const TempDir dir;
  leave_prompt(dir.path(), 9, "another one");
  const std::uint64_t whole = fs::file_size(files_in(dir.path()).at(0));
  Life life(dir.path(), "this one", whole + 20);
  for (const Token first : {1, 2, 4}) life.run(prompt_of(first));
  life.end();
  EXPECT_EQ(life.copies(), 1);
  const std::vector<fs::path> left = files_in(dir.path());
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(load_saved_prompt(left[0].string(), kMuch)->target.tokens[0], 4) << "used last";
}

// The disk is filling: what lies there goes although nothing new is written.
TEST(PromptCache, ALowerLimitHoldsFromTheStart) {
  const TempDir dir;
  leave_prompt(dir.path(), 1, "another one");
  leave_prompt(dir.path(), 2, "this one");
  std::uint64_t bytes = 0;
  for (const fs::path& path : files_in(dir.path())) {
    bytes += fs::file_size(path);
    const bool is_own = load_saved_prompt(path.string(), kMuch)->target.tokens[0] == 2;
    const std::chrono::hours age(is_own ? 1 : 2);
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
  }
  { const Life same(dir.path(), "this one", bytes); }
  EXPECT_EQ(files_in(dir.path()).size(), 2U) << "the control";
  { const Life lower(dir.path(), "this one", bytes - 1); }
  ASSERT_EQ(files_in(dir.path()).size(), 1U) << "the younger one";
  const std::string left = files_in(dir.path()).at(0).string();
  EXPECT_EQ(load_saved_prompt(left, kMuch)->target.tokens[0], 2);
  { const Life none(dir.path(), "a third", 1); }
  EXPECT_TRUE(files_in(dir.path()).empty()) << "larger than all that may be kept";
}

}  // namespace
}  // namespace outrider
