// What is kept over restarts: whole or not at all, for the very model that read it, and no more of
// it than was allowed.
#include "serve/prompt_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "serve/saved_prompt.h"
#include "store/atomic_file.h"
#include "testing/fake_engine.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

using namespace testing;  // NOLINT: the shared names of these tests

namespace fs = std::filesystem;

constexpr std::uint64_t kMuch = 1 << 20;
const EngineOptions kReuse = {.prompt_chunk = 8, .reuse_prefix = true};

std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  return files;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put_contents(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// A prompt of 35 tokens that begins with `first`.
std::vector<Token> prompt_of(Token first) {
  std::vector<Token> prompt(35, 3);
  prompt[0] = first;
  return prompt;
}

// A runtime's station, as far as the cache goes: models, an engine, a cache, until it ends.
class Life {
 public:
  explicit Life(const std::string& folder, const std::string& identity = "this one",
                std::uint64_t most_bytes = kMuch, const std::string& draft_identity = "its draft")
      : draft_identity_(draft_identity), cache_(folder, most_bytes, identity) {
    cache_.restore(engine_);
    if (!draft_identity_.empty()) attach(draft_identity_);
  }

  // The draft is told of what was put back only now, as one that was loaded later.
  void attach(const std::string& draft_identity) {
    draft_identity_ = draft_identity;
    cache_.restore(engine_, drafter_, draft_identity_);
  }

  Completion run(const std::vector<Token>& prompt) {
    const Result<RequestId> id = engine_.add(request(prompt, 1.0f, 5, 10, 4));
    EXPECT_TRUE(id.ok());
    run_all(engine_, &drafter_);
    const Completion got = *engine_.take(*id);
    EXPECT_EQ(got.tokens, reference(rows_, prompt, 1.0f, 5, 10));
    return got;
  }
  Status save() { return cache_.save(engine_, &drafter_, draft_identity_); }
  void end() { EXPECT_TRUE(save().ok()); }

  const std::vector<std::string>& notes() const { return cache_.notes(); }
  void drop_used() { cache_.drop_used(engine_); }
  std::size_t waiting_bytes() const { return cache_.waiting_bytes(); }
  std::int64_t draft_tokens() const { return draft_.tokens_evaluated(); }
  const Engine& engine() const { return engine_; }

 private:
  RowFunction rows_ = random_rows(kVocab, 1, 3.0f);
  FakeModel target_ = FakeModel(capabilities(), rows_);
  FakeModel draft_ = FakeModel(capabilities(), noisy_rows(rows_, 2, 0.5f));
  DraftModelDrafter drafter_ = DraftModelDrafter(draft_, kVocab, {});
  const FakeVocabulary vocabulary_ = FakeVocabulary(kVocab);
  Engine engine_ = Engine(target_, vocabulary_, {&drafter_}, kReuse);
  std::string draft_identity_;
  PromptCache cache_;
};

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

TEST(PromptCache, WhatWaitsForADraftIsForTheSameDraftOnly) {
  const TempDir dir;
  const std::int64_t fresh_draft = leave_two(dir.path());
  Life life(dir.path(), "this one", kMuch, "");
  life.attach("another draft");
  EXPECT_EQ(life.waiting_bytes(), 0U);
  EXPECT_EQ(life.run(prompt_of(1)).cached_tokens, 34);
  EXPECT_EQ(life.draft_tokens(), fresh_draft);
}

// Reads a prompt and leaves it in the folder.
void leave_prompt(const std::string& folder, Token first, const std::string& identity) {
  Life life(folder, identity);
  life.run(prompt_of(first));
  life.end();
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
  {
    Life life(dir.path(), "this one", bytes);
    life.run(prompt_of(9));
    life.end();
  }
  std::uint64_t left = 0;
  bool has_new = false;
  for (const fs::path& path : files_in(dir.path())) {
    if (path.extension() != ".prompt") continue;
    left += fs::file_size(path);
    const Result<SavedPrompt> prompt = load_saved_prompt(path.string(), kMuch);
    ASSERT_TRUE(prompt.ok());
    has_new = has_new || prompt->target.tokens[0] == 9;
  }
  EXPECT_LE(left, bytes);
  EXPECT_TRUE(has_new);
  EXPECT_TRUE(fs::exists(dir.file("of somebody else.txt")));
}

TEST(PromptCache, TheTextsUsedLastComeBackInTheirOrder) {
  const TempDir dir;
  {
    Life life(dir.path());
    for (const Token first : {1, 2, 4}) life.run(prompt_of(first));
    life.end();
  }
  fs::file_time_type when = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const Token first : {4, 1, 2}) {  // whatever the clock's grain
    for (const fs::path& path : files_in(dir.path())) {
      if (load_saved_prompt(path.string(), kMuch)->target.tokens[0] == first) {
        fs::last_write_time(path, when += std::chrono::seconds(1));
      }
    }
  }
  const Life life(dir.path());
  std::vector<Token> order;
  for (const IdleTexts::Entry& entry : life.engine().idle().entries()) {
    ASSERT_FALSE(entry.text().empty());
    order.push_back(entry.text()[0]);
  }
  EXPECT_EQ(order, (std::vector<Token>{4, 1, 2}));
  EXPECT_EQ(life.engine().check_integrity(), "");
}

}  // namespace
}  // namespace outrider
