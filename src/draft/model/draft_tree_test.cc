// The draft model's trees, on the hand-written model.
#include <gtest/gtest.h>

#include <algorithm>

#include "draft/model/draft_choice.h"
#include "draft/model/draft_model.h"
#include "testing/chi_square.h"
#include "testing/fake_model.h"

namespace outrider {
namespace {

using testing::FakeModel;
using testing::FakeSampler;

constexpr std::int32_t kVocab = 10;
constexpr std::uint64_t kSeed = 5;

Capabilities capabilities(std::int32_t max_leaves = 8) {
  return {.n_vocab = kVocab,
          .n_ctx = 200,
          .n_batch = 32,
          .n_sequences = 2,
          .rollback = Rollback::kAny,
          .max_leaves = max_leaves,
          .max_width = 64};
}

struct Drafted {
  TokenTree tree{0};
  Draws draws;
};

Drafted draft(DraftModelDrafter& drafter, const std::vector<Token>& text, const DraftShape& shape,
              std::int32_t max_nodes, bool draws, SeqId seq = 0) {
  Drafted result{.tree = TokenTree(text.back()), .draws = {}};
  FakeSampler sampler(1.0f);
  DraftRequest request[] = {{.seq = seq,
                             .text = text,
                             .seed = kSeed,
                             .sampler = &sampler,
                             .max_nodes = max_nodes,
                             .shape = shape,
                             .draws = draws ? &result.draws : nullptr,
                             .mask = 1,
                             .tree = &result.tree}};
  const Status status = drafter.draft(request);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(result.tree.check_integrity(), "");
  EXPECT_EQ(drafter.check_integrity(), "");
  return result;
}

std::vector<Token> text_at(const std::vector<Token>& text, const TokenTree& tree, NodeId node) {
  std::vector<Token> path = text;
  for (const NodeId id : tree.path_to(node)) {
    if (id != kRoot) path.push_back(tree.token(id));
  }
  return path;
}

TEST(DraftTree, EveryChildIsOneThatTheModelWouldChooseOnItsOwnPath) {
  const DraftShape shape{.branches = 5, .split_p = 0.05f};
  const std::vector<Token> text = {1, 2, 3};
  std::size_t branched = 0;
  for (std::uint64_t world = 0; world < 40; ++world) {
    const testing::RowFunction rows = testing::random_rows(kVocab, world, 1.5f);
    FakeModel model(capabilities(), rows);
    DraftModelDrafter drafter(model, kVocab, {});
    ASSERT_TRUE(drafter.begin(0, 0).ok());
    const TokenTree tree = draft(drafter, text, shape, 12, /*draws=*/false).tree;
    branched += tree.leaves().size() > 1 ? 1 : 0;
    ASSERT_LE(tree.leaves().size(), 5U);
    for (NodeId node = 0; node < tree.size(); ++node) {
      const std::vector<float> row = rows(text_at(text, tree, node));
      const DraftChoice choice = choose_draft(row, {.logits = row},
                                              {.shape = shape,
                                               .max_children = 5,
                                               .seed = kSeed,
                                               .root_position = text.size() - 1,
                                               .depth = tree.node(node).depth});
      std::vector<Token> children;
      for (NodeId child = node + 1; child < tree.size(); ++child) {
        if (tree.node(child).parent == node) children.push_back(tree.token(child));
      }
      ASSERT_LE(children.size(), choice.tokens.size());
      ASSERT_TRUE(std::equal(children.begin(), children.end(), choice.tokens.begin()));
    }
  }
  EXPECT_GT(branched, 20U);
}

TEST(DraftTree, AfterAnyAcceptedPathTheNextDraftCostsNoExtraPassAndIsThatOfAFreshModel) {
  const DraftShape shape{.branches = 4, .split_p = 0.05f};
  const std::vector<Token> text = {1, 2, 3};
  for (std::uint64_t world = 0; world < 10; ++world) {
    const testing::RowFunction rows = testing::random_rows(kVocab, world, 1.5f, 50);
    std::int32_t n_nodes = 1;
    for (NodeId accepted = 0; accepted < n_nodes; ++accepted) {
      FakeModel model(capabilities(), rows);
      DraftModelDrafter drafter(model, kVocab, {}, /*learns=*/false);
      ASSERT_TRUE(drafter.begin(0, 0).ok());
      const TokenTree tree = draft(drafter, text, shape, 8, /*draws=*/false).tree;
      n_nodes = tree.size();
      std::vector<Token> longer = text_at(text, tree, accepted);
      Token other = 0;  // one that is no child
      while (tree.child(accepted, other) != kNoNode) ++other;
      longer.push_back(other);
      drafter.accept(0, longer);
      const std::int64_t passes = model.evaluations();
      const TokenTree next = draft(drafter, longer, shape, 8, /*draws=*/false).tree;
      FakeModel fresh(capabilities(), rows);
      DraftModelDrafter other_drafter(fresh, kVocab, {}, /*learns=*/false);
      ASSERT_TRUE(other_drafter.begin(0, 0).ok());
      const TokenTree want = draft(other_drafter, longer, shape, 8, /*draws=*/false).tree;
      ASSERT_EQ(next.size(), want.size());
      for (NodeId id = 0; id < want.size(); ++id) {
        ASSERT_EQ(next.token(id), want.token(id));
        ASSERT_EQ(next.node(id).parent, want.node(id).parent);
      }
      ASSERT_EQ(model.evaluations() - passes, fresh.evaluations());
    }
  }
}

TEST(DraftTree, AModelThatTakesChainsOnlyStillProposesBranchesAtTheTip) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 3, 0.5f);
  FakeModel model(capabilities(/*max_leaves=*/1), rows);
  DraftModelDrafter drafter(model, kVocab, {});
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  const TokenTree tree =
      draft(drafter, {1}, {.branches = 4, .split_p = 0.01f}, 6, /*draws=*/false).tree;
  EXPECT_GT(tree.leaves().size(), 1U);
}

TEST(DraftTree, DrawsAreNotedForEveryNodeThatHasChildren) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 4, 1.0f);
  FakeModel model(capabilities(), rows);
  DraftModelDrafter drafter(model, kVocab, {});
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  const Drafted d = draft(drafter, {1, 2}, {.branches = 4, .split_p = 0.05f}, 10, /*draws=*/true);
  for (NodeId node = 0; node < d.tree.size(); ++node) {
    std::vector<Token> children;
    for (NodeId child = node + 1; child < d.tree.size(); ++child) {
      if (d.tree.node(child).parent == node) children.push_back(d.tree.token(child));
    }
    const Draw* draw = d.draws.find(d.tree.node(node).draw);
    ASSERT_EQ(draw != nullptr, !children.empty());
    if (draw == nullptr) continue;
    EXPECT_EQ(draw->tokens, children);
    const std::vector<float> row = rows(text_at({1, 2}, d.tree, node));
    const std::vector<double> p = probabilities({.logits = row});
    for (Token t = 0; t < kVocab; ++t) {
      EXPECT_NEAR(draw->p.at(t), p[static_cast<std::size_t>(t)], 1e-12);
    }
  }
}

TEST(DraftTree, AnotherDraftersNodesAreSharedAndKept) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 6, 2.0f);
  FakeModel model(capabilities(), rows);
  DraftModelDrafter drafter(model, kVocab, {});
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  const TokenTree alone = draft(drafter, {1}, {}, 3, false).tree;
  ASSERT_TRUE(drafter.begin(0, 0).ok());
  const std::vector<Token> text = {1};
  TokenTree tree(1);
  const NodeId same = tree.add(kRoot, alone.token(1), 0.1f, 2);
  tree.add(kRoot, (alone.token(1) + 1) % kVocab, 0.1f, 2);
  FakeSampler sampler(1.0f);
  DraftRequest request[] = {{.seq = 0,
                             .text = text,
                             .seed = kSeed,
                             .sampler = &sampler,
                             .max_nodes = 3,
                             .mask = 1,
                             .tree = &tree}};
  ASSERT_TRUE(drafter.draft(request).ok());
  EXPECT_EQ(tree.size(), 5);
  EXPECT_EQ(tree.node(same).proposed_by, 3U);
  EXPECT_NE(tree.child(same, alone.token(2)), kNoNode);
}

TEST(DraftTree, AFailureInAnyPassLeavesTheStateInStep) {
  const testing::RowFunction rows = testing::random_rows(kVocab, 7, 1.0f);
  const DraftShape shape{.branches = 4, .split_p = 0.05f};
  for (int pass = 0; pass < 4; ++pass) {
    FakeModel model(capabilities(), rows);
    DraftModelDrafter drafter(model, kVocab, {});
    ASSERT_TRUE(drafter.begin(0, 0).ok());
    std::vector<Status> statuses(static_cast<std::size_t>(pass));
    statuses.push_back(internal_error("broken"));
    model.fail_evaluate(statuses);
    const std::vector<Token> text = {1, 2};
    TokenTree tree(2);
    FakeSampler sampler(1.0f);
    DraftRequest request[] = {{.seq = 0,
                               .text = text,
                               .seed = kSeed,
                               .sampler = &sampler,
                               .max_nodes = 8,
                               .shape = shape,
                               .mask = 1,
                               .tree = &tree}};
    EXPECT_EQ(drafter.draft(request).message(), "broken");
    EXPECT_EQ(drafter.check_integrity(), "");
    const TokenTree again = draft(drafter, text, shape, 8, false).tree;
    EXPECT_GT(again.size(), 4);
  }
}

}  // namespace
}  // namespace outrider
