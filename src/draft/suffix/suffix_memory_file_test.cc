#include "draft/suffix/suffix_memory_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "store/file_lock.h"
#include "store/store_writer.h"
#include "testing/chi_square.h"
#include "testing/tiny_dir.h"

namespace outrider {
namespace {

constexpr TokenizerId kTokenizer{.hash = 7, .n_vocab = 100};

using Texts = std::vector<std::pair<std::string, std::vector<Token>>>;

Texts all_of(const SuffixMemory& memory) {
  Texts all;
  memory.for_each_space([&](std::string_view name, std::span<const Token> tokens) {
    all.emplace_back(std::string(name), std::vector<Token>(tokens.begin(), tokens.end()));
  });
  return all;
}

class SuffixMemoryFile : public ::testing::Test {
 protected:
  // Some namespaces with random texts.
  void fill(SuffixMemory& memory, int texts, std::mt19937_64& random) {
    for (int i = 0; i < texts; ++i) {
      std::vector<Token> text(1 + random() % 40);
      for (Token& token : text) token = static_cast<Token>(random() % 100);
      memory.add("user-" + std::to_string(random() % 5), text);
    }
  }

  testing::TempDir dir_;
};

TEST_F(SuffixMemoryFile, WhatIsSavedIsRememberedInTheSameOrder) {
  std::mt19937_64 random(testing::test_seed(3));
  for (const int texts : {0, 1, 30, 300}) {
    SuffixMemory memory(4096);
    fill(memory, texts, random);
    ASSERT_TRUE(save_memory(memory, kTokenizer, dir_.file("m")).ok());
    EXPECT_EQ(std::filesystem::status(dir_.file("m")).permissions(), std::filesystem::perms{0600});
    SuffixMemory again(4096);
    const Status loaded = load_memory(dir_.file("m"), kTokenizer, again);
    ASSERT_TRUE(loaded.ok()) << loaded.message();
    EXPECT_EQ(again.check_integrity(), "");
    // What was cut off at a part's beginning may be too short to be a text.
    const Texts before = all_of(memory);
    const Texts after = all_of(again);
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto& [name, tokens] = before[i];
      const auto& [other_name, other_tokens] = after[i];
      EXPECT_EQ(other_name, name);
      EXPECT_GE(other_tokens.size() + 3, tokens.size());
      EXPECT_TRUE(std::equal(other_tokens.rbegin(), other_tokens.rend(), tokens.rbegin()));
    }
    SuffixMemory small(1024);
    ASSERT_TRUE(load_memory(dir_.file("m"), kTokenizer, small).ok());
    EXPECT_EQ(small.check_integrity(), "");
    EXPECT_LE(small.stats().tokens, 1024U);
  }
}

TEST_F(SuffixMemoryFile, OfSeveralThatWriteOneFileNoneLosesWhatTheOthersAdded) {
  constexpr Token kEnd = SuffixMemory::kTextEnd;
  const std::string path = dir_.file("m");
  for (const bool first_ends_first : {true, false}) {
    SuffixMemory before(4096);
    before.add("a", std::vector<Token>{1, 2, 3});
    before.add("b", std::vector<Token>{4, 5, 6});
    ASSERT_TRUE(save_memory(before, kTokenizer, path).ok());
    SuffixMemory first(4096);
    SuffixMemory second(4096);
    for (SuffixMemory* memory : {&first, &second}) {
      ASSERT_TRUE(load_memory(path, kTokenizer, *memory).ok());
      memory->mark_known();
    }
    first.add("a", std::vector<Token>{7, 8, 9});
    second.add("c", std::vector<Token>{10, 11, 12});
    SuffixMemory& one = first_ends_first ? first : second;
    SuffixMemory& other = first_ends_first ? second : first;
    ASSERT_TRUE(add_to_file(one, kTokenizer, path).ok());
    ASSERT_TRUE(add_to_file(other, kTokenizer, path).ok());
    SuffixMemory after(4096);
    ASSERT_TRUE(load_memory(path, kTokenizer, after).ok());
    Texts expected = {{"b", {4, 5, 6, kEnd}}, {"a", {1, 2, 3, kEnd, 7, 8, 9, kEnd}}};
    expected.insert(expected.begin() + (first_ends_first ? 2 : 1), {"c", {10, 11, 12, kEnd}});
    EXPECT_EQ(all_of(after), expected);

    ASSERT_TRUE(save_memory(one, kTokenizer, path).ok());  // the control
    ASSERT_TRUE(save_memory(other, kTokenizer, path).ok());
    SuffixMemory replaced(4096);
    ASSERT_TRUE(load_memory(path, kTokenizer, replaced).ok());
    EXPECT_NE(all_of(replaced), expected);
  }
}

TEST_F(SuffixMemoryFile, ThoseThatWriteAtOnceWaitForEachOther) {
  const std::string path = dir_.file("m");
  std::vector<std::thread> threads;
  for (Token i = 0; i < 8; ++i) {
    threads.emplace_back([&path, i] {
      for (Token k = 0; k < 2; ++k) {
        SuffixMemory memory(4096);
        memory.add("user-" + std::to_string(i), std::vector<Token>{i, k, 99});
        EXPECT_TRUE(add_to_file(memory, kTokenizer, path).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  SuffixMemory memory(4096);
  ASSERT_TRUE(load_memory(path, kTokenizer, memory).ok());
  EXPECT_EQ(memory.stats().namespaces, 8U);
  EXPECT_EQ(memory.stats().tokens, 8U * 2 * 4);
}

// Whoever has it may be stopped, and a process that ends must come to its end.
TEST_F(SuffixMemoryFile, NobodyWaitsWithoutEndForAnothersLock) {
  constexpr std::chrono::milliseconds kShort{20};
  const std::string path = dir_.file("m");
  SuffixMemory memory(4096);
  memory.add("a", std::vector<Token>{1, 2, 3});
  ASSERT_TRUE(save_memory(memory, kTokenizer, path).ok());
  const std::string before = testing::read_bytes(path);
  memory.add("b", std::vector<Token>{4, 5, 6});
  {
    const FileLock of_another(path + ".lock");
    const Status refused = add_to_file(memory, kTokenizer, path, kShort);
    EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
    EXPECT_NE(refused.message().find(path + ".lock"), std::string::npos) << refused.message();
    EXPECT_EQ(testing::read_bytes(path), before);
    testing::write_bytes(path, "damaged");
    SuffixMemory read(4096);
    EXPECT_FALSE(recall_memory(path, kTokenizer, read, kShort).ok());
    EXPECT_EQ(testing::read_bytes(path), "damaged") << "it is set aside under the lock alone";
    testing::write_bytes(path, before);
  }
  EXPECT_TRUE(add_to_file(memory, kTokenizer, path, kShort).ok()) << "the control";
  EXPECT_NE(testing::read_bytes(path), before);
}

TEST_F(SuffixMemoryFile, WhatIsAddedToAFullFileTakesThePlaceOfTheOldest) {
  std::mt19937_64 random(testing::test_seed(5));
  const std::string path = dir_.file("m");
  for (int round = 0; round < 8; ++round) {
    SuffixMemory memory(1024);
    if (round > 0) {
      ASSERT_TRUE(load_memory(path, kTokenizer, memory).ok());
    }
    memory.mark_known();
    fill(memory, static_cast<int>(random() % 60), random);
    EXPECT_EQ(memory.check_integrity(), "");
    memory.add("last", std::vector<Token>{1, 2, 3, round});
    ASSERT_TRUE(add_to_file(memory, kTokenizer, path).ok());
    SuffixMemory after(1024);
    ASSERT_TRUE(load_memory(path, kTokenizer, after).ok());
    EXPECT_EQ(after.check_integrity(), "");
    const Texts texts = all_of(after);
    ASSERT_FALSE(texts.empty());
    EXPECT_EQ(texts.back().first, "last");
    EXPECT_EQ(texts.back().second.end()[-2], round);
  }
}

TEST_F(SuffixMemoryFile, WhatIsNoSuchFileIsRefusedAndChangesNothing) {
  std::mt19937_64 random(testing::test_seed(4));
  SuffixMemory memory(4096);
  fill(memory, 20, random);
  const std::string path = dir_.file("m");
  ASSERT_TRUE(save_memory(memory, kTokenizer, path).ok());
  const std::string good = testing::read_bytes(path);
  const Texts before = all_of(memory);
  EXPECT_EQ(load_memory(dir_.file("none"), kTokenizer, memory).code(), StatusCode::kNotFound);
  EXPECT_EQ(load_memory(path, {.hash = 8, .n_vocab = 100}, memory).code(),
            StatusCode::kInvalidArgument);
  for (std::size_t i = 0; i < good.size(); i += 1 + random() % 5) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x40);
    testing::write_bytes(path, bytes);
    EXPECT_FALSE(load_memory(path, kTokenizer, memory).ok()) << i;
    testing::write_bytes(path, good.substr(0, i));
    EXPECT_FALSE(load_memory(path, kTokenizer, memory).ok()) << i;
  }
  EXPECT_EQ(all_of(memory), before);
}

TEST_F(SuffixMemoryFile, WhatCannotBeReadIsNeverReplacedByTheTextsOfOneRun) {
  const std::string path = dir_.file("m");
  const std::string aside = path + ".damaged";
  SuffixMemory old(4096);
  old.add("a", std::vector<Token>{1, 2, 3});
  ASSERT_TRUE(save_memory(old, kTokenizer, path).ok());
  const std::string good = testing::read_bytes(path);
  SuffixMemory memory(4096);
  memory.add("b", std::vector<Token>{4, 5, 6});
  for (const std::string& bad : {good.substr(0, good.size() / 2), std::string("damaged")}) {
    for (const bool at_the_start : {true, false}) {
      testing::write_bytes(path, bad);
      SuffixMemory read(4096);
      const Status told = at_the_start ? recall_memory(path, kTokenizer, read)
                                       : add_to_file(memory, kTokenizer, path);
      EXPECT_FALSE(told.ok());
      EXPECT_NE(told.message().find("it is now '" + aside + "'"), std::string::npos)
          << told.message();
      EXPECT_EQ(testing::read_bytes(aside), bad);
      if (at_the_start) {
        EXPECT_TRUE(add_to_file(memory, kTokenizer, path).ok());
      }
      ASSERT_TRUE(load_memory(path, kTokenizer, read).ok());
      EXPECT_EQ(all_of(read), all_of(memory));
    }
  }
  // Any other error leaves it as it is.
  const std::string link = dir_.file("l");
  std::filesystem::create_symlink(link, link);  // opening it fails, and not because it is missing
  const Status looped = add_to_file(memory, kTokenizer, link);
  EXPECT_FALSE(looped.ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link)) << looped.message();
}

TEST_F(SuffixMemoryFile, ForgedSectionsNeverLeadOutside) {
  constexpr Token kEnd = SuffixMemory::kTextEnd;
  const auto load = [this](std::vector<std::uint32_t> spaces, const std::string& names,
                           const std::vector<Token>& tokens) {
    StoreContents contents;
    contents.kind = "remembered";
    contents.tokenizer = kTokenizer;
    SectionData records = make_section("spaces", std::span<const std::uint32_t>(spaces));
    records.element_bytes = 8;
    contents.sections = {records, make_section("names", std::span<const char>(names)),
                         make_section("tokens", std::span<const Token>(tokens))};
    EXPECT_TRUE(save_store(dir_.file("f"), contents).ok());
    SuffixMemory memory(4096);
    const Status status = load_memory(dir_.file("f"), kTokenizer, memory);
    if (!status.ok()) {
      EXPECT_EQ(memory.stats().tokens, 0U);
    }
    return status.ok();
  };
  EXPECT_TRUE(load({1, 4}, "a", {1, 2, 3, kEnd}));
  EXPECT_TRUE(load({1, 0}, "a", {}));
  EXPECT_FALSE(load({1, 5}, "a", {1, 2, 3, kEnd})) << "more tokens than there are";
  EXPECT_FALSE(load({1, 3}, "a", {1, 2, kEnd, 3})) << "tokens that belong to nobody";
  EXPECT_FALSE(load({1, 4}, "a", {1, 2, 3, 4})) << "a text without an end";
  EXPECT_FALSE(load({2, 4}, "a", {1, 2, 3, kEnd})) << "a name beyond the names";
  EXPECT_FALSE(load({0xFFFFFFFF, 4}, "a", {1, 2, 3, kEnd}));
  EXPECT_FALSE(load({1, 0xFFFFFFFF, 1, 5}, "ab", {1, 2, 3, kEnd}));
  EXPECT_FALSE(load({1, 4}, "a", {1, 100, 3, kEnd})) << "a token outside the vocabulary";
  EXPECT_FALSE(load({1, 4}, "a", {1, -1, 3, kEnd}));
}

// As a runtime has it, which does not know whose memory it is.
TEST_F(SuffixMemoryFile, WhatWasRecalledIsThereOnceAfterItIsKeptAgain) {
  const std::string path = dir_.file("m");
  const std::vector<Token> first = {1, 2, 3, 4};
  const std::vector<Token> second = {5, 6, 7, 8};
  std::size_t tokens = 0;
  for (const std::vector<Token>& text : {first, second, second}) {
    const std::unique_ptr<TextMemory> memory = std::make_unique<SuffixMemory>(4096);
    const Status recalled = memory->recall(path, kTokenizer);
    EXPECT_EQ(recalled.code(), tokens == 0 ? StatusCode::kNotFound : StatusCode::kOk)
        << recalled.message();
    EXPECT_EQ(memory->stats().tokens, tokens);
    EXPECT_EQ(memory->add("user", text), text.size());
    tokens = memory->stats().tokens;
    ASSERT_TRUE(memory->keep(path, kTokenizer).ok());
  }
  const TokenizerId other{.hash = 8, .n_vocab = 100};
  SuffixMemory memory(4096);
  EXPECT_FALSE(static_cast<TextMemory&>(memory).recall(path, other).ok());
  EXPECT_EQ(memory.stats().tokens, 0U);
}

}  // namespace
}  // namespace outrider
