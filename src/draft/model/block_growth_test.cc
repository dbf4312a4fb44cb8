// The best tree of a block: compared with all trees of small worlds.
#include "draft/model/block_growth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "dist/gumbel.h"
#include "testing/fake_model.h"

namespace outrider {
namespace {

using testing::FakeSampler;

constexpr std::int32_t kVocab = 4;
constexpr std::uint64_t kSeed = 5;
constexpr double kSteepness = 3.0;  // of the chances before anything was learned

// A block's rows, and a request for it. `depths` of them.
struct World {
  World(std::uint64_t world, std::int32_t depths, float temperature)
      : sampler(temperature), n_depths(depths) {
    const testing::RowFunction random = testing::random_rows(kVocab, world, 2.0f);
    for (std::int32_t depth = 0; depth < depths; ++depth) {
      rows.push_back(random(std::vector<Token>{static_cast<Token>(depth), 1}));
    }
  }

  Block block() const {
    return {.n_depths = n_depths,
            .row = [this](std::int32_t depth) -> std::span<const float> {
              return rows[static_cast<std::size_t>(depth) - 1];
            },
            .is_end = is_end};
  }
  DraftRequest request(std::int32_t max_nodes, std::int32_t branches, TokenTree* tree) {
    return {.seq = 0,
            .text = text,
            .seed = kSeed,
            .sampler = &sampler,
            .max_nodes = max_nodes,
            .shape = {.branches = branches, .split_p = 0.0f},
            .mask = 1,
            .tree = tree};
  }

  // Computed plainly: the chance of every token at a depth, 1 being the first.
  std::vector<double> chances(std::int32_t depth) const {
    const std::vector<float>& row = rows[static_cast<std::size_t>(depth) - 1];
    std::vector<double> score;
    for (Token t = 0; t < kVocab; ++t) {
      const double logit = static_cast<double>(row[static_cast<std::size_t>(t)]);
      const NoiseKey key = noise_key(kSeed, text.size() - 1 + static_cast<std::uint64_t>(depth));
      score.push_back(sampler.greedy() ? logit : logit + gumbel_noise(key, t));
    }
    std::vector<double> result;
    for (std::size_t t = 0; t < score.size(); ++t) {
      double best_other = -1e300;
      for (std::size_t o = 0; o < score.size(); ++o) {
        if (o != t) best_other = std::max(best_other, score[o]);
      }
      result.push_back(1.0 / (1.0 + std::exp(kSteepness * (best_other - score[t]))));
    }
    return result;
  }

  std::vector<Token> text = {3, 1, 2};
  std::vector<std::vector<float>> rows;
  FakeSampler sampler;
  std::int32_t n_depths;
  std::function<bool(Token)> is_end;
};

using Path = std::vector<Token>;

// The best of all trees of `n` nodes, as its paths, and what its chances add up to.
class BruteForce {
 public:
  BruteForce(const World& world, std::size_t n) : n_(n) {
    for (std::int32_t depth = 1; depth <= world.n_depths; ++depth) {
      chances_.push_back(world.chances(depth));
    }
    std::vector<Path> open;
    add_children({}, &open);
    search(open, {}, 0.0);
  }

  double best = -1.0;
  std::set<Path> paths;
  std::int64_t trees = 0;

 private:
  void add_children(const Path& path, std::vector<Path>* open) const {
    if (path.size() == chances_.size()) return;
    for (Token t = 0; t < kVocab; ++t) {
      open->push_back(path);
      open->back().push_back(t);
    }
  }
  double chance_of(const Path& path) const {
    double chance = 1.0;
    for (std::size_t d = 0; d < path.size(); ++d) {
      chance *= chances_[d][static_cast<std::size_t>(path[d])];
    }
    return chance;
  }
  // `open`: nodes whose parents are in the tree and that may still be taken, one after the other.
  void search(std::vector<Path> open, std::set<Path> tree, double sum) {
    if (tree.size() == n_ || open.empty()) {
      ++trees;
      if (sum > best) {
        best = sum;
        paths = tree;
      }
      return;
    }
    const Path node = open.back();
    open.pop_back();
    search(open, tree, sum);
    add_children(node, &open);
    tree.insert(node);
    search(std::move(open), std::move(tree), sum + chance_of(node));
  }

  std::size_t n_;
  std::vector<std::vector<double>> chances_;  // [depths][vocabulary]
};

std::set<Path> paths_of(const TokenTree& tree) {
  std::set<Path> paths;
  for (NodeId id = 1; id < tree.size(); ++id) {
    Path path;
    for (const NodeId at : tree.path_to(id)) path.push_back(tree.token(at));
    path.erase(path.begin());
    paths.insert(path);
  }
  return paths;
}

TEST(BlockGrowth, TheTreeIsTheBestOfAllTreesOfItsSizeAtEveryTemperature) {
  std::int64_t branched = 0;
  for (const float temperature : {0.0f, 1.0f}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      for (std::int32_t n = 1; n <= 5; ++n) {
        World world(seed, 3, temperature);
        TokenTree tree(world.text.back());
        const GrownBlock grown = grow_block(world.request(n, 64, &tree), world.block());
        const BruteForce wanted(world, static_cast<std::size_t>(n));
        ASSERT_GT(wanted.trees, 3);
        EXPECT_EQ(paths_of(tree), wanted.paths) << seed << ' ' << n;
        EXPECT_EQ(paths_of(grown.tree), wanted.paths);
        EXPECT_EQ(tree.check_integrity(), "");
        double sum = 0.0;
        for (NodeId id = 1; id < tree.size(); ++id) {
          sum += static_cast<double>(tree.node(id).chance);
        }
        EXPECT_NEAR(sum, wanted.best, 1e-4);
        branched += tree.is_chain() ? 0 : 1;
      }
    }
  }
  EXPECT_GT(branched, 20) << "chains only: nothing was compared";
}

TEST(BlockGrowth, AChainIsTheBestTokenOfEachDepth) {
  for (const float temperature : {0.0f, 0.7f, 1.0f}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      World world(seed, 4, temperature);
      TokenTree tree(world.text.back());
      (void)grow_block(world.request(9, 1, &tree), world.block());
      ASSERT_TRUE(tree.is_chain());
      ASSERT_EQ(tree.size(), 5) << "as deep as the block";
      for (NodeId id = 1; id < tree.size(); ++id) {
        const std::uint64_t position = world.text.size() - 1 + static_cast<std::uint64_t>(id);
        const std::vector<float>& row = world.rows[static_cast<std::size_t>(id) - 1];
        EXPECT_EQ(tree.token(id),
                  perturbed_argmax(world.sampler.apply(row), noise_key(kSeed, position)));
      }
    }
  }
}

TEST(BlockGrowth, LeavesAreBoundedAndTheNodesGoElsewhere) {
  for (std::int32_t branches = 1; branches <= 6; ++branches) {
    World world(3, 3, 1.0f);
    TokenTree tree(world.text.back());
    (void)grow_block(world.request(12, branches, &tree), world.block());
    EXPECT_LE(static_cast<std::int32_t>(tree.leaves().size()), branches);
    const std::int32_t least = branches == 1 ? 3 : branches + 1;
    EXPECT_GE(tree.drafted(), least) << branches;
  }
}

TEST(BlockGrowth, BehindAnEndTokenNothingIsProposed) {
  World world(1, 4, 0.0f);
  TokenTree chain(world.text.back());
  (void)grow_block(world.request(4, 1, &chain), world.block());
  const Token end = chain.token(2);
  world.is_end = [end](Token token) { return token == end; };
  TokenTree tree(world.text.back());
  (void)grow_block(world.request(4, 1, &tree), world.block());
  EXPECT_LE(tree.size(), 3);
  EXPECT_EQ(tree.token(tree.size() - 1), end);
}

TEST(BlockGrowth, NodesOfOthersAreSharedAndOnesOwnAreCounted) {
  World world(2, 3, 1.0f);
  TokenTree alone(world.text.back());
  (void)grow_block(world.request(3, 1, &alone), world.block());
  TokenTree tree(world.text.back());
  const NodeId same = tree.add(kRoot, alone.token(1), 0.1f, 2);
  tree.add(kRoot, (alone.token(1) + 1) % kVocab, 0.1f, 2);
  const GrownBlock grown = grow_block(world.request(3, 1, &tree), world.block());
  EXPECT_EQ(grown.tree.size(), 4);
  EXPECT_EQ(tree.size(), 5);
  EXPECT_EQ(tree.node(same).proposed_by, 3U);
}

// A chain of samplers whose state forbids a token that was said: the distributions of a depth
// depend on the path to it.
class NoRepeats : public Sampler {
 public:
  Distribution apply(std::span<const float> logits) override {
    row_.assign(logits.begin(), logits.end());
    for (const Token t : said_) row_[static_cast<std::size_t>(t)] = -INFINITY;
    return {.logits = row_};
  }
  void accept(Token token) override { said_.insert(token); }
  bool has_state() const override { return true; }
  bool greedy() const override { return false; }
  std::unique_ptr<Sampler> clone() const override { return std::make_unique<NoRepeats>(*this); }

 private:
  std::set<Token> said_;
  std::vector<float> row_;
};

TEST(BlockGrowth, AChainOfSamplersWithStateIsFollowedAlongEachPath) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    World world(seed, 3, 1.0f);
    for (std::vector<float>& row : world.rows) row = world.rows[0];  // each depth likes the same
    NoRepeats sampler;
    TokenTree tree(world.text.back());
    DraftRequest request = world.request(10, 64, &tree);
    request.sampler = &sampler;
    (void)grow_block(request, world.block());
    EXPECT_GT(tree.drafted(), 5);
    for (const Path& path : paths_of(tree)) {
      EXPECT_EQ(std::set<Token>(path.begin(), path.end()).size(), path.size());
    }
    const std::span<const float> row = sampler.apply(world.rows[0]).logits;
    EXPECT_TRUE(std::equal(row.begin(), row.end(), world.rows[0].begin())) << "state has changed";
  }
}

TEST(BlockGrowth, DrawnChildrenAreNotedForEveryNodeInTheirOrder) {
  std::int64_t checked = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    World world(seed, 3, 1.0f);
    TokenTree tree(world.text.back());
    Draws draws;
    DraftRequest request = world.request(9, 6, &tree);
    request.draws = &draws;
    (void)grow_block(request, world.block());
    for (NodeId node = 0; node < tree.size(); ++node) {
      std::vector<Token> children;
      for (NodeId child = node + 1; child < tree.size(); ++child) {
        if (tree.node(child).parent == node) children.push_back(tree.token(child));
      }
      const Draw* draw = draws.find(tree.node(node).draw);
      ASSERT_EQ(draw != nullptr, !children.empty());
      if (draw == nullptr) continue;
      ASSERT_EQ(draw->chances.size(), draw->tokens.size());
      // Those that are sent are the first ones drawn.
      ASSERT_LE(children.size(), draw->tokens.size());
      EXPECT_TRUE(std::equal(children.begin(), children.end(), draw->tokens.begin()));
      ++checked;
    }
  }
  EXPECT_GT(checked, 40);
}

}  // namespace
}  // namespace outrider
