// Trees in one cache: whatever their shape, however they grow, whichever branch is kept, with
// several sequences coming and going, every node's row is, bit for bit, the one of single steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "llama.h"
#include "llama/model/llama_model.h"
#include "testing/llama_fixture.h"
#include "testing/llama_trees.h"

namespace outrider::llama {
namespace {

using testing::random_shape;
using testing::tree_shapes;
using testing::TreeShape;
using testing::TreeWorld;

class LlamaTreeTest : public testing::TinyModelTest {
 protected:
  // Six layers: with the two of the other tests only one row of a thousand shows cells out of
  // order.
  void SetUp() override { load({.n_layer = 6, .n_head = 4, .n_head_kv = 2}); }

  std::unique_ptr<TreeWorld> world(const ModelOptions& options, const ContextSettings& settings,
                                   unsigned seed) {
    model_ = make(options, settings);
    std::vector<std::unique_ptr<LlamaModel>> singles;
    for (std::int32_t i = 0; i < options.n_sequences; ++i) {
      singles.push_back(make({.n_ctx = options.n_ctx}, {.max_width = 1}));
    }
    return std::make_unique<TreeWorld>(
        *model_, std::move(singles),
        TreeWorld::Settings{.seed = seed, .n_tokens = file().facts().n_vocab - 10});
  }

  // Three sequences that take part now and then, end now and then, with prompts now and then.
  void come_and_go(TreeWorld& w, int n_steps, int max_nodes, int max_pieces) {
    for (int step = 0; step < n_steps && !HasFatalFailure(); ++step) {
      std::vector<TreeWorld::Item> items;
      for (SeqId seq = 0; seq < model_->capabilities().n_sequences; ++seq) {
        const int most = std::min(max_nodes, model_->room(seq));
        if (most < 1 || w.below(4) == 0) continue;
        const int n = 1 + w.below(most);
        const int n_prefix = w.below(6) == 0 ? w.below(std::min(30, model_->room(seq) - n) + 1) : 0;
        items.push_back({.seq = seq,
                         .shape = random_shape(w.random(), n, model_->capabilities().max_leaves),
                         .n_prefix = n_prefix,
                         .n_pieces = 1 + w.below(max_pieces)});
      }
      if (!items.empty()) w.step(items);
      for (SeqId seq = 0; seq < model_->capabilities().n_sequences; ++seq) {
        if (model_->room(seq) > max_nodes && w.below(25) != 0) continue;
        w.cut(seq, w.below(2) == 0 ? 0 : w.below(w.length(seq) + 1));
      }
    }
  }

  std::unique_ptr<LlamaModel> model_;
};

void expect_exact(const TreeWorld::Outcome& outcome, int at_least) {
  EXPECT_GE(outcome.rows, at_least);
  EXPECT_EQ(outcome.identical, outcome.rows) << outcome.first_difference;
}

TEST_F(LlamaTreeTest, EveryShapeUpToFourNodesAndEveryBranchKeptGivesTheBitsOfSingleSteps) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("OUTRIDER_TEST_SEED=" + std::to_string(seed));
  const std::unique_ptr<TreeWorld> w = world({.n_ctx = 1400}, {}, seed);
  int n_cases = 0;
  while (w->length(0) < 1000 && !HasFatalFailure()) {
    for (int n = 1; n <= 4; ++n) {
      for (const TreeShape& shape : tree_shapes(n)) {
        for (NodeId end = kNoNode; end < n && w->length(0) < 1300; ++end) {
          w->step({{.seq = 0, .shape = shape, .end = end}});
          ++n_cases;
        }
      }
    }
  }
  EXPECT_GE(n_cases, 43) << "each shape, each end";
  expect_exact(w->outcome(), 1500);
  EXPECT_GT(w->outcome().most_parked, 0) << "side branches were kept";
}

TEST_F(LlamaTreeTest, RandomShapesUpTo64NodesGiveTheBitsOfSingleSteps) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("OUTRIDER_TEST_SEED=" + std::to_string(seed));
  const std::unique_ptr<TreeWorld> w = world({.n_ctx = 600}, {}, seed);
  ASSERT_EQ(model_->capabilities().max_leaves, 63);
  while (w->length(0) < 500 && !HasFatalFailure()) {
    const int n = 1 + w->below(64);
    w->step({{.seq = 0, .shape = random_shape(w->random(), n, 63)}});
  }
  expect_exact(w->outcome(), 1000);
  EXPECT_GT(w->outcome().most_leaves, 20);
  EXPECT_GT(model_->compactions(), 0) << "the cache was rebuilt on the way";
}

TEST_F(LlamaTreeTest, ThreeSequencesComingAndGoingWithTreesThatGrowGiveTheBitsOfSingleSteps) {
  int longest = 0;
  for (unsigned n = 0; n < 3; ++n) {
    const unsigned seed = test_seed() + n;
    SCOPED_TRACE("OUTRIDER_TEST_SEED=" + std::to_string(seed));
    const std::unique_ptr<TreeWorld> w =
        world({.n_ctx = 330, .n_sequences = 3}, {.max_width = 12}, seed);
    come_and_go(*w, /*n_steps=*/150, /*max_nodes=*/12, /*max_pieces=*/4);
    expect_exact(w->outcome(), 1000);
    EXPECT_GT(w->outcome().grown, 50);
    EXPECT_GT(w->outcome().most_parked, 0);
    longest = std::max(longest, w->outcome().longest);
  }
  EXPECT_GT(longest, 256) << "past a block of cells";
}

TEST_F(LlamaTreeTest, AGrownTreeGivesTheRowsOfAWholeOne) {
  const unsigned seed = test_seed() + 7;
  SCOPED_TRACE("OUTRIDER_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<Token> text = random_text(80, seed);
  for (int n = 0; n < 60; ++n) {
    const int size = 2 + static_cast<int>(random() % 20);
    TokenTree whole(text[20]);
    TokenTree grown(text[20]);
    const std::unique_ptr<LlamaModel> a = make({.n_ctx = 128});
    const std::unique_ptr<LlamaModel> b = make({.n_ctx = 128});
    const std::vector<Token> prefix(text.begin(), text.begin() + 20);
    const TreeShape shape = random_shape(random, size, 16);
    for (NodeId id = 1; id < size; ++id) {
      whole.add(shape[static_cast<std::size_t>(id)], 50 + id, 1, 1);
    }
    ASSERT_EQ(whole.size(), size);
    const EvalItem item{.seq = 0, .prefix = prefix, .tree = &whole};
    ASSERT_TRUE(a->evaluate({&item, 1}).ok());
    for (NodeId from = 0; from < size;) {
      const NodeId to = std::min(size, from + 1 + static_cast<NodeId>(random() % 5));
      for (NodeId id = std::max(1, from); id < to; ++id) {
        grown.add(whole.node(id).parent, whole.token(id), 1, 1);
      }
      EvalItem piece{.seq = 0, .prefix = {}, .tree = &grown, .first_new = from};
      if (from == 0) piece.prefix = prefix;
      ASSERT_TRUE(b->evaluate({&piece, 1}).ok());
      for (NodeId id = from; id < to; ++id) {
        const std::span<const float> wanted = a->logits(0, id);
        const std::span<const float> got = b->logits(0, id);
        ASSERT_EQ(std::memcmp(got.data(), wanted.data(), wanted.size_bytes()), 0)
            << "node " << id << " of " << size;
      }
      from = to;
    }
  }
}

// The negative control: the same scripts with cells given back at once, in any order.
TEST_F(LlamaTreeTest, FreeingCellsOutOfOrderChangesBits) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("OUTRIDER_TEST_SEED=" + std::to_string(seed));
  const std::unique_ptr<TreeWorld> alone = world({.n_ctx = 700}, {.keep_cell_order = false}, seed);
  while (alone->length(0) < 500 && !HasFatalFailure()) {
    const int n = 1 + alone->below(12);
    alone->step({{.seq = 0, .shape = random_shape(alone->random(), n, 8)}});
  }
  EXPECT_LT(alone->outcome().identical, alone->outcome().rows * 3 / 4) << "measured: 0.30";

  const std::unique_ptr<TreeWorld> three =
      world({.n_ctx = 330, .n_sequences = 3}, {.max_width = 12, .keep_cell_order = false}, seed);
  come_and_go(*three, /*n_steps=*/150, /*max_nodes=*/12, /*max_pieces=*/1);
  EXPECT_LT(three->outcome().identical, three->outcome().rows * 3 / 4) << "measured: 0.41";
}

void expect_says(const Status& status, StatusCode code, const std::string& words) {
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

TokenTree star(std::int32_t n_leaves) {
  TokenTree tree(5);
  for (std::int32_t i = 0; i < n_leaves; ++i) tree.add(kRoot, 6 + i, 1.0f, 1);
  return tree;
}

TEST_F(LlamaTreeTest, TheLeavesAreDividedAmongTheSequences) {
  for (const std::pair<std::int32_t, std::int32_t>& wanted :
       {std::pair(1, 64), std::pair(4, 63), std::pair(8, 31), std::pair(64, 3)}) {
    const std::unique_ptr<LlamaModel> model =
        make({.n_ctx = 80, .n_sequences = wanted.first}, {.max_width = 80});
    const std::int32_t leaves = model->capabilities().max_leaves;
    EXPECT_EQ(leaves, wanted.second) << wanted.first << " sequences";
    for (SeqId seq = 0; seq < wanted.first; seq += std::max(1, wanted.first - 1)) {
      const TokenTree most = star(leaves);
      const EvalItem item{.seq = seq, .prefix = {}, .tree = &most};
      ASSERT_TRUE(model->evaluate({&item, 1}).ok());
      EXPECT_EQ(model->check_integrity(), "");
      const std::vector<NodeId> path{kRoot, leaves};
      ASSERT_TRUE(model->commit(seq, path).ok());
      EXPECT_EQ(model->check_integrity(), "");
      const TokenTree more = star(leaves + 1);
      const EvalItem refused{.seq = seq, .prefix = {}, .tree = &more};
      expect_says(model->evaluate({&refused, 1}), StatusCode::kInvalidArgument, "leaves");
      EXPECT_EQ(model->length(seq), 2);
      EXPECT_EQ(model->check_integrity(), "");
    }
  }
}

// A tentative tree, one of another sequence, and evaluations that fail in every way: the trees must
// then go on as if nothing had been tried.
TEST_F(LlamaTreeTest, AFailedGrowthLeavesTheTentativeTreeAsItWas) {
  const std::unique_ptr<LlamaModel> model =
      make({.n_ctx = 60, .n_sequences = 2, .n_batch = 64}, {.max_width = 40, .n_cells = 256});
  const std::vector<Token> text = random_text(60, 5);
  testing::prefill(*model, 1, std::span(text).first(30));
  TokenTree tree = star(3);
  const EvalItem first{.seq = 0, .prefix = std::span(text).first(20), .tree = &tree};
  ASSERT_TRUE(model->evaluate({&first, 1}).ok());
  ASSERT_EQ(model->room(0), 60 - 24);

  const auto fails = [&](const TokenTree& grown, NodeId first_new, StatusCode code,
                         const std::string& words) {
    const TokenTree other = star(2);
    const std::vector<EvalItem> items{
        {.seq = 1, .prefix = {}, .tree = &other},
        {.seq = 0, .prefix = {}, .tree = &grown, .first_new = first_new}};
    expect_says(model->evaluate(items), code, words);
    EXPECT_EQ(model->check_integrity(), "");
    EXPECT_EQ(model->length(0), 0);
    EXPECT_EQ(model->length(1), 30);
    EXPECT_EQ(model->room(0), 60 - 24) << "the tree is still tentative";
  };
  TokenTree grown = tree;
  grown.add(1, 50, 1.0f, 1);
  grown.add(1, 51, 1.0f, 1);
  fails(tree, 4, StatusCode::kInvalidArgument, "tentative");
  fails(grown, 3, StatusCode::kInvalidArgument, "tentative");
  TokenTree foreign = grown;
  foreign.add(2, file().facts().n_vocab, 1.0f, 1);
  fails(foreign, 4, StatusCode::kInvalidArgument, "vocabulary");
  TokenTree wide = grown;
  while (wide.size() <= 40) wide.add(wide.size() - 1, 60, 1.0f, 1);
  fails(wide, 4, StatusCode::kInvalidArgument, "width");
  std::atomic<bool> flag{true};
  model->set_interrupt(&flag);
  fails(grown, 4, StatusCode::kCancelled, "interrupted");
  flag = false;

  // Inside llama.cpp: a token behind everybody's back makes it refuse the other sequence's.
  testing::decode_behind(*model, /*id=*/1, /*from=*/30, /*n=*/1);
  fails(grown, 4, StatusCode::kInternal, "inconsistent sequence positions");

  const EvalItem item{.seq = 0, .prefix = {}, .tree = &grown, .first_new = 4};
  ASSERT_TRUE(model->evaluate({&item, 1}).ok());
  const std::span<const float> row = model->logits(0, 5);
  std::vector<Token> path(text.begin(), text.begin() + 20);
  path.insert(path.end(), {5, 6, 51});
  testing::expect_bits({row.begin(), row.end()}, fresh_rows(path).back());
  const std::vector<NodeId> kept{0, 1, 5};
  ASSERT_TRUE(model->commit(0, kept).ok());
  EXPECT_EQ(model->check_integrity(), "");
  EXPECT_EQ(model->length(0), 23);
}

TEST_F(LlamaTreeTest, WhatIsTentativeCanBeForgottenAsAWhole) {
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 100, .n_sequences = 2});
  const std::vector<Token> text = random_text(60, 6);
  testing::prefill(*model, 0, std::span(text).first(10));
  testing::prefill(*model, 1, std::span(text).first(12));
  for (const SeqId seq : {0, 1}) {
    const TokenTree tree = star(4);
    const EvalItem item{.seq = seq, .prefix = std::span(text).subspan(20, 5), .tree = &tree};
    ASSERT_TRUE(model->evaluate({&item, 1}).ok());
    ASSERT_TRUE(model->truncate(seq, 0).ok());
    EXPECT_EQ(model->length(seq), 0);
    EXPECT_EQ(model->check_integrity(), "");
    testing::expect_bits(testing::step(*model, seq, 9), fresh_rows(std::vector<Token>{9}).back());
  }
}

TEST_F(LlamaTreeTest, ABranchThatIsNoPathIsRefusedAndTheSequenceIsAsBefore) {
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 64, .n_sequences = 2});
  const std::vector<Token> text = random_text(30, 8);
  testing::prefill(*model, 0, std::span(text).first(9));
  TokenTree tree = star(2);
  tree.add(1, 30, 1.0f, 1);
  for (const std::vector<NodeId>& bad :
       {std::vector<NodeId>{0, 2, 3}, std::vector<NodeId>{0, 1, 2}, std::vector<NodeId>{1},
        std::vector<NodeId>{0, 1, 3, 4}, std::vector<NodeId>{0, -1}}) {
    const EvalItem item{.seq = 0, .prefix = std::span(text).subspan(9, 3), .tree = &tree};
    ASSERT_TRUE(model->evaluate({&item, 1}).ok());
    EXPECT_EQ(model->commit(0, bad).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(model->length(0), 9);
    EXPECT_EQ(model->check_integrity(), "");
  }
  testing::expect_bits(testing::step(*model, 0, text[9]),
                       fresh_rows(std::span(text).first(10)).back());
}

TEST_F(LlamaTreeTest, ATreeThatDoesNotFitIntoTheCacheIsRefusedAndChangesNothing) {
  const std::unique_ptr<LlamaModel> model =
      make({.n_ctx = 250, .n_sequences = 2, .n_batch = 256}, {.n_cells = 256});
  const std::vector<Token> text = random_text(250, 9);
  testing::prefill(*model, 0, std::span(text).first(240));
  const TokenTree tree = star(16);
  const EvalItem item{.seq = 1, .prefix = {}, .tree = &tree};
  expect_says(model->evaluate({&item, 1}), StatusCode::kResourceExhausted, "room for 16");
  EXPECT_EQ(model->check_integrity(), "");
  const TokenTree fits = star(15);
  const EvalItem smaller{.seq = 1, .prefix = {}, .tree = &fits};
  ASSERT_TRUE(model->evaluate({&smaller, 1}).ok());
  EXPECT_EQ(model->room(0), 0);
  const std::vector<NodeId> path{0, 15};
  ASSERT_TRUE(model->commit(1, path).ok());
  EXPECT_EQ(model->room(0), 10) << "the rejected ones can be won back";
}

TEST_F(LlamaTreeTest, ChainsUseNoIdButTheirSequences) {
  const std::unique_ptr<LlamaModel> model = make({.n_ctx = 128, .n_sequences = 2});
  const std::vector<Token> text = random_text(40, 3);
  testing::prefill(*model, 1, std::span(text).first(20));
  const TokenTree tree = testing::chain(std::span(text).subspan(20, 6));
  const EvalItem item{.seq = 1, .prefix = {}, .tree = &tree};
  ASSERT_TRUE(model->evaluate({&item, 1}).ok());
  for (llama_seq_id id = 0; id < 256; ++id) {
    EXPECT_EQ(llama_memory_seq_pos_max(llama_get_memory(model->handle()), id), id == 1 ? 25 : -1);
  }
  ASSERT_TRUE(model->commit(1, testing::path(2)).ok());
}

}  // namespace
}  // namespace outrider::llama
