// A model behind another vocabulary keeps LanguageModel's contract in the target's tokens, and
// its rows are those of a fresh evaluation of the draft's own tokenisation.
#include "draft/translated/translated_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>

#include "base/random.h"
#include "draft/model/draft_model.h"
#include "testing/chi_square.h"
#include "testing/fake_model.h"
#include "testing/piece_vocabulary.h"

namespace outrider {
namespace {

using testing::FakeModel;
using testing::FakeSampler;
using testing::PieceVocabulary;

constexpr Token kControl = 8;  // of the target, nothing to the draft
constexpr std::int32_t kTargetSize = 9;
constexpr std::int32_t kDraftSize = 6;

Capabilities capabilities(std::int32_t n_ctx = 200, std::int32_t n_sequences = 2) {
  return {.n_vocab = kDraftSize,
          .n_ctx = n_ctx,
          .n_batch = 12,
          .n_sequences = n_sequences,
          .rollback = Rollback::kAny,
          .max_leaves = 4,
          .max_width = 6,
          .can_share = true};
}

// Shared: a, b, ab. The target alone: ba, bab, aa, aab, bb. The draft alone: aabb, abab, abb.
class TranslatedModelTest : public ::testing::Test {
 protected:
  TranslatedModelTest()
      : target_({"a", "b", "ab", "ba", "bab", "aa", "aab", "bb", ""}),
        draft_({"ab", "aabb", "b", "abab", "abb", "a"}) {
    Result<VocabularyMap> map = VocabularyMap::create(
        {.vocabulary = &target_}, {.vocabulary = &draft_}, {.sample = "ab", .least_share = 0.0});
    EXPECT_TRUE(map.ok()) << map.status().message();
    map_.emplace(std::move(*map));
    EXPECT_EQ(map_->pairs().size(), 3u);
    open(capabilities());
  }

  void open(const Capabilities& caps) {
    model_.reset();
    fake_.emplace(caps, rows_);
    model_.emplace(*fake_, *map_, /*window=*/8);
  }

  // The row behind `text` as the interface defines it, from the draft's numbers alone.
  std::vector<float> fresh_row(const std::vector<Token>& text,
                               const std::vector<Token>& drafted) const {
    std::string bytes;
    for (const Token t : text) bytes += target_.piece(t);
    std::vector<Token> own = *draft_.tokenize(bytes, false, false);
    if (own.empty()) own.push_back(0);
    for (const Token t : drafted) own.push_back(map_->to_draft(t));
    const std::vector<float> row = rows_(own);
    std::vector<float> wanted(kTargetSize, -INFINITY);
    for (const VocabularyMap::Pair& pair : map_->pairs()) {
      wanted[static_cast<std::size_t>(pair.target)] = row[static_cast<std::size_t>(pair.draft)];
    }
    return wanted;
  }

  static std::vector<float> copy(std::span<const float> row) { return {row.begin(), row.end()}; }

  // Evaluates all that is missing of `text` with its last token as the root of a tree.
  Status evaluate(SeqId seq, const std::vector<Token>& text, const TokenTree& tree) {
    const std::span<const Token> all(text);
    const std::size_t n = static_cast<std::size_t>(model_->length(seq));
    const EvalItem item{.seq = seq, .prefix = all.subspan(n, text.size() - 1 - n), .tree = &tree};
    return model_->evaluate({&item, 1});
  }

  // Each row of `tree` behind `text` is that of a fresh evaluation.
  void expect_rows(const std::vector<Token>& text, const TokenTree& tree, NodeId first_new = 0,
                   std::size_t item = 0) {
    for (NodeId node = first_new; node < tree.size(); ++node) {
      std::vector<Token> drafted;
      for (const NodeId at : tree.path_to(node)) {
        if (at != kRoot) drafted.push_back(tree.token(at));
      }
      ASSERT_EQ(copy(model_->logits(item, node)), fresh_row(text, drafted)) << "node " << node;
    }
  }

  testing::RowFunction rows_ = testing::random_rows(kDraftSize, 3, 2.0f, /*memory=*/64);
  PieceVocabulary target_;
  PieceVocabulary draft_;
  std::optional<VocabularyMap> map_;
  std::optional<FakeModel> fake_;
  std::optional<TranslatedModel> model_;
};

TEST_F(TranslatedModelTest, SpeaksTheTargetsVocabulary) {
  EXPECT_EQ(model_->capabilities().n_vocab, kTargetSize);
  EXPECT_EQ(model_->capabilities().n_ctx, 200);
  const std::vector<Token> text = {3, 4, 0};
  const TokenTree tree(0);
  ASSERT_TRUE(evaluate(0, text, tree).ok());
  expect_rows(text, tree);
  EXPECT_EQ(model_->length(0), 0);
  const std::vector<NodeId> path = {0};
  ASSERT_TRUE(model_->commit(0, path).ok());
  EXPECT_EQ(model_->length(0), 3);
  EXPECT_EQ(model_->check_integrity(), "");
}

// All texts of three tokens, all chains of two shared tokens, all acceptances, all next tokens.
TEST_F(TranslatedModelTest, AfterEveryAcceptanceTheRowsAreThoseOfAFreshEvaluation) {
  const std::vector<Token> shared = {0, 1, 2};
  for (Token code = 0; code < kTargetSize * kTargetSize * kTargetSize; ++code) {
    const std::vector<Token> text = {code % kTargetSize, code / kTargetSize % kTargetSize,
                                     code / kTargetSize / kTargetSize};
    for (const Token first : shared) {
      const Token second = shared[static_cast<std::size_t>(code + first) % 3];
      for (NodeId kept = 0; kept <= 3; ++kept) {  // 0: not even the root
        ASSERT_TRUE(model_->truncate(0, 0).ok());
        TokenTree tree(text.back());
        tree.add(kRoot, first, 1.0f, 1);
        tree.add(1, second, 1.0f, 1);
        ASSERT_TRUE(evaluate(0, text, tree).ok());
        expect_rows(text, tree);
        const std::vector<NodeId> all = {0, 1, 2};
        const std::span<const NodeId> path(all.data(), static_cast<std::size_t>(kept));
        ASSERT_TRUE(model_->commit(0, path).ok());
        ASSERT_EQ(model_->check_integrity(), "");
        std::vector<Token> next(text.begin(), text.end() - 1);
        for (const NodeId node : path) next.push_back(tree.token(node));
        ASSERT_EQ(model_->length(0), static_cast<Pos>(next.size()));
        next.push_back(static_cast<Token>(code + kept) % kTargetSize);
        const TokenTree root(next.back());
        ASSERT_TRUE(evaluate(0, next, root).ok());
        expect_rows(next, root);
        ASSERT_TRUE(model_->commit(0, {}).ok());
      }
    }
  }
}

TEST_F(TranslatedModelTest, ATreeGrowsLevelByLevelBesideOtherSequences) {
  const std::vector<Token> text = {3, 5, 0};
  const std::vector<Token> other = {7, 7, 6};
  TokenTree tree(0);
  ASSERT_TRUE(evaluate(0, text, tree).ok());
  tree.add(kRoot, 2, 1.0f, 1);
  tree.add(kRoot, 0, 1.0f, 1);
  const TokenTree root(6);
  const EvalItem items[] = {
      {.seq = 1, .prefix = std::span<const Token>(other).first(2), .tree = &root},
      {.seq = 0, .prefix = {}, .tree = &tree, .first_new = 1}};
  ASSERT_TRUE(model_->evaluate(items).ok());
  expect_rows(other, root, 0, 0);
  expect_rows(text, tree, 1, 1);
  tree.add(1, 1, 1.0f, 1);
  const EvalItem more{.seq = 0, .prefix = {}, .tree = &tree, .first_new = 3};
  ASSERT_TRUE(model_->evaluate({&more, 1}).ok());
  expect_rows(text, tree, 3);
  const std::vector<NodeId> path = {0, 1, 3};
  ASSERT_TRUE(model_->commit(0, path).ok());
  EXPECT_EQ(model_->length(0), 5);
  const std::vector<NodeId> root_only = {0};
  ASSERT_TRUE(model_->commit(1, root_only).ok());
  EXPECT_EQ(model_->check_integrity(), "");
}

TEST_F(TranslatedModelTest, WhatIsNotATreeOfSharedTokensIsRefusedAndChangesNothing) {
  TokenTree tree(3);
  ASSERT_TRUE(evaluate(0, {3}, tree).ok());
  TokenTree grown = tree;
  grown.add(kRoot, 3, 1.0f, 1);  // "ba" is the target's alone
  EvalItem item{.seq = 0, .prefix = {}, .tree = &grown, .first_new = 1};
  EXPECT_EQ(model_->evaluate({&item, 1}).code(), StatusCode::kInvalidArgument);
  TokenTree another(2);
  another.add(kRoot, 0, 1.0f, 1);
  item.tree = &another;
  EXPECT_EQ(model_->evaluate({&item, 1}).code(), StatusCode::kInvalidArgument);
  TokenTree wide(3);
  for (int i = 0; i < 6; ++i) wide.add(wide.size() - 1, 0, 1.0f, 1);
  item.tree = &wide;
  EXPECT_EQ(model_->evaluate({&item, 1}).code(), StatusCode::kInvalidArgument);
  for (const Token bad : {-1, kTargetSize}) {
    const EvalItem prefix{.seq = 1, .prefix = {&bad, 1}, .tree = nullptr};
    EXPECT_EQ(model_->evaluate({&prefix, 1}).code(), StatusCode::kInvalidArgument);
  }
  tree.add(kRoot, 0, 1.0f, 1);
  item.tree = &tree;
  EXPECT_TRUE(model_->evaluate({&item, 1}).ok());
  expect_rows({3}, tree, 1);
}

TEST_F(TranslatedModelTest, LongTextsAreReadInBatches) {
  std::vector<Token> text;
  for (std::uint32_t i = 0; i < 60; ++i) {
    text.push_back(static_cast<Token>(noise_bits(noise_key(1, i), 0) % kTargetSize));
  }
  const TokenTree root(text.back());
  ASSERT_TRUE(evaluate(0, text, root).ok());  // FakeModel refuses more than n_batch
  expect_rows(text, root);
}

TEST_F(TranslatedModelTest, OnlyWhatIsNewOrCutOtherwiseIsReadAgain) {
  std::vector<Token> text;
  for (std::uint32_t i = 0; i < 60; ++i) {
    text.push_back(static_cast<Token>(noise_bits(noise_key(2, i), 0) % kControl));
  }
  const std::vector<NodeId> root_only = {0};
  for (std::size_t n = 30; n <= text.size(); ++n) {
    const std::int64_t before = fake_->tokens_evaluated();
    const std::vector<Token> begin(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n));
    const TokenTree root(begin.back());
    ASSERT_TRUE(evaluate(0, begin, root).ok());
    expect_rows(begin, root);
    ASSERT_TRUE(model_->commit(0, root_only).ok());
    if (n == 30) continue;
    // At most the three bytes of the new token, and the three that may join them in the longest
    // piece.
    EXPECT_LE(fake_->tokens_evaluated() - before, 6);
  }
}

TEST_F(TranslatedModelTest, RoomIsCountedInTheDraftsTokens) {
  open(capabilities(/*n_ctx=*/8));
  const std::vector<Token> fits = {6, 7, 6, 7};            // "aabbbaabbb": aabb b aabb b: 4 tokens
  const std::vector<Token> same(8, 0);                     // 8 of the draft's
  const std::vector<Token> too_long = {3, 3, 3, 3, 3, 3};  // "babababababa": b abab abab ab a: 5
  const std::vector<Token> longer(5, 4);  // "babbabbabbabbab": b abb abb abb abb ab
  EXPECT_TRUE(model_->has_room_for(0, fits));
  EXPECT_TRUE(model_->has_room_for(0, same));
  EXPECT_TRUE(model_->has_room_for(0, too_long));
  EXPECT_TRUE(model_->has_room_for(0, longer));
  std::vector<Token> nine(9, 0);
  EXPECT_FALSE(model_->has_room_for(0, nine));
  const std::vector<Token> pairs(9, 7);  // eighteen "b"
  EXPECT_FALSE(model_->has_room_for(0, pairs));
  const std::vector<Token> four_pairs(4, 7);  // eight "b"
  EXPECT_TRUE(model_->has_room_for(0, four_pairs));
}

TEST_F(TranslatedModelTest, ADraftModelThatCannotForgetIsRefused) {
  Capabilities caps = capabilities();
  caps.rollback = Rollback::kSaved;
  caps.rollback_reason = "recurrent layers";
  open(caps);
  const TokenTree root(0);
  const Status status = evaluate(0, {0}, root);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("recurrent layers"), std::string::npos) << status.message();
}

// A text that fits in the target's tokens but not in the draft's stops the drafting with a reason,
// for its sequence only.
TEST_F(TranslatedModelTest, ADrafterSaysWhenTheDraftsTokensDoNotFitItsContext) {
  open(capabilities(/*n_ctx=*/10));
  DraftModelDrafter drafter(*model_, kTargetSize, {});
  const std::vector<Token> texts[] = {std::vector<Token>(6, 7), {0, 1, 2}};  // twelve "b"; "abab"
  FakeSampler sampler(1.0f);
  std::vector<TokenTree> trees = {TokenTree(7), TokenTree(2)};
  std::vector<DraftRequest> requests;
  for (SeqId seq = 0; seq < 2; ++seq) {
    ASSERT_TRUE(drafter.begin(seq, 0).ok());
    const std::size_t i = static_cast<std::size_t>(seq);
    requests.push_back({.seq = seq,
                        .text = texts[i],
                        .seed = 5,
                        .sampler = &sampler,
                        .max_nodes = 3,
                        .mask = 1,
                        .tree = &trees[i]});
  }
  EXPECT_TRUE(drafter.draft(requests).ok());
  EXPECT_NE(drafter.limit_reason(0).find("a larger one"), std::string::npos);
  EXPECT_EQ(drafter.limit_reason(1), "");
  EXPECT_EQ(trees[0].drafted(), 0);
  EXPECT_EQ(trees[1].drafted(), 3);
  EXPECT_EQ(drafter.check_integrity(), "");
  EXPECT_EQ(model_->check_integrity(), "");
}

// What any caller may do, with failures of every call in between: the text is what was committed,
// and every row is that of a fresh evaluation.
TEST_F(TranslatedModelTest, RandomOperationsAndFaultsLeaveTheTextAsItWasCommitted) {
  const std::uint64_t seed = testing::test_seed(11);
  std::atomic<bool> interrupted{false};
  model_->set_interrupt(&interrupted);
  std::vector<Token> texts[2];
  for (std::uint32_t step = 0; step < 20000; ++step) {
    const NoiseKey key = noise_key(seed, step);
    const SeqId seq = static_cast<SeqId>(noise_bits(key, 0) % 2);
    std::vector<Token>& text = texts[seq];
    if (noise_bits(key, 1) % 8 == 0 || text.size() > 60) {  // another text
      const std::size_t keep = text.empty() ? 0 : noise_bits(key, 2) % text.size();
      ASSERT_TRUE(model_->truncate(seq, static_cast<Pos>(keep)).ok());
      text.resize(keep);
    }
    if (noise_bits(key, 24) % 8 == 0) {  // the other one's beginning
      const std::vector<Token>& other = texts[1 - seq];
      const std::size_t keep = noise_bits(key, 25) % (other.size() + 1);
      const bool fails = noise_bits(key, 26) % 4 == 0;
      if (fails) fake_->fail_share({internal_error("on purpose")});
      if (noise_bits(key, 26) % 4 == 1) draft_.fail(true);
      const Status shared = model_->share(1 - seq, seq, static_cast<Pos>(keep));
      draft_.fail(false);
      ASSERT_EQ(shared.ok(), !fails);
      ASSERT_EQ(model_->check_integrity(), "") << "step " << step;
      text.assign(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(fails ? 0 : keep));
      ASSERT_EQ(model_->length(seq), static_cast<Pos>(text.size()));
    }
    std::vector<Token> whole = text;
    for (std::uint32_t i = 0; i <= noise_bits(key, 3) % 5; ++i) {
      whole.push_back(static_cast<Token>(noise_bits(key, 4 + i) % kTargetSize));
    }
    const std::uint32_t fault = noise_bits(key, 20) % 8;
    if (fault == 0) fake_->fail_evaluate({internal_error("on purpose")});
    if (fault == 1) fake_->fail_evaluate({Status(), internal_error("on purpose")});
    if (fault == 2) interrupted = true;
    if (fault == 3) draft_.fail(true);
    TokenTree tree(whole.back());
    tree.add(kRoot, static_cast<Token>(noise_bits(key, 21) % 3), 1.0f, 1);
    const Status evaluated = evaluate(seq, whole, tree);
    fake_->fail_evaluate({});
    interrupted = false;
    draft_.fail(false);
    ASSERT_EQ(model_->check_integrity(), "") << "step " << step;
    ASSERT_EQ(model_->length(seq), static_cast<Pos>(text.size())) << "step " << step;
    if (!evaluated.ok()) continue;
    expect_rows(whole, tree);
    TokenTree grown = tree;
    grown.add(1, static_cast<Token>(noise_bits(key, 22) % 3), 1.0f, 1);
    const EvalItem item{.seq = seq, .prefix = {}, .tree = &grown, .first_new = 2};
    if (fault == 4) fake_->fail_evaluate({internal_error("on purpose")});
    const bool grew = model_->evaluate({&item, 1}).ok();
    ASSERT_EQ(grew, fault != 4);
    if (grew) expect_rows(whole, grown, 2);
    if (HasFatalFailure()) FAIL() << "step " << step;
    const std::vector<NodeId> all = {0, 1, 2};
    const std::size_t n = noise_bits(key, 23) % (grew ? 4 : 3);
    if (fault == 5) fake_->fail_commit({internal_error("on purpose")});
    const Status committed = model_->commit(seq, std::span<const NodeId>(all).first(n));
    ASSERT_EQ(committed.ok(), fault != 5);
    ASSERT_EQ(model_->check_integrity(), "") << "step " << step;
    if (committed.ok()) {
      text.assign(whole.begin(), whole.end() - 1);
      for (std::size_t i = 0; i < n; ++i) text.push_back(grown.token(all[i]));
    }
    ASSERT_EQ(model_->length(seq), static_cast<Pos>(text.size())) << "step " << step;
  }
}

}  // namespace
}  // namespace outrider
