// What is kept over restarts: whole or not at all, for the very model that read it.
#include "serve/prompt_cache.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "serve/prompt_cache_test.h"
#include "serve/saved_prompt.h"
#include "store/atomic_file.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

TEST(PromptCache, WhatWasReadBeforeARestartIsNotReadAgain) {
  const TempDir dir;
  const std::string folder = dir.file("a new folder/cache");
  std::int64_t fresh_draft = 0;
  {
    Life life(folder);
    EXPECT_EQ(life.run(prompt_of(1)).cached_tokens, 0);
    fresh_draft = life.draft_tokens();
    life.run(prompt_of(2));
    life.end();
  }
  EXPECT_EQ(files_in(folder).size(), 2U);
  Life life(folder);
  EXPECT_TRUE(life.notes().empty());
  EXPECT_EQ(life.run(prompt_of(1)).cached_tokens, 34);
  EXPECT_LT(life.draft_tokens(), fresh_draft) << "the draft model has its part back";
  EXPECT_EQ(life.run(prompt_of(2)).cached_tokens, 34);
}

TEST(PromptCache, AFolderThatTakesNothingIsToldAtTheEnd) {
  const TempDir dir;
  put_contents(dir.file("file"), "no folder");
  Life life(dir.file("file"));
  EXPECT_TRUE(life.save().ok()) << "there is nothing to save";
  life.run(prompt_of(1));
  const Status saved = life.save();
  EXPECT_FALSE(saved.ok());
  EXPECT_NE(saved.message().find(dir.file("file")), std::string::npos) << saved.message();
}

TEST(PromptCache, ItsTextsAreForNobodyElseToReadAlsoWhereTheFolderIs) {
  const TempDir dir;
  const std::string file = dir.file("0123456789abcdef.prompt");
  put_contents(file, "of an earlier version, for all to read");
  fs::permissions(file, fs::perms{0644});
  ASSERT_TRUE(write_prompt(file, {.target = {.identity = "m", .tokens = {1}, .bytes = {2}}}).ok());
  EXPECT_EQ(fs::status(file).permissions(), fs::perms{0600});
}

TEST(PromptCache, WhatAKilledProcessLeftHalfWrittenIsRemovedAtTheNextStart) {
  const TempDir dir;
  FileOps ops;
  const Result<AtomicFile> written = AtomicFile::create(dir.file("0123456789abcdef.prompt"), ops);
  ASSERT_TRUE(written.ok());
  const fs::path being_written = files_in(dir.path()).at(0);
  const fs::path left = dir.file("fedcba9876543210.prompt.1-0.part");
  const fs::path of_another_kind = dir.file("fedcba9876543210.store.1-0.part");
  put_contents(left, std::string(1000, 'x'));
  put_contents(of_another_kind, "x");
  { const Life nobody(dir.path(), ""); }
  EXPECT_TRUE(fs::exists(left)) << "who keeps nothing touches nothing";
  const Life life(dir.path());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(being_written));
  EXPECT_TRUE(fs::exists(of_another_kind));
  EXPECT_TRUE(life.notes().empty());
}

TEST(PromptCache, TheDraftsPartIsForTheSameDraftOnly) {
  const TempDir dir;
  std::int64_t fresh_draft = 0;
  {
    Life life(dir.path());
    life.run(prompt_of(1));
    fresh_draft = life.draft_tokens();
    life.end();
  }
  Life other(dir.path(), "this one", kMuch, "another draft");
  EXPECT_EQ(other.run(prompt_of(1)).cached_tokens, 34);
  EXPECT_EQ(other.draft_tokens(), fresh_draft);
}

// Two prompts and what the draft model had read of them. Returns what the first one took it.
std::int64_t leave_two(const std::string& folder) {
  Life life(folder);
  life.run(prompt_of(1));
  const std::int64_t of_first = life.draft_tokens();
  life.run(prompt_of(2));
  life.end();
  return of_first;
}

// Requests run while it is attached, on the same thread.
TEST(PromptCache, ADraftThatComesLaterGetsItsPartAndNoFileIsReadForIt) {
  const TempDir dir;
  const std::int64_t fresh_draft = leave_two(dir.path());
  Life life(dir.path(), "this one", kMuch, "");
  EXPECT_GT(life.waiting_bytes(), 0U);
  for (const fs::path& path : files_in(dir.path())) fs::remove(path);
  life.attach("its draft");
  EXPECT_EQ(life.waiting_bytes(), 0U);
  EXPECT_EQ(life.run(prompt_of(1)).cached_tokens, 34);
  EXPECT_LT(life.draft_tokens(), fresh_draft) << "the draft model has its part";
}

TEST(PromptCache, WhatWaitsForADraftIsGivenBackOnceItsTextWasUsed) {
  const TempDir dir;
  const std::int64_t fresh_draft = leave_two(dir.path());
  Life life(dir.path(), "this one", kMuch, "");
  const std::size_t both = life.waiting_bytes();
  life.drop_used();
  EXPECT_EQ(life.waiting_bytes(), both) << "nothing was used";
  life.run(prompt_of(2));
  life.drop_used();
  EXPECT_GT(life.waiting_bytes(), 0U) << "the other text still lies there";
  EXPECT_LT(life.waiting_bytes(), both);
  const std::int64_t before = life.draft_tokens();
  life.attach("its draft");
  EXPECT_EQ(life.run(prompt_of(1)).cached_tokens, 34);
  EXPECT_LT(life.draft_tokens() - before, fresh_draft) << "the other one's part is put back";
}

// One start that is stopped before its draft is there, or whose draft cannot be loaded.
TEST(PromptCache, ALifeWithoutTheDraftLeavesTheDraftsPartOfWhatItDidNotUse) {
  const TempDir dir;
  const std::int64_t fresh_draft = leave_two(dir.path());
  {
    Life life(dir.path(), "this one", kMuch, "");
    life.run(prompt_of(2));
    life.drop_used();
    life.end();
  }
  Life life(dir.path());
  EXPECT_EQ(life.run(prompt_of(1)).cached_tokens, 34);
  EXPECT_LT(life.draft_tokens(), fresh_draft) << "the draft model has its part";
}

// The inode of each file: one that is written anew has another.
std::map<std::string, ino_t> inodes_in(const std::string& folder) {
  std::map<std::string, ino_t> inodes;
  for (const fs::path& path : files_in(folder)) {
    struct stat seen {};
    EXPECT_EQ(::stat(path.c_str(), &seen), 0);
    inodes[path.filename().string()] = seen.st_ino;
  }
  return inodes;
}

TEST(PromptCache, WhatNobodyUsedIsNotWrittenAgainButCountsAsWritten) {
  const TempDir dir;
  leave_two(dir.path());
  const fs::file_time_type before = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const fs::path& path : files_in(dir.path())) fs::last_write_time(path, before);
  const std::map<std::string, ino_t> inodes = inodes_in(dir.path());
  {
    Life life(dir.path());
    life.end();
  }
  EXPECT_EQ(inodes_in(dir.path()), inodes);
  for (const fs::path& path : files_in(dir.path())) EXPECT_GT(fs::last_write_time(path), before);
  {
    Life life(dir.path());
    for (const fs::path& path : files_in(dir.path())) fs::remove(path);
    life.end();
  }
  EXPECT_EQ(files_in(dir.path()).size(), 2U) << "somebody had removed them";
}

TEST(PromptCache, WhatWaitsForADraftIsForTheSameDraftOnly) {
  const TempDir dir;
  const std::int64_t fresh_draft = leave_two(dir.path());
  Life life(dir.path(), "this one", kMuch, "");
  life.attach("another draft");
  EXPECT_EQ(life.waiting_bytes(), 0U);
  EXPECT_EQ(life.run(prompt_of(1)).cached_tokens, 34);
  EXPECT_EQ(life.draft_tokens(), fresh_draft);
}

TEST(PromptCache, FilesOfOthersAreToldByTheirNamesAndNotRead) {
  const TempDir dir;
  leave_prompt(dir.path(), 1, "this one");
  const fs::path path = files_in(dir.path()).at(0);
  put_contents(path, "what would be named in a note, were it read");
  {
    Life other(dir.path(), "another one");
    EXPECT_EQ(other.notes(),
              (std::vector<std::string>{"prompt_cache: nothing in '" + dir.path() +
                                        "' is of this model, build and settings (1 of others)"}));
    EXPECT_EQ(other.run(prompt_of(1)).cached_tokens, 0);
    other.end();
  }
  EXPECT_EQ(files_in(dir.path()).size(), 2U) << "the same text of two models";
  Life again(dir.path(), "another one");
  EXPECT_TRUE(again.notes().empty()) << "a folder of several models is usual";
  EXPECT_EQ(again.run(prompt_of(1)).cached_tokens, 34);
  const Life own(dir.path(), "this one");
  ASSERT_EQ(own.notes().size(), 1U) << "the control";
  EXPECT_NE(own.notes()[0].find(path.filename().string()), std::string::npos);
}

TEST(PromptCache, OfFilesWithNamesOfEarlierVersionsTheBeginningTellsWhoseTheyAre) {
  const TempDir dir;
  leave_prompt(dir.path(), 1, "this one");
  const fs::path name = files_in(dir.path()).at(0);
  const fs::path old = dir.file("0123456789abcdef.prompt");
  const std::string whole = contents(name);
  fs::rename(name, old);
  {
    Life life(dir.path());
    EXPECT_TRUE(life.notes().empty());
    EXPECT_EQ(life.run(prompt_of(1)).cached_tokens, 34);
  }
  EXPECT_TRUE(fs::exists(name)) << "it got its new name";
  EXPECT_FALSE(fs::exists(old));
  fs::remove(name);
  const std::size_t end = whole.find("this one") + std::string("this one").size();
  put_contents(old, whole.substr(0, end));  // all that is read of it
  const Life other(dir.path(), "another one");
  ASSERT_EQ(other.notes().size(), 1U);
  EXPECT_NE(other.notes()[0].find("(1 of others)"), std::string::npos) << other.notes()[0];
  EXPECT_EQ(*load_prompt_identity(old.string()), "this one");
  for (std::size_t n = 0; n < end; ++n) {
    put_contents(old, whole.substr(0, n));
    EXPECT_EQ(load_prompt_identity(old.string()).status().code(), StatusCode::kDataLoss) << n;
  }
  const Life cut(dir.path());
  ASSERT_EQ(cut.notes().size(), 1U);
  EXPECT_NE(cut.notes()[0].find("damaged"), std::string::npos) << cut.notes()[0];
  put_contents(old, "something else, which is no prompt at all");
  EXPECT_EQ(load_prompt_identity(old.string()).status().code(), StatusCode::kInvalidArgument);
}

TEST(PromptCache, AFileWhoseNameIsOfThisTargetAndWhoseContentIsNotIsNamedAndIgnored) {
  const TempDir dir;
  const TempDir of_other;
  leave_prompt(dir.path(), 1, "this one");
  leave_prompt(of_other.path(), 1, "another one");
  const fs::path path = files_in(dir.path()).at(0);
  put_contents(path, contents(files_in(of_other.path()).at(0)));
  Life life(dir.path());
  ASSERT_EQ(life.notes().size(), 1U);
  EXPECT_NE(life.notes()[0].find(path.filename().string()), std::string::npos);
  EXPECT_NE(life.notes()[0].find("another model"), std::string::npos);
  EXPECT_EQ(life.run(prompt_of(1)).cached_tokens, 0);
}

TEST(PromptCache, WhoKeepsNothingSaysWhy) {
  const TempDir dir;
  const Life nobody(dir.path(), "");
  ASSERT_EQ(nobody.notes().size(), 1U);
  EXPECT_NE(nobody.notes()[0].find("another process"), std::string::npos);
  const Life off("", "");
  EXPECT_TRUE(off.notes().empty());
}

// Every byte changed, every length, and what is no such file at all.
TEST(PromptCache, NothingOfADamagedFileReachesAModel) {
  const TempDir dir;
  {
    Life life(dir.path());
    life.run(prompt_of(1));
    life.end();
  }
  const fs::path path = files_in(dir.path()).at(0);
  const std::string whole = contents(path);
  ASSERT_TRUE(load_saved_prompt(path.string(), kMuch).ok());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    put_contents(path, damaged);
    ASSERT_FALSE(load_saved_prompt(path.string(), kMuch).ok()) << "byte " << i;
    put_contents(path, std::string_view(whole).substr(0, i));
    ASSERT_FALSE(load_saved_prompt(path.string(), kMuch).ok()) << "length " << i;
  }
  put_contents(path, whole + "x");
  EXPECT_EQ(load_saved_prompt(path.string(), kMuch).status().code(), StatusCode::kDataLoss);
  put_contents(path, "something else of some length");
  EXPECT_EQ(load_saved_prompt(path.string(), kMuch).status().code(), StatusCode::kInvalidArgument);
  Life life(dir.path());
  ASSERT_EQ(life.notes().size(), 1U);
  EXPECT_NE(life.notes()[0].find(path.filename().string()), std::string::npos);
  EXPECT_EQ(life.run(prompt_of(1)).cached_tokens, 0);
  put_contents(path, whole);
  EXPECT_EQ(load_saved_prompt(path.string(), whole.size() - 1).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(load_saved_prompt(path.string(), whole.size()).ok());
}

TEST(PromptCache, TheTextsUsedLastComeBackInTheirOrder) {
  const TempDir dir;
  {
    Life life(dir.path());
    for (const Token first : {1, 2, 4}) life.run(prompt_of(first));
    life.end();
  }
  const std::vector<Token> orders[] = {{4, 1, 2}, {2, 1, 4}};  // at most one is that of the names
  for (const std::vector<Token>& wanted : orders) {
    fs::file_time_type when = fs::file_time_type::clock::now() - std::chrono::hours(1);
    for (const Token first : wanted) {  // whatever the clock's grain
      for (const fs::path& path : files_in(dir.path())) {
        if (load_saved_prompt(path.string(), kMuch)->target.tokens[0] == first) {
          fs::last_write_time(path, when += std::chrono::seconds(1));
        }
      }
    }
    for (const char* const what : {"as they were used", "as an end left them that saw none used"}) {
      Life life(dir.path());
      std::vector<Token> order;
      for (const IdleTexts::Entry& entry : life.engine().idle().entries()) {
        ASSERT_FALSE(entry.text().empty());
        order.push_back(entry.text()[0]);
      }
      EXPECT_EQ(order, wanted) << what;
      EXPECT_EQ(life.engine().check_integrity(), "");
      life.end();
    }
  }
}

}  // namespace
}  // namespace outrider
