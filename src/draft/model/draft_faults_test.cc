// What fails for one of the texts that draft models guess for leaves the others their guesses.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "draft/model/block_drafter.h"
#include "draft/model/draft_model.h"
#include "testing/fake_block_model.h"
#include "testing/fake_model.h"

namespace outrider {
namespace {

using testing::FakeBlockModel;
using testing::FakeModel;
using testing::FakeSampler;

constexpr std::int32_t kFaultVocab = 12;
constexpr std::int32_t kFaultStates = 3;

// Two texts and the trees of a call for both.
struct TwoTexts {
  std::vector<DraftRequest> requests() {
    std::vector<DraftRequest> result;
    for (const SeqId seq : {0, 1}) {
      const std::vector<Token>& text = texts[static_cast<std::size_t>(seq)];
      TokenTree& tree = trees[static_cast<std::size_t>(seq)];
      tree = TokenTree(text.back());
      result.push_back({.seq = seq,
                        .text = text,
                        .seed = 7,
                        .sampler = &sampler,
                        .max_nodes = 4,
                        .mask = 1,
                        .tree = &tree});
    }
    return result;
  }

  FakeSampler sampler{1.0f};
  std::vector<Token> texts[2] = {{1, 2, 3}, {4, 5, 6}};
  TokenTree trees[2] = {TokenTree(0), TokenTree(0)};
};

TEST(DraftFaults, OfADraftModelsCommitConcernItsTextAlone) {
  FakeModel model({.n_vocab = kFaultVocab,
                   .n_ctx = 64,
                   .n_batch = 24,
                   .n_sequences = 2,
                   .rollback = Rollback::kAny,
                   .max_leaves = 4,
                   .max_width = 16},
                  testing::random_rows(kFaultVocab, 3, 2.0f));
  DraftModelDrafter drafter(model, kFaultVocab, {});
  for (const SeqId seq : {0, 1}) ASSERT_TRUE(drafter.begin(seq, 0).ok());
  TwoTexts two;
  std::vector<DraftRequest> requests = two.requests();
  ASSERT_TRUE(drafter.draft(requests).ok());
  // Both texts take the first guess, so the drafts are held until the next ones.
  for (const std::size_t i : {0U, 1U}) {
    ASSERT_TRUE(requests[i].failure.ok());
    two.texts[i].push_back(two.trees[i].token(1));
    drafter.accept(static_cast<SeqId>(i), two.texts[i]);
    ASSERT_TRUE(model.waits(static_cast<SeqId>(i)));
  }
  model.fail_commit({internal_error("on purpose")});
  requests = two.requests();
  EXPECT_TRUE(drafter.draft(requests).ok());
  EXPECT_EQ(requests[0].failure.message(), "on purpose");
  EXPECT_EQ(two.trees[0].drafted(), 0);
  EXPECT_TRUE(requests[1].failure.ok());
  EXPECT_EQ(two.trees[1].drafted(), 4);
  EXPECT_EQ(drafter.check_integrity(), "");
  requests = two.requests();
  EXPECT_EQ(draft_one(drafter, requests[0]).message(), "") << "the text is read again";
  EXPECT_EQ(two.trees[0].drafted(), 4);
  EXPECT_EQ(drafter.check_integrity(), "");
}

// As an exception leaves it, of a call for another text.
TEST(DraftFaults, AModelThatHasLostItsTextsReadsThemAgain) {
  const Capabilities caps = {.n_vocab = kFaultVocab,
                             .n_ctx = 64,
                             .n_batch = 24,
                             .n_sequences = 3,
                             .rollback = Rollback::kAny,
                             .max_leaves = 4,
                             .max_width = 16,
                             .can_share = true};
  for (const bool shared : {false, true}) {
    FakeModel model(caps, testing::random_rows(kFaultVocab, 3, 2.0f));
    DraftModelDrafter drafter(model, kFaultVocab, {});
    for (const SeqId seq : {0, 1, 2}) ASSERT_TRUE(drafter.begin(seq, 0).ok());
    TwoTexts two;
    std::vector<DraftRequest> requests = two.requests();
    ASSERT_TRUE(drafter.draft(requests).ok());
    const TokenTree before = two.trees[1];
    for (const SeqId seq : {0, 1}) drafter.rest(seq, two.texts[static_cast<std::size_t>(seq)]);
    for (const SeqId seq : {0, 1}) ASSERT_TRUE(model.truncate(seq, 0).ok());
    if (shared) {
      ASSERT_TRUE(drafter.begin_like(2, 1, 2).ok());
      EXPECT_EQ(model.length(2), 0) << "there is nothing to share";
    }
    requests = two.requests();
    ASSERT_TRUE(drafter.draft(requests).ok());
    for (const std::size_t i : {0U, 1U}) EXPECT_TRUE(requests[i].failure.ok());
    ASSERT_EQ(two.trees[1].drafted(), before.drafted());
    for (NodeId node = 1; node < before.size(); ++node) {
      EXPECT_EQ(two.trees[1].token(node), before.token(node))
          << "of the same text the same guesses";
    }
  }
}

TEST(DraftFaults, OfAHeadsStatesConcernTheirTextAlone) {
  FakeBlockModel model({.n_vocab = kFaultVocab,
                        .n_ctx = 64,
                        .n_batch = 16,
                        .n_sequences = 2,
                        .n_states = kFaultStates,
                        .most_guesses = 4,
                        .can_share = true},
                       testing::random_rows(kFaultVocab, 3, 2.0f));
  BlockDrafter drafter(model, kFaultVocab, {}, /*window=*/512);
  TwoTexts two;
  for (const SeqId seq : {0, 1}) {
    ASSERT_TRUE(drafter.begin(seq, 0).ok());
    const std::vector<Token>& text = two.texts[static_cast<std::size_t>(seq)];
    for (std::size_t at = 0; at + 1 < text.size(); ++at) {
      std::vector<float> state(kFaultStates, 0.0f);
      for (std::size_t back = 0; back < kFaultStates && back <= at; ++back) {
        state[kFaultStates - 1 - back] = static_cast<float>(text[at - back] + 1);
      }
      // Of the first text a state that is another token's.
      const Token token = seq == 0 && at == 1 ? 9 : text[at];
      drafter.see_hidden(seq, at, token, state);
    }
  }
  std::vector<DraftRequest> requests = two.requests();
  EXPECT_TRUE(drafter.draft(requests).ok());
  EXPECT_NE(requests[0].failure.message().find("hidden states"), std::string::npos);
  EXPECT_EQ(two.trees[0].drafted(), 0);
  EXPECT_TRUE(requests[1].failure.ok());
  EXPECT_GT(two.trees[1].drafted(), 0);
  EXPECT_EQ(drafter.check_integrity(), "");
  requests = two.requests();
  EXPECT_NE(draft_one(drafter, requests[0]).message().find("hidden states"), std::string::npos);
}

}  // namespace
}  // namespace outrider
