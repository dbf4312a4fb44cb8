// What is remembered: bounds and counts after random operations, and that a namespace's texts draft
// for that namespace only.
#include "draft/suffix/suffix_memory.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "draft/suffix/suffix_drafter.h"
#include "testing/chi_square.h"

namespace outrider {
namespace {

using Tokens = std::vector<Token>;

Tokens counting(Token from, std::size_t n) {
  Tokens tokens(n);
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

// What is drafted behind `text`, as sequence `seq` and for a namespace.
TokenTree draft(SuffixDrafter& drafter, std::string_view name, std::span<const Token> text,
                SeqId seq = 0, std::int32_t branches = 1) {
  TokenTree tree(text.back());
  DraftRequest request;
  request.seq = seq;
  request.text = text;
  request.max_nodes = 8;
  request.shape.branches = branches;
  request.mask = 1;
  request.tree = &tree;
  request.name_space = name;
  EXPECT_TRUE(drafter.draft(std::span(&request, 1)).ok());
  EXPECT_EQ(tree.check_integrity(), "");
  return tree;
}

Tokens tokens_of(const TokenTree& tree) {
  Tokens tokens;
  for (NodeId id = 1; id < tree.size(); ++id) tokens.push_back(tree.token(id));
  return tokens;
}

class Remembering : public ::testing::Test {
 protected:
  explicit Remembering(std::size_t max_tokens = 4096) : memory_(max_tokens) {
    drafter_.use_memory(&memory_);
  }
  // In a request of its own.
  Tokens drafted(std::string_view name, const Tokens& text) {
    EXPECT_TRUE(drafter_.begin(0, 0).ok());
    return tokens_of(draft(drafter_, name, text));
  }

  SuffixMemory memory_;
  SuffixDrafter drafter_{4};
};

TEST_F(Remembering, AFinishedTextDraftsForItsNamespaceAndForNobodyElse) {
  EXPECT_EQ(memory_.add("a", counting(100, 40)), 40U);
  EXPECT_EQ(drafted("a", {7, 110, 111}), counting(112, 8));
  EXPECT_EQ(drafted("b", {7, 110, 111}), Tokens());
  EXPECT_EQ(drafted("", {7, 110, 111}), Tokens());
  EXPECT_EQ(drafted("A", {7, 110, 111}), Tokens());
  EXPECT_EQ(drafted("aa", {7, 110, 111}), Tokens());
  EXPECT_EQ(memory_.add("b", counting(500, 40)), 40U);
  EXPECT_EQ(drafted("b", {7, 110, 111}), Tokens());
  EXPECT_EQ(drafted("b", {7, 510, 511}), counting(512, 8));
  EXPECT_EQ(drafted("a", {7, 510, 511}), Tokens());
  drafter_.use_memory(nullptr);
  EXPECT_EQ(drafted("a", {7, 110, 111}), Tokens());
}

TEST_F(Remembering, ASequenceThatPassesFromOneNamespaceToAnotherTakesNothingAlong) {
  memory_.add("a", counting(100, 40));
  memory_.add("b", counting(500, 40));
  // Without begin(), which the engine always calls, and with texts of the same length.
  EXPECT_EQ(tokens_of(draft(drafter_, "a", Tokens{7, 110, 111}, 1)), counting(112, 8));
  EXPECT_EQ(tokens_of(draft(drafter_, "b", Tokens{7, 110, 111, 112}, 1)), Tokens());
  EXPECT_EQ(tokens_of(draft(drafter_, "", Tokens{7, 110, 111, 112, 113}, 1)), Tokens());
  EXPECT_EQ(tokens_of(draft(drafter_, "a", Tokens{7, 110, 111, 112, 113, 114}, 1)),
            counting(115, 8));
}

TEST_F(Remembering, TextsEndWhereTheyEnd) {
  memory_.add("a", Tokens{1, 2, 3});
  memory_.add("a", Tokens{11, 12, 13});
  EXPECT_EQ(drafted("a", {1, 2}), Tokens({3}));
  EXPECT_EQ(drafted("a", {2, 3}), Tokens()) << "no mark, and not the next text";
  EXPECT_EQ(drafted("a", {3, 11}), Tokens()) << "no match across the border";
  EXPECT_EQ(memory_.add("a", Tokens{4, 5}), 0U) << "too short to guess from";
  EXPECT_EQ(memory_.stats().tokens, 8U);
}

TEST_F(Remembering, WhatAFinishedTextAddsIsSeenByRequestsThatRun) {
  const Tokens text = {7, 110, 111};
  EXPECT_EQ(tokens_of(draft(drafter_, "a", text)), Tokens());
  memory_.add("a", counting(100, 20));
  EXPECT_EQ(tokens_of(draft(drafter_, "a", text)), counting(112, 8));
  memory_.add("a", Tokens{110, 111, 900, 901, 902});
  EXPECT_EQ(tokens_of(draft(drafter_, "a", text)).front(), 900) << "the newer one first";
  const Tokens both = tokens_of(draft(drafter_, "a", text, 0, /*branches=*/4));
  EXPECT_TRUE(std::find(both.begin(), both.end(), 112) != both.end());
}

TEST_F(Remembering, ADrafterThatRestedFindsItsPlaceAgain) {
  memory_.add("a", counting(100, 40));
  Tokens text = {7, 110, 111};
  EXPECT_EQ(tokens_of(draft(drafter_, "a", text)), counting(112, 8));
  const Tokens missed = counting(5000, 400);
  text.insert(text.end(), missed.begin(), missed.end());
  text.insert(text.end(), {120, 121});
  EXPECT_EQ(tokens_of(draft(drafter_, "a", text)), counting(122, 8));
}

TEST_F(Remembering, OwnTextAndMemoryAreBlendedByLength) {
  memory_.add("a", Tokens{1, 2, 3, 4, 5, 60, 61});
  // Behind the last token alone the own text says 50, behind four the memory 60.
  EXPECT_EQ(drafted("a", {5, 50, 9, 2, 3, 4, 5}).front(), 60);
  EXPECT_EQ(drafted("b", {5, 50, 9, 2, 3, 4, 5}).front(), 50);
}

TEST_F(Remembering, ALongTextIsReadInPortions) {
  SuffixMemory memory(1 << 20);
  drafter_.use_memory(&memory);
  const std::size_t n = 3 * SuffixMemory::kReadAtOnce;
  memory.add("a", counting(0, n));
  const Token late = static_cast<Token>(n) - 20;
  EXPECT_EQ(drafted("a", {9, late, late + 1}), Tokens()) << "not read yet";
  EXPECT_EQ(drafted("a", {9, 20, 21}), counting(22, 8));
  EXPECT_EQ(drafted("a", {9, late, late + 1}), counting(late + 2, 8));
  EXPECT_EQ(memory.check_integrity(), "");
  drafter_.use_memory(&memory_);
}

TEST_F(Remembering, TheOldestTextsOfANamespaceLeaveFirstAndAQuarterIsItsMost) {
  for (Token i = 0; i < 40; ++i) {
    memory_.add("a", counting(1000 * (i + 1), 50));
    drafted("a", {1, 2});
    ASSERT_EQ(memory_.check_integrity(), "");
    ASSERT_LE(memory_.stats().tokens, 1024U);
  }
  EXPECT_GT(memory_.stats().tokens, 800U) << "parts of 128";
  EXPECT_EQ(drafted("a", {40010, 40011}), counting(40012, 8)) << "the newest";
  EXPECT_EQ(drafted("a", {30010, 30011}), counting(30012, 8));
  EXPECT_EQ(drafted("a", {1010, 1011}), Tokens()) << "the oldest";
  EXPECT_EQ(memory_.add("a", counting(0, 5000)), 1024U - 128 - 1) << "of a longer one the end";
  EXPECT_EQ(drafted("a", {4988, 4989}), counting(4990, 8));
  EXPECT_EQ(memory_.check_integrity(), "");
}

TEST_F(Remembering, TheNamespaceThatWasUsedLeastRecentlyLeavesFirst) {
  for (const char* name : {"a", "b", "c", "d"}) memory_.add(name, counting(100, 890));
  drafted("a", {1, 2});  // used
  memory_.add("e", counting(100, 890));
  EXPECT_EQ(drafted("b", {110, 111}), Tokens()) << "its oldest parts made room";
  for (const char* name : {"a", "c", "d", "e"}) {
    EXPECT_EQ(drafted(name, {110, 111}), counting(112, 8)) << name;
  }
  EXPECT_LE(memory_.stats().tokens, 4096U);
  EXPECT_EQ(memory_.check_integrity(), "");
  for (int i = 0; i < 1100; ++i) memory_.add("n" + std::to_string(i), Tokens{1, 2, 3});
  EXPECT_LE(memory_.stats().namespaces, SuffixMemory::kMaxNamespaces);
  EXPECT_EQ(memory_.check_integrity(), "");
  memory_.clear();
  EXPECT_EQ(memory_.stats().tokens, 0U);
  EXPECT_EQ(memory_.stats().memory_bytes, 0U);
  EXPECT_EQ(memory_.check_integrity(), "");
  EXPECT_EQ(drafted("e", {110, 111}), Tokens());
}

// Texts of all namespaces begin with the same tokens, and go on with tokens that nobody else has:
// whoever sees another's text drafts what betrays it.
TEST(SuffixMemory, RandomOperationsNeverShowANamespaceAnothersText) {
  const std::uint64_t seed = testing::test_seed(20261123);
  std::mt19937_64 random(seed);
  constexpr int kSpaces = 6;
  std::int64_t proposed = 0;
  for (int round = 0; round < 12; ++round) {
    SuffixMemory memory(1024 << (round % 3));
    SuffixDrafter drafter(3);
    drafter.use_memory(&memory);
    const auto random_text = [&](int space, std::size_t n) {
      Tokens text;
      while (text.size() < n) {
        text.push_back(static_cast<Token>(random() % 3));  // everybody's
        const Token own = static_cast<Token>(100 * (space + 1) + static_cast<int>(random() % 4));
        if (space >= 0 && random() % 2 == 0) text.push_back(own);
      }
      return text;
    };
    std::vector<std::pair<int, Tokens>> running(3);  // [seq] namespace (-1: none) and text
    for (std::size_t seq = 0; seq < running.size(); ++seq) running[seq] = {-1, {0}};
    for (int step = 0; step < 600; ++step) {
      const int space = static_cast<int>(random() % (kSpaces + 1)) - 1;
      const std::size_t seq = random() % running.size();
      if (random() % 8 == 0 && space >= 0) {
        const Tokens text = random_text(space, 1 + random() % 60);
        memory.add("user-" + std::to_string(space), text);
      } else if (random() % 6 == 0) {
        const std::size_t kept = random() % 2;  // as the engine keeps what two texts share
        ASSERT_TRUE(drafter.begin(static_cast<SeqId>(seq), kept).ok());
        Tokens text = random_text(-1, 6);
        text.insert(text.begin(), running[seq].second.front());
        running[seq] = {space, text};
      } else {
        auto& [who, text] = running[seq];
        text.push_back(static_cast<Token>(random() % 3));
        const std::string name = who < 0 ? "" : "user-" + std::to_string(who);
        for (const Token token :
             tokens_of(draft(drafter, name, text, static_cast<SeqId>(seq), 4))) {
          ASSERT_TRUE(token < 100 || token / 100 == who + 1)
              << name << " was shown " << token << ", seed " << seed;
          proposed += token >= 100 ? 1 : 0;
        }
      }
      ASSERT_EQ(memory.check_integrity(), "") << "seed " << seed;
    }
  }
  EXPECT_GT(proposed, 1000) << "and its own it does see";
}

}  // namespace
}  // namespace outrider
