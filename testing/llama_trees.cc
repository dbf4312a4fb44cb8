#include "testing/llama_trees.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace outrider::testing {
namespace {

// The first `n` nodes.
TokenTree beginning(const TokenTree& tree, NodeId n) {
  TokenTree part(tree.token(kRoot));
  for (NodeId id = 1; id < n; ++id) part.add(tree.node(id).parent, tree.token(id), 1.0f, 1);
  return part;
}

// Evaluates `tokens` behind `single`'s text one by one and keeps them; the last one's row.
std::vector<float> single_steps(llama::LlamaModel& single, const std::vector<Token>& tokens) {
  std::vector<float> row;
  const NodeId root_only[] = {kRoot};
  for (const Token token : tokens) {
    const TokenTree root(token);
    const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
    const Status status = single.evaluate({&item, 1});
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) return {};
    const std::span<const float> logits = single.logits(0, kRoot);
    row.assign(logits.begin(), logits.end());
    EXPECT_TRUE(single.commit(0, root_only).ok());
  }
  return row;
}

}  // namespace

std::vector<TreeShape> tree_shapes(int n) {
  std::vector<TreeShape> shapes{{kNoNode}};
  for (NodeId node = 1; node < n; ++node) {
    std::vector<TreeShape> larger;
    for (const TreeShape& shape : shapes) {
      for (NodeId parent = 0; parent < node; ++parent) {
        larger.push_back(shape);
        larger.back().push_back(parent);
      }
    }
    shapes = std::move(larger);
  }
  return shapes;
}

TreeShape random_shape(std::mt19937& random, int n, int max_leaves) {
  TreeShape shape{kNoNode};
  std::vector<bool> leaf{true};
  int n_leaves = 1;
  const unsigned style = static_cast<unsigned>(random() % 3);
  for (NodeId node = 1; node < n; ++node) {
    NodeId parent = static_cast<NodeId>(random() % static_cast<unsigned>(node));
    if (style == 0 && random() % 4 != 0) parent = node - 1;
    if (style == 1 && random() % 2 != 0) parent = parent / 2;
    while (!leaf[static_cast<std::size_t>(parent)] && n_leaves >= max_leaves) {
      parent = static_cast<NodeId>(random() % static_cast<unsigned>(node));
    }
    if (!leaf[static_cast<std::size_t>(parent)]) ++n_leaves;
    leaf[static_cast<std::size_t>(parent)] = false;
    leaf.push_back(true);
    shape.push_back(parent);
  }
  return shape;
}

TreeWorld::TreeWorld(llama::LlamaModel& model,
                     std::vector<std::unique_ptr<llama::LlamaModel>> singles,
                     const Settings& settings)
    : model_(model),
      singles_(std::move(singles)),
      settings_(settings),
      random_(settings.seed),
      texts_(singles_.size()) {}

TreeWorld::Running TreeWorld::start(const Item& item) {
  Running r{.item = &item, .prefix = {}, .tree = TokenTree(random_token()), .cuts = {}, .rows = {}};
  for (int i = 0; i < item.n_prefix; ++i) r.prefix.push_back(random_token());
  for (std::size_t i = 1; i < item.shape.size(); ++i) {
    Token token = random_token();
    while (r.tree.child(item.shape[i], token) != kNoNode) token = random_token();
    r.tree.add(item.shape[i], token, 1.0f, 1);
  }
  for (int i = 1; i < item.n_pieces && r.tree.size() > 1; ++i) {
    r.cuts.push_back(1 + below(r.tree.size() - 1));
  }
  r.cuts.push_back(r.tree.size());
  std::sort(r.cuts.begin(), r.cuts.end());
  r.cuts.erase(std::unique(r.cuts.begin(), r.cuts.end()), r.cuts.end());
  outcome_.grown += r.cuts.size() > 1 ? 1 : 0;
  outcome_.most_leaves = std::max(outcome_.most_leaves, static_cast<int>(r.tree.leaves().size()));
  return r;
}

void TreeWorld::step(const std::vector<Item>& items) {
  std::vector<Running> running;
  running.reserve(items.size());
  for (const Item& item : items) running.push_back(start(item));
  evaluate(running);
  if (::testing::Test::HasFatalFailure()) return;
  std::shuffle(running.begin(), running.end(), random_);
  for (const Running& r : running) {
    const NodeId end = r.item->end != kRandomEnd ? r.item->end : below(r.tree.size() + 1) - 1;
    const std::vector<NodeId> kept = end == kNoNode ? std::vector<NodeId>() : r.tree.path_to(end);
    compare(r, kept);
    finish(r, kept);
    if (::testing::Test::HasFatalFailure()) return;
  }
  outcome_.most_parked = std::max(outcome_.most_parked, model_.ledger().parked());
}

// Piece by piece; in each evaluation a part of those that are not done takes part.
void TreeWorld::evaluate(std::vector<Running>& running) {
  std::vector<std::size_t> next(running.size(), 0);  // of the cuts
  for (bool first = true;; first = false) {
    std::vector<std::size_t> chosen;
    bool left = false;
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (next[i] == running[i].cuts.size()) continue;
      left = true;
      if (first || below(3) != 0) chosen.push_back(i);
    }
    if (!left) return;
    if (chosen.empty()) continue;
    std::vector<TokenTree> trees;
    trees.reserve(chosen.size());
    std::vector<EvalItem> evaluation;
    for (const std::size_t i : chosen) {
      const Running& r = running[i];
      const NodeId first_new = next[i] == 0 ? 0 : r.cuts[next[i] - 1];
      EvalItem item{.seq = r.item->seq, .prefix = {}, .tree = nullptr, .first_new = first_new};
      if (first_new == 0) item.prefix = r.prefix;
      item.tree = &trees.emplace_back(beginning(r.tree, r.cuts[next[i]]));
      evaluation.push_back(item);
    }
    const Status status = model_.evaluate(evaluation);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(model_.check_integrity(), "");
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      Running& r = running[chosen[k]];
      for (NodeId id = evaluation[k].first_new; id < evaluation[k].tree->size(); ++id) {
        const std::span<const float> row = model_.logits(k, id);
        r.rows.emplace_back(row.begin(), row.end());
      }
      ++next[chosen[k]];
    }
  }
}

// The kept path last, so that the single steps then stand where the text goes on.
void TreeWorld::compare(const Running& r, const std::vector<NodeId>& kept) {
  const std::size_t seq = static_cast<std::size_t>(r.item->seq);
  const Pos base = length(r.item->seq) + static_cast<Pos>(r.prefix.size());
  single_steps(*singles_[seq], r.prefix);
  std::vector<NodeId> at;
  if (settings_.check_all > 0 && below(settings_.check_all) == 0) {
    for (NodeId id = 0; id < r.tree.size(); ++id) {
      if (std::find(kept.begin(), kept.end(), id) != kept.end()) continue;
      compare_node(r, id, base, &at);
    }
  }
  for (const NodeId id : kept) compare_node(r, id, base, &at);
  if (kept.empty()) {
    ASSERT_TRUE(singles_[seq]->truncate(0, base).ok());
  }
}

// `at` is the path that the single steps stand at.
void TreeWorld::compare_node(const Running& r, NodeId id, Pos base, std::vector<NodeId>* at) {
  llama::LlamaModel& single = *singles_[static_cast<std::size_t>(r.item->seq)];
  const std::vector<NodeId> path = r.tree.path_to(id);
  std::size_t same = static_cast<std::size_t>(
      std::mismatch(at->begin(), at->end(), path.begin(), path.end()).first - at->begin());
  same = std::min(same, path.size() - 1);  // its own row is wanted
  ASSERT_TRUE(single.truncate(0, base + static_cast<Pos>(same)).ok());
  std::vector<Token> tokens;
  for (std::size_t i = same; i < path.size(); ++i) tokens.push_back(r.tree.token(path[i]));
  const std::vector<float> wanted = single_steps(single, tokens);
  *at = path;
  const std::vector<float>& got = r.rows[static_cast<std::size_t>(id)];
  ASSERT_EQ(got.size(), wanted.size());
  ++outcome_.rows;
  if (std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)) == 0) {
    ++outcome_.identical;
  } else if (outcome_.first_difference.empty()) {
    outcome_.first_difference = "sequence " + std::to_string(r.item->seq) + ", position " +
                                std::to_string(base) + ", node " + std::to_string(id) + " of " +
                                std::to_string(r.tree.size());
  }
}

void TreeWorld::finish(const Running& r, const std::vector<NodeId>& kept) {
  ASSERT_TRUE(model_.commit(r.item->seq, kept).ok());
  ASSERT_EQ(model_.check_integrity(), "");
  std::vector<Token>& text = texts_[static_cast<std::size_t>(r.item->seq)];
  text.insert(text.end(), r.prefix.begin(), r.prefix.end());
  for (const NodeId id : kept) text.push_back(r.tree.token(id));
  ASSERT_EQ(model_.length(r.item->seq), static_cast<Pos>(text.size()));
  outcome_.longest = std::max(outcome_.longest, static_cast<int>(text.size()));
}

void TreeWorld::cut(SeqId seq, Pos length) {
  ASSERT_TRUE(model_.truncate(seq, length).ok());
  ASSERT_EQ(model_.check_integrity(), "");
  ASSERT_TRUE(singles_[static_cast<std::size_t>(seq)]->truncate(0, length).ok());
  texts_[static_cast<std::size_t>(seq)].resize(static_cast<std::size_t>(length));
}

}  // namespace outrider::testing
