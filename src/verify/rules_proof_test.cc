// The rules, proved in small worlds: everything that can happen is gone through with its
// probability, in the very code that runs, and what comes out is the target's own distribution, to
// 1e-12. Each world has its own distributions behind every text; in some tokens are impossible, in
// some the draft often is the target.
//
// What is gone through, for trees up to 3 deep (rejection; block has chains only, all of them):
//   vocabulary 2   all 183 shapes, drawn, one-hot and mixed
//   vocabulary 3   of 621,436 shapes: all with up to 6 nodes, all 85 at most 2 deep, and 60 random
//                  ones 3 deep that can be drawn in at most 2,000 ways (5,000 mixed; 200, one-hot)
//   vocabulary 4   of about 4e11: all with up to 5 nodes; of those at most 2 deep all 781 (one-hot)
//                  or all that can be drawn in at most 2,000 ways (5,000 mixed); and random ones
//                  3 deep, 60 (100, one-hot)
// The random shapes' seed is printed. A shape's outcomes are always all of them: about 2.5 million.
// For trees that are drawn once instead, the rule's decisions are compared with the reference's on
// random shapes of any size (84 nodes at most).
#include <gtest/gtest.h>

#include <cmath>

#include "testing/chi_square.h"
#include "testing/enumerated_chance.h"
#include "testing/small_world.h"
#include "verify/block.h"
#include "verify/rejection.h"

namespace outrider {
namespace {

using testing::Proposals;
using testing::Shape;
using testing::SmallWorld;
using testing::Text;
using testing::Texts;
using testing::WorldTarget;

constexpr double kExact = 1e-12;

using Rule = Result<Walk> (*)(const TokenTree&, Pos, const Draws&, Chance&, TargetDistributions&);

// What one step says, over the draft's draws and the rule's, and how many drafted tokens stay.
struct Outcome {
  Texts said;
  double accepted = 0.0;  // expected
  double total = 0.0;     // of all weights
  std::size_t outcomes = 0;
};

Outcome enumerate(const SmallWorld& world, const Shape& shape, Proposals proposals, Rule rule) {
  Outcome outcome;
  outcome.outcomes = testing::for_every_outcome([&](testing::EnumeratedChance& chance) {
    Draws draws;
    const TokenTree tree = testing::fill_shape(world, shape, proposals, chance, draws);
    WorldTarget target(world, tree);
    const Result<Walk> walk = rule(tree, 0, draws, chance, target);
    ASSERT_TRUE(walk.ok()) << walk.status().message();
    ASSERT_EQ(walk->emitted, target.decided);
    ASSERT_EQ(walk->emitted.size(), walk->accepted() + 1);
    for (std::size_t i = 1; i < walk->path.size(); ++i) {
      ASSERT_EQ(tree.node(walk->path[i]).parent, walk->path[i - 1]);
      ASSERT_EQ(tree.token(walk->path[i]), walk->emitted[i - 1]);
    }
    outcome.said[walk->emitted] += chance.weight();
    outcome.accepted += chance.weight() * static_cast<double>(walk->accepted());
    outcome.total += chance.weight();
  });
  return outcome;
}

// The distribution of the text equals the target's on every shape, in every world.
void expect_lossless(Rule rule, Proposals proposals, std::int32_t n_vocab,
                     const std::vector<Shape>& shapes, std::uint64_t worlds) {
  const std::uint64_t seed = testing::test_seed(20261121);
  std::size_t outcomes = 0;
  for (const Shape& shape : shapes) {
    for (std::uint64_t w = 0; w < worlds; ++w) {
      const SmallWorld world({.n_vocab = n_vocab,
                              .seed = seed + w,
                              .zeros = w % 3 == 0 ? 0.0 : 0.3,
                              .likeness = w % 4 == 3 ? 0.7 : 0.0});
      const std::size_t length = testing::depth_of(shape) + 1;
      const Outcome outcome = enumerate(world, shape, proposals, rule);
      ASSERT_NEAR(outcome.total, 1.0, kExact);
      ASSERT_LE(
          testing::distance(testing::continued(world, outcome.said, length), world.plain(length)),
          kExact)
          << "world " << w << ", " << shape.size() << " drafted nodes, vocabulary " << n_vocab;
      outcomes += outcome.outcomes;
    }
  }
  std::printf("[          ] %zu shapes, %zu outcomes\n", shapes.size(), outcomes);
}

std::vector<Shape> chains(int longest) { return testing::all_shapes(longest, longest, 1); }

// Vocabulary 2: all 183 shapes of depth up to 3. Over 3 and 4 tokens there are 621,436 and about
// 4e11 of them, so: all small ones, all flat ones, and random ones 3 deep.
std::vector<Shape> every_shape_over_two() {
  std::vector<Shape> shapes = testing::all_shapes(14, 3, 2);
  EXPECT_EQ(shapes.size(), 183u);
  return shapes;
}

// All shapes at most 2 deep that can be drawn in at most `max_ways` ways.
std::vector<Shape> flat_shapes(std::int32_t n_vocab, double max_ways) {
  std::vector<Shape> shapes = testing::all_shapes(n_vocab * (n_vocab + 1), 2, n_vocab);
  std::erase_if(
      shapes, [&](const Shape& shape) { return testing::ways_to_draw(shape, n_vocab) > max_ways; });
  return shapes;
}

std::vector<Shape> deep_shapes(std::size_t n, std::int32_t n_vocab, double max_ways) {
  return testing::random_shapes(n, 3, n_vocab, max_ways, testing::test_seed(31));
}

TEST(RejectionProof, TextsFollowTheTargetOnEveryDrawnTreeOverTwoTokens) {
  expect_lossless(verify_rejection, Proposals::kDrawn, 2, every_shape_over_two(), 8);
}

TEST(RejectionProof, TextsFollowTheTargetOnDrawnTreesOverThreeTokens) {
  expect_lossless(verify_rejection, Proposals::kDrawn, 3, testing::all_shapes(6, 3, 3), 4);
  const std::vector<Shape> flat = flat_shapes(3, 1e9);
  EXPECT_EQ(flat.size(), 85u) << "all of them";
  expect_lossless(verify_rejection, Proposals::kDrawn, 3, flat, 2);
  expect_lossless(verify_rejection, Proposals::kDrawn, 3, deep_shapes(60, 3, 2000), 2);
}

TEST(RejectionProof, TextsFollowTheTargetOnDrawnTreesOverFourTokens) {
  expect_lossless(verify_rejection, Proposals::kDrawn, 4, testing::all_shapes(5, 3, 4), 4);
  expect_lossless(verify_rejection, Proposals::kDrawn, 4, flat_shapes(4, 2000), 2);
  expect_lossless(verify_rejection, Proposals::kDrawn, 4, deep_shapes(60, 4, 2000), 2);
}

TEST(RejectionProof, TextsFollowTheTargetForOneHotProposals) {
  expect_lossless(verify_rejection, Proposals::kOneHot, 2, every_shape_over_two(), 10);
  expect_lossless(verify_rejection, Proposals::kOneHot, 3, testing::all_shapes(6, 3, 3), 10);
  expect_lossless(verify_rejection, Proposals::kOneHot, 3, flat_shapes(3, 1e9), 10);
  expect_lossless(verify_rejection, Proposals::kOneHot, 3, deep_shapes(200, 3, 1e30), 4);
  expect_lossless(verify_rejection, Proposals::kOneHot, 4, testing::all_shapes(5, 3, 4), 10);
  expect_lossless(verify_rejection, Proposals::kOneHot, 4, flat_shapes(4, 1e30), 2);
  expect_lossless(verify_rejection, Proposals::kOneHot, 4, deep_shapes(100, 4, 1e30), 2);
}

TEST(RejectionProof, TextsFollowTheTargetWhereDrawnAndOneHotProposalsMix) {
  expect_lossless(verify_rejection, Proposals::kMixed, 2, every_shape_over_two(), 8);
  expect_lossless(verify_rejection, Proposals::kMixed, 3, testing::all_shapes(6, 3, 3), 4);
  expect_lossless(verify_rejection, Proposals::kMixed, 3, flat_shapes(3, 1e9), 2);
  expect_lossless(verify_rejection, Proposals::kMixed, 3, deep_shapes(60, 3, 5000), 2);
  expect_lossless(verify_rejection, Proposals::kMixed, 4, testing::all_shapes(5, 3, 4), 4);
  expect_lossless(verify_rejection, Proposals::kMixed, 4, flat_shapes(4, 5000), 2);
  expect_lossless(verify_rejection, Proposals::kMixed, 4, deep_shapes(60, 4, 5000), 2);
}

TEST(BlockProof, TextsFollowTheTargetOnEveryChain) {
  expect_lossless(verify_block, Proposals::kDrawn, 2, chains(3), 200);
  expect_lossless(verify_block, Proposals::kDrawn, 3, chains(3), 100);
  expect_lossless(verify_block, Proposals::kDrawn, 4, chains(3), 40);
}

TEST(BlockProof, TextsFollowTheTargetForOneHotChains) {
  expect_lossless(verify_block, Proposals::kOneHot, 3, chains(3), 100);
}

TEST(BlockProof, NeverAcceptsLessThanRejectionAndMostlyMore) {
  const std::uint64_t seed = testing::test_seed(7);
  int more = 0;
  constexpr int kWorlds = 200;
  for (int w = 0; w < kWorlds; ++w) {
    const SmallWorld world(
        {.n_vocab = 2 + w % 3, .seed = seed + static_cast<std::uint64_t>(w), .zeros = 0.2});
    for (const Shape& shape : chains(3)) {
      const double block = enumerate(world, shape, Proposals::kDrawn, verify_block).accepted;
      const double single = enumerate(world, shape, Proposals::kDrawn, verify_rejection).accepted;
      ASSERT_GE(block, single - kExact) << "world " << w << ", chain of " << shape.size();
      if (shape.size() < 2) {
        ASSERT_NEAR(block, single, kExact);
      } else if (shape.size() == 3 && block > single + 1e-6) {
        ++more;
      }
    }
  }
  EXPECT_GT(more, kWorlds / 2);
}

TEST(BlockProof, GainsNothingForOneHotChains) {
  for (std::uint64_t w = 0; w < 100; ++w) {
    const SmallWorld world({.n_vocab = 3, .seed = w, .zeros = 0.2});
    const Shape chain = {0, 1, 2};
    EXPECT_NEAR(enumerate(world, chain, Proposals::kOneHot, verify_block).accepted,
                enumerate(world, chain, Proposals::kOneHot, verify_rejection).accepted, kExact);
  }
}

// The rule's own decisions for one given tree, against the slow and obvious reference.
void expect_reference(Rule rule,
                      Texts (*reference)(const SmallWorld&, const TokenTree&, const Draws&),
                      const std::vector<Shape>& shapes, Proposals proposals,
                      std::uint64_t worlds = 60) {
  const std::uint64_t seed = testing::test_seed(11);
  for (std::uint64_t w = 0; w < worlds; ++w) {
    const SmallWorld world(
        {.n_vocab = static_cast<std::int32_t>(2 + w % 3), .seed = seed + w, .zeros = 0.25});
    for (const Shape& shape : shapes) {
      Draws draws;
      SeededChance drawing(seed + w, static_cast<Pos>(shape.size()));
      const TokenTree tree = testing::fill_shape(world, shape, proposals, drawing, draws);
      Texts said;
      testing::for_every_outcome([&](testing::EnumeratedChance& chance) {
        WorldTarget target(world, tree);
        const Result<Walk> walk = rule(tree, 0, draws, chance, target);
        ASSERT_TRUE(walk.ok());
        said[walk->emitted] += chance.weight();
      });
      ASSERT_LE(testing::distance(said, reference(world, tree, draws)), kExact)
          << "world " << w << ", " << shape.size() << " drafted nodes";
    }
  }
}

TEST(RejectionProof, EqualsTheReferenceOnEveryTree) {
  for (const Proposals proposals : {Proposals::kDrawn, Proposals::kOneHot, Proposals::kMixed}) {
    expect_reference(verify_rejection, testing::reference_rejection, testing::all_shapes(6, 3, 2),
                     proposals);
  }
}

TEST(RejectionProof, EqualsTheReferenceOnLargeTrees) {
  for (const Proposals proposals : {Proposals::kDrawn, Proposals::kOneHot, Proposals::kMixed}) {
    expect_reference(verify_rejection, testing::reference_rejection, every_shape_over_two(),
                     proposals, 6);
    expect_reference(verify_rejection, testing::reference_rejection, deep_shapes(60, 4, 1e300),
                     proposals, 6);
  }
}

TEST(BlockProof, EqualsTheReferenceOnEveryChain) {
  expect_reference(verify_block, testing::reference_block, chains(3), Proposals::kDrawn);
  expect_reference(verify_block, testing::reference_block, chains(3), Proposals::kOneHot);
}

// Negative controls: the proof notices each of the usual mistakes.
TEST(RulesProof, ADraftThatNamesAnotherDistributionThanItDrewFromIsNoticed) {
  double worst = 0.0;
  for (std::uint64_t w = 0; w < 10; ++w) {
    const SmallWorld world({.n_vocab = 3, .seed = w, .zeros = 0.0});
    Texts said;
    testing::for_every_outcome([&](testing::EnumeratedChance& chance) {
      Draws honest;
      const TokenTree drawn = testing::fill_shape(world, {0}, Proposals::kDrawn, chance, honest);
      TokenTree tree(0);
      tree.add(kRoot, drawn.token(1), 0.5f, 1);
      Draws draws;
      Pmf flat = Pmf::sparse({0, 1, 2}, {1.0 / 3, 1.0 / 3, 1.0 / 3});
      tree.set_draw(kRoot, draws.add({.p = flat, .tokens = {drawn.token(1)}}));
      WorldTarget target(world, tree);
      const Result<Walk> walk = verify_rejection(tree, 0, draws, chance, target);
      ASSERT_TRUE(walk.ok());
      said[walk->emitted] += chance.weight();
    });
    worst = std::max(worst, testing::distance(testing::continued(world, said, 2), world.plain(2)));
  }
  EXPECT_GT(worst, 1e-3);
}

TEST(RulesProof, DroppingADrawnTokenForWhatItIsIsNoticed) {
  const SmallWorld world({.n_vocab = 3, .seed = 5, .zeros = 0.0, .likeness = 1.0});
  Texts said;
  testing::for_every_outcome([&](testing::EnumeratedChance& chance) {
    Draws draws;
    TokenTree tree = testing::fill_shape(world, {0}, Proposals::kDrawn, chance, draws);
    if (tree.token(1) == 0) tree.prune({true, false});
    WorldTarget target(world, tree);
    const Result<Walk> walk = verify_rejection(tree, 0, draws, chance, target);
    ASSERT_TRUE(walk.ok());
    said[walk->emitted] += chance.weight();
  });
  EXPECT_GT(testing::distance(testing::continued(world, said, 2), world.plain(2)), 1e-3);
}

TEST(RulesProof, AWalkEndsWhereTheTextEnds) {
  const SmallWorld world({.n_vocab = 2, .seed = 3, .zeros = 0.0, .likeness = 1.0});
  for (const Rule rule : {Rule{verify_rejection}, Rule{verify_block}}) {
    for (std::size_t stop = 1; stop <= 4; ++stop) {
      testing::for_every_outcome([&](testing::EnumeratedChance& chance) {
        Draws draws;
        const TokenTree tree =
            testing::fill_shape(world, {0, 1, 2}, Proposals::kDrawn, chance, draws);
        WorldTarget target(world, tree);
        target.stop_after = stop;
        const Result<Walk> walk = rule(tree, 0, draws, chance, target);
        ASSERT_TRUE(walk.ok());
        ASSERT_EQ(walk->emitted.size(), stop);  // the draft is the target: all of it stays
        ASSERT_EQ(walk->accepted(), std::min<std::size_t>(stop, 3));
      });
    }
  }
}

// A target that cannot go on behind one text, as under a grammar that ends there.
class DeadEnd : public WorldTarget {
 public:
  DeadEnd(const SmallWorld& world, const TokenTree& tree, Text end)
      : WorldTarget(world, tree), tree_(tree), end_(std::move(end)) {}
  Result<Distribution> at(NodeId node) override {
    if (decided == end_) return internal_error("a dead end");
    return WorldTarget::at(node);
  }
  Result<Distribution> peek(NodeId node) override {
    Text text;
    for (const NodeId id : tree_.path_to(node)) {
      if (id != kRoot) text.push_back(tree_.token(id));
    }
    if (text == end_) return internal_error("a dead end");
    return WorldTarget::peek(node);
  }

 private:
  const TokenTree& tree_;
  Text end_;
};

TEST(RulesProof, ADeadEndBehindADraftedTokenMattersOnlyIfTheTextGoesThere) {
  const SmallWorld world({.n_vocab = 2, .seed = 8, .zeros = 0.0});
  const Texts plain = world.plain(1);
  for (const Rule rule : {Rule{verify_rejection}, Rule{verify_block}}) {
    double failed = 0.0;
    testing::for_every_outcome([&](testing::EnumeratedChance& chance) {
      Draws draws;
      const TokenTree tree = testing::fill_shape(world, {0, 1}, Proposals::kDrawn, chance, draws);
      DeadEnd target(world, tree, {1});
      const Result<Walk> walk = rule(tree, 0, draws, chance, target);
      if (walk.ok()) return;
      failed += chance.weight();
      ASSERT_EQ(target.decided, Text{1});
    });
    // Failing here ends the request. A step that stops just before the dead end fails in the next
    // one, so at most as often as the text goes there.
    EXPECT_GT(failed, 0.0);
    EXPECT_LE(failed, plain.at({1}) + kExact);
  }
}

// Frequencies over many seeds, so that the seeded chance itself is under test.
TEST(RulesProof, SeededDecisionsFollowTheTargetToo) {
  const std::uint64_t seed = testing::test_seed(13);
  const SmallWorld world({.n_vocab = 4, .seed = 21, .zeros = 0.1});
  const Texts plain = world.plain(2);
  for (const Rule rule : {Rule{verify_rejection}, Rule{verify_block}}) {
    std::vector<std::int64_t> counts(16, 0);
    for (std::uint64_t i = 0; i < 300000; ++i) {
      SeededChance drawing(seed + i, 0);
      SeededChance chance(mix64(seed + i), 1);
      Draws draws;
      const TokenTree tree = testing::fill_shape(world, {0, 1}, Proposals::kDrawn, drawing, draws);
      WorldTarget target(world, tree);
      const Result<Walk> walk = rule(tree, 0, draws, chance, target);
      ASSERT_TRUE(walk.ok());
      Text text = walk->emitted;
      if (text.size() < 2) text.push_back(chance.draw(world.target(text)));
      ++counts[static_cast<std::size_t>(text[0] * 4 + text[1])];
    }
    std::vector<double> expected(16, 0.0);
    for (const std::pair<const Text, double>& item : plain) {
      expected[static_cast<std::size_t>(item.first[0] * 4 + item.first[1])] = item.second;
    }
    EXPECT_GT(testing::chi_square_p(counts, expected), testing::least_p());
  }
}

}  // namespace
}  // namespace outrider
