// The block drafter on the hand-written head: what it reads, what it keeps, what it learns.
#include "draft/model/block_drafter.h"

#include <gtest/gtest.h>

#include "testing/fake_block_model.h"

namespace outrider {
namespace {

using testing::FakeBlockModel;
using testing::FakeSampler;

constexpr std::int32_t kVocab = 8;
constexpr std::int32_t kStates = 3;

BlockCapabilities capabilities(std::int32_t n_batch = 16) {
  return {.n_vocab = kVocab,
          .n_ctx = 64,
          .n_batch = n_batch,
          .n_sequences = 3,
          .n_states = kStates,
          .most_guesses = 4,
          .can_share = true};
}

std::vector<float> state_at(const std::vector<Token>& text, std::size_t position) {
  std::vector<float> state(kStates, 0.0f);
  for (std::size_t back = 0; back < kStates && back <= position; ++back) {
    state[kStates - 1 - back] = static_cast<float>(text[position - back] + 1);
  }
  return state;
}

class BlockDrafterTest : public ::testing::Test {
 protected:
  explicit BlockDrafterTest(std::int32_t n_batch = 16, std::size_t window = 512)
      : model(capabilities(n_batch), testing::random_rows(kVocab, 3, 2.0f)),
        drafter(model, kVocab, {}, window) {}

  void begin(SeqId seq) { ASSERT_TRUE(drafter.begin(seq, 0).ok()); }
  // The states of [from, the text's last token).
  void show(SeqId seq, const std::vector<Token>& text, std::size_t from) {
    for (std::size_t at = from; at + 1 < text.size(); ++at) {
      drafter.see_hidden(seq, at, text[at], state_at(text, at));
    }
  }
  Status draft(SeqId seq, const std::vector<Token>& text, TokenTree* tree,
               std::int32_t max_nodes = 4) {
    FakeSampler sampler(1.0f);
    DraftRequest request{.seq = seq,
                         .text = text,
                         .seed = 7,
                         .sampler = &sampler,
                         .max_nodes = max_nodes,
                         .mask = 1,
                         .tree = tree};
    const Status status = draft_one(drafter, request);
    EXPECT_EQ(drafter.check_integrity(), "");
    return status;
  }
  std::int32_t drafted(SeqId seq, const std::vector<Token>& text, std::int32_t max_nodes = 4) {
    TokenTree tree(text.back());
    const Status status = draft(seq, text, &tree, max_nodes);
    EXPECT_TRUE(status.ok()) << status.message();
    return tree.drafted();
  }

  FakeBlockModel model;
  BlockDrafter drafter;
};

class SmallWindow : public BlockDrafterTest {
 protected:
  SmallWindow() : BlockDrafterTest(16, 5) {}
};
class WindowOfSixteen : public BlockDrafterTest {
 protected:
  WindowOfSixteen() : BlockDrafterTest(16, 16) {}
};
class SmallBatch : public BlockDrafterTest {
 protected:
  SmallBatch() : BlockDrafterTest(6) {}
};

TEST_F(BlockDrafterTest, EachStateIsReadOnceAndTheRootNotBeforeItsOwnHasCome) {
  begin(0);
  std::vector<Token> text = {1, 2, 3, 4};
  show(0, text, 0);
  EXPECT_EQ(drafter.known(0, text), 0);
  EXPECT_EQ(drafted(0, text), 4);
  EXPECT_EQ(model.text(0), (std::vector<Token>{1, 2, 3}));
  text.insert(text.end(), {5, 6});
  show(0, text, 3);
  EXPECT_EQ(drafter.known(0, text), 3);
  EXPECT_EQ(drafted(0, text), 4);
  EXPECT_EQ(model.text(0), (std::vector<Token>{1, 2, 3, 4, 5}));
  EXPECT_EQ(model.tokens_read(), 5);
  EXPECT_EQ(model.guesses(), 2);
}

TEST_F(BlockDrafterTest, ATextsOnlyTokenIsEnoughToGuess) {
  begin(0);
  EXPECT_EQ(drafted(0, {1}), 4);
  EXPECT_EQ(model.tokens_read(), 0);
}

TEST_F(BlockDrafterTest, WithoutTheLastTokensStateItIsNotAsked) {
  begin(0);
  const std::vector<Token> text = {1, 2, 3, 4};
  show(0, {1, 2, 3}, 0);
  EXPECT_FALSE(drafter.can_guess(0, text));
  EXPECT_EQ(drafted(0, text), 0);
  show(0, text, 2);
  EXPECT_TRUE(drafter.can_guess(0, text));
}

TEST_F(BlockDrafterTest, AStateOfAnotherTokenIsNoticed) {
  begin(0);
  const std::vector<Token> text = {1, 2, 3};
  show(0, {1, 5, 3}, 0);
  TokenTree tree(3);
  const Status status = draft(0, text, &tree);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("not the text's"), std::string::npos) << status.message();
}

TEST_F(SmallWindow, OfATextThatItDoesNotKnowItReadsTheLastTokens) {
  begin(0);
  std::vector<Token> text;
  for (Token t = 0; t < 30; ++t) text.push_back(t % kVocab);
  show(0, text, 0);
  EXPECT_EQ(drafter.known(0, text), 24);
  EXPECT_EQ(drafted(0, text), 4);
  EXPECT_EQ(model.tokens_read(), 5);
  // It goes on from there, and begins anew when it has missed more than the window.
  text.push_back(3);
  show(0, text, 29);
  EXPECT_EQ(drafted(0, text), 4);
  EXPECT_EQ(model.tokens_read(), 6);
  for (Token t = 0; t < 9; ++t) text.push_back(t % kVocab);
  show(0, text, 30);
  EXPECT_EQ(drafted(0, text), 4);
  EXPECT_EQ(model.text(0).size(), 5U);
}

// The prompt comes again, behind a text of which no state in front of it is left.
TEST_F(SmallWindow, OneThatHoldsNothingOfATextIsNotAsked) {
  std::vector<Token> text;
  for (Token t = 0; t < 20; ++t) text.push_back(t % kVocab);
  const std::vector<Token> prompt(text.begin(), text.begin() + 8);
  begin(0);
  show(0, text, 0);
  ASSERT_TRUE(drafter.begin(0, 7).ok());
  EXPECT_FALSE(drafter.can_guess(0, prompt));
}

TEST_F(SmallBatch, ALongTextIsReadInPieces) {
  begin(0);
  std::vector<Token> text;
  for (Token t = 0; t < 20; ++t) text.push_back(t % kVocab);
  show(0, text, 0);
  EXPECT_EQ(drafted(0, text), 4);
  EXPECT_EQ(model.tokens_read(), 19);
}

// A batch of 6 holds one block of five tokens, or three of two.
TEST_F(SmallBatch, BlocksThatDoNotFitOneBatchAreGuessedOneAfterTheOther) {
  for (const std::int32_t n : {1, 2, 4}) {
    const std::int64_t before = model.guesses();
    std::vector<std::vector<Token>> texts;
    std::vector<TokenTree> trees;
    FakeSampler sampler(1.0f);
    for (SeqId seq = 0; seq < 3; ++seq) {
      begin(seq);
      texts.push_back({static_cast<Token>(seq), 2, 3});
      show(seq, texts.back(), 0);
      trees.emplace_back(3);
    }
    std::vector<DraftRequest> requests;
    for (std::size_t i = 0; i < 3; ++i) {
      requests.push_back({.seq = static_cast<SeqId>(i),
                          .text = texts[i],
                          .seed = 7,
                          .sampler = &sampler,
                          .max_nodes = n,
                          .mask = 1,
                          .tree = &trees[i]});
    }
    ASSERT_TRUE(drafter.draft(requests).ok());
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(trees[i].drafted(), n);
      TokenTree alone(3);
      ASSERT_TRUE(draft(static_cast<SeqId>(i), texts[i], &alone, n).ok());
      for (NodeId id = 0; id < alone.size(); ++id) EXPECT_EQ(trees[i].token(id), alone.token(id));
    }
    EXPECT_EQ(model.guesses() - before - 3, n == 1 ? 1 : n == 2 ? 2 : 3);
  }
}

TEST_F(BlockDrafterTest, ANewTextKeepsWhatItSharesWithTheOldOne) {
  begin(0);
  std::vector<Token> text = {1, 2, 3, 4, 5, 6};
  show(0, text, 0);
  EXPECT_EQ(drafted(0, text), 4);
  ASSERT_TRUE(drafter.begin(0, 3).ok());
  text = {1, 2, 3, 7, 7};
  show(0, text, 3);
  EXPECT_EQ(drafter.known(0, text), 3);
  EXPECT_EQ(drafted(0, text), 4);
  EXPECT_EQ(model.text(0), (std::vector<Token>{1, 2, 3, 7}));
  EXPECT_EQ(model.tokens_read(), 5 + 1);
}

TEST_F(BlockDrafterTest, WhatAnotherSequenceHasReadIsShared) {
  begin(0);
  const std::vector<Token> text = {1, 2, 3, 4, 5, 6};
  show(0, text, 0);
  EXPECT_EQ(drafted(0, text), 4);
  ASSERT_TRUE(drafter.begin_like(1, 0, 4).ok());
  const std::vector<Token> other = {1, 2, 3, 4, 7, 7};
  show(1, other, 4);
  EXPECT_EQ(drafter.known(1, other), 4);
  EXPECT_EQ(drafted(1, other), 4);
  EXPECT_EQ(model.text(1), (std::vector<Token>{1, 2, 3, 4, 7}));
  EXPECT_EQ(model.text(0), (std::vector<Token>{1, 2, 3, 4, 5}));
  EXPECT_EQ(model.tokens_read(), 5 + 1);
}

TEST_F(BlockDrafterTest, ABlockEndsWhereTheContextDoes) {
  begin(0);
  std::vector<Token> text;
  for (std::int32_t at = 0; at < 70; ++at) {
    text.push_back(at % kVocab);
    show(0, text, at == 0 ? 0 : static_cast<std::size_t>(at) - 1);
    const std::int32_t room = 64 - at - 1;
    EXPECT_EQ(drafted(0, text), std::clamp(room, 0, 4)) << at;
    EXPECT_EQ(drafter.limit_reason(0).empty(), room > 0) << at;
  }
}

// Refused, it reads nothing, until the window has left what it knows behind.
TEST_F(WindowOfSixteen, AContextThatWasFullIsNotSaidWhileItGuessesAgain) {
  begin(0);
  std::vector<Token> text;
  int refused = 0;
  int again = 0;
  for (std::int32_t at = 0; at < 120; ++at) {
    text.push_back(at % kVocab);
    show(0, text, at == 0 ? 0 : static_cast<std::size_t>(at) - 1);
    const bool has_room = drafter.has_room(0, text);
    const bool guesses = drafted(0, text) > 0;
    EXPECT_EQ(drafter.limit_reason(0).empty(), guesses) << at;
    EXPECT_EQ(has_room, guesses) << at;
    refused += guesses ? 0 : 1;
    again += guesses && refused > 0 ? 1 : 0;
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(again, 20);
}

TEST_F(BlockDrafterTest, AFailureAtAnyPassLeavesTheStateInStep) {
  for (int pass = 0; pass < 2; ++pass) {
    for (const bool cancel : {false, true}) {
      begin(0);
      const std::vector<Token> text = {1, 2, 3, 4};
      show(0, text, 0);
      std::vector<Status> statuses(static_cast<std::size_t>(pass));
      statuses.push_back(cancel ? cancelled("broken") : internal_error("broken"));
      model.fail(statuses);
      TokenTree tree(4);
      EXPECT_EQ(draft(0, text, &tree).message(), "broken");
      EXPECT_EQ(tree.drafted(), 0);
      EXPECT_EQ(drafted(0, text), 4);
    }
  }
}

// A text that takes the second best now and then, behind what it took of the last draft.
TEST_F(BlockDrafterTest, GuessesAreLearnedFromAsTheDraftModelsAre) {
  begin(0);
  std::vector<Token> text = {1, 2, 3};
  show(0, text, 0);
  while (text.size() < 50) {
    TokenTree tree(text.back());
    ASSERT_TRUE(draft(0, text, &tree).ok());
    text.push_back(tree.token(1));
    text.push_back(text.size() % 3 == 0 ? (tree.token(2) + 1) % kVocab : tree.token(2));
    show(0, text, text.size() - 3);
  }
  const std::vector<double> learned = drafter.learned();
  EXPECT_GT(learned[1], 20.0);
  EXPECT_NE(learned[0], 1.0);
  BlockDrafter other(model, kVocab, {});
  other.recall(learned);
  EXPECT_EQ(other.learned(), learned);
}

}  // namespace
}  // namespace outrider
