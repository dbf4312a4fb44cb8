#include "testing/small_world.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "base/random.h"

namespace outrider::testing {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

double uniform(std::uint64_t key, std::uint64_t index) {
  return noise_uniform(noise_key(key, index), 0);
}

Pmf pmf_of(std::span<const float> logits) { return Pmf::of({.logits = logits}); }

}  // namespace

std::uint64_t SmallWorld::key_of(std::span<const Token> text) const {
  std::uint64_t key = mix64(options_.seed + 17);
  if (options_.memoryless) return key;
  for (const Token token : text) key = mix64(key * 31 + static_cast<std::uint64_t>(token) + 1);
  return key;
}

namespace {

// Logits that a target row and a draft row share the more the likelier they are.
std::vector<float> random_logits(const WorldOptions& options, std::uint64_t key) {
  std::vector<float> logits;
  for (std::int32_t t = 0; t < options.n_vocab; ++t) {
    const std::uint64_t i = static_cast<std::uint64_t>(t);
    const bool never = uniform(key, 2 * i) < options.zeros;
    logits.push_back(never ? kNever : static_cast<float>(4.0 * uniform(key, 2 * i + 1) - 2.0));
  }
  const bool none = std::all_of(logits.begin(), logits.end(), [](float l) { return l == kNever; });
  if (none) logits[static_cast<std::size_t>(key % logits.size())] = 0.0f;
  return logits;
}

}  // namespace

std::vector<float> SmallWorld::target_logits(std::span<const Token> text) const {
  return random_logits(options_, key_of(text));
}

Pmf SmallWorld::target(std::span<const Token> text) const { return pmf_of(target_logits(text)); }

Pmf SmallWorld::draft(std::span<const Token> text) const {
  const std::uint64_t key = key_of(text);
  const bool same = uniform(key, 1000) < options_.likeness;
  return pmf_of(random_logits(options_, same ? key : mix64(key + 99)));
}

Texts SmallWorld::plain(std::size_t length) const { return continued(*this, {{{}, 1.0}}, length); }

Texts continued(const SmallWorld& world, const Texts& texts, std::size_t length) {
  Texts whole;
  std::vector<std::pair<Text, double>> open(texts.begin(), texts.end());
  while (!open.empty()) {
    const std::pair<Text, double> item = std::move(open.back());
    open.pop_back();
    if (item.first.size() >= length) {
      whole[Text(item.first.begin(), item.first.begin() + static_cast<std::ptrdiff_t>(length))] +=
          item.second;
      continue;
    }
    const Pmf q = world.target(item.first);
    for (Token t = 0; t < world.n_vocab(); ++t) {
      if (!(q.at(t) > 0.0)) continue;
      Text longer = item.first;
      longer.push_back(t);
      open.emplace_back(std::move(longer), item.second * q.at(t));
    }
  }
  return whole;
}

double distance(const Texts& a, const Texts& b) {
  double largest = 0.0;
  for (const std::pair<const Text, double>& item : a) {
    const Texts::const_iterator other = b.find(item.first);
    largest = std::max(largest, std::fabs(item.second - (other == b.end() ? 0.0 : other->second)));
  }
  for (const std::pair<const Text, double>& item : b) {
    if (a.count(item.first) == 0) largest = std::max(largest, item.second);
  }
  return largest;
}

namespace {

// Breadth first, parents never fall: each ordered tree once.
void grow_shapes(const Shape& shape, std::size_t max_nodes, int max_depth, int max_children,
                 std::vector<Shape>& out) {
  out.push_back(shape);
  if (shape.size() == max_nodes) return;
  const NodeId first = shape.empty() ? 0 : shape.back();
  for (NodeId parent = first; parent <= static_cast<NodeId>(shape.size()); ++parent) {
    int depth = 1;
    for (NodeId at = parent; at != 0; at = shape[static_cast<std::size_t>(at) - 1]) ++depth;
    const std::ptrdiff_t siblings = std::count(shape.begin(), shape.end(), parent);
    if (depth > max_depth || siblings == max_children) continue;
    Shape longer = shape;
    longer.push_back(parent);
    grow_shapes(longer, max_nodes, max_depth, max_children, out);
  }
}

// The tokens from below the root to `node`.
Text text_to(const TokenTree& tree, NodeId node) {
  Text text;
  for (; node != kRoot; node = tree.node(node).parent) text.push_back(tree.token(node));
  std::reverse(text.begin(), text.end());
  return text;
}

}  // namespace

std::vector<Shape> all_shapes(int max_nodes, int max_depth, int max_children) {
  std::vector<Shape> out;
  grow_shapes({}, static_cast<std::size_t>(max_nodes), max_depth, max_children, out);
  return out;
}

std::size_t depth_of(const Shape& shape) {
  std::size_t deepest = 0;
  for (NodeId at = 1; at <= static_cast<NodeId>(shape.size()); ++at) {
    std::size_t depth = 0;
    for (NodeId n = at; n != 0; n = shape[static_cast<std::size_t>(n) - 1]) ++depth;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

double ways_to_draw(const Shape& shape, std::int32_t n_vocab) {
  double ways = 1.0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::ptrdiff_t before =
        std::count(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(i), shape[i]);
    ways *= static_cast<double>(n_vocab - before);
  }
  return ways;
}

std::vector<Shape> random_shapes(std::size_t n, std::size_t depth, std::int32_t n_vocab,
                                 double max_ways, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Shape> shapes;
  while (shapes.size() < n) {
    Shape shape;
    std::vector<std::size_t> depths = {0};
    for (std::size_t parent = 0; parent < depths.size(); ++parent) {
      if (depths[parent] == depth || ways_to_draw(shape, n_vocab) > max_ways) continue;
      const std::uint64_t children = random() % (static_cast<std::uint64_t>(n_vocab) + 1);
      for (std::uint64_t k = 0; k < children; ++k) {
        shape.push_back(static_cast<NodeId>(parent));
        depths.push_back(depths[parent] + 1);
      }
    }
    if (depth_of(shape) != depth || ways_to_draw(shape, n_vocab) > max_ways) continue;
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

TokenTree fill_shape(const SmallWorld& world, const Shape& shape, Proposals proposals,
                     Chance& chance, Draws& draws) {
  TokenTree tree(0);
  std::vector<NodeId> filled(shape.size() + 1, kNoNode);  // [node of the shape]
  filled[0] = kRoot;
  for (std::size_t parent = 0; parent <= shape.size(); ++parent) {
    std::vector<std::size_t> children;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == static_cast<NodeId>(parent)) children.push_back(i + 1);
    }
    const NodeId at = filled[parent];
    if (at == kNoNode || children.empty()) continue;
    if (tree.node(at).draw != kOneHot) continue;  // two nodes of the shape became one
    std::size_t n_drawn = 0;
    if (proposals == Proposals::kDrawn) n_drawn = children.size();
    if (proposals == Proposals::kMixed) n_drawn = (children.size() + 1) / 2;
    Draw draw{.p = world.draft(text_to(tree, at)), .tokens = {}};
    Pmf left = draw.p;
    for (std::size_t k = 0; k < children.size(); ++k) {
      Token token = (tree.node(at).depth + static_cast<Token>(k)) % world.n_vocab();
      if (k < n_drawn) {
        token = chance.draw(left);
        if (token == kNoToken) continue;
        left.remove(token);
        draw.tokens.push_back(token);
      }
      filled[children[k]] = tree.add(at, token, 0.5f, 1);
    }
    if (n_drawn > 0) tree.set_draw(at, draws.add(std::move(draw)));
  }
  return tree;
}

Result<Distribution> WorldTarget::row(std::span<const Token> text) {
  const std::vector<float> row = world_.target_logits(text);
  logits_.assign(row.rbegin(), row.rend());
  tokens_.clear();
  for (Token t = world_.n_vocab() - 1; t >= 0; --t) tokens_.push_back(t);
  return Distribution{.logits = logits_, .tokens = tokens_};
}

Result<Distribution> WorldTarget::at(NodeId) { return row(decided); }

Result<Distribution> WorldTarget::peek(NodeId node) { return row(text_to(tree_, node)); }

namespace {

using Row = std::vector<double>;

Row dense(const Pmf& p, std::int32_t n) {
  Row row;
  for (Token t = 0; t < n; ++t) row.push_back(p.at(t));
  return row;
}

double sum(const Row& row) { return std::accumulate(row.begin(), row.end(), 0.0); }

Row normalised(Row row) {
  const double total = sum(row);
  if (total > 0.0) {
    for (double& value : row) value /= total;
  }
  return row;
}

// max(scale * q - p, 0)
Row excess(const Row& q, const Row& p, double scale) {
  Row rest;
  for (std::size_t i = 0; i < q.size(); ++i) rest.push_back(std::max(scale * q[i] - p[i], 0.0));
  return rest;
}

struct RejectionReference {
  const SmallWorld& world;
  const TokenTree& tree;
  const Draws& draws;
  Texts said;

  void say(NodeId node, Text text, Token token, double chance) {
    text.push_back(token);
    const NodeId child = tree.child(node, token);
    if (child == kNoNode) {
      said[text] += chance;
    } else {
      visit(child, text, chance);
    }
  }

  void visit(NodeId node, const Text& text, double chance) {
    if (!(chance > 0.0)) return;
    Row q = dense(world.target(text), world.n_vocab());
    std::vector<Token> tried;
    const Draw* draw = draws.find(tree.node(node).draw);
    if (draw != nullptr) {
      Row p = dense(draw->p, world.n_vocab());
      for (const Token token : draw->tokens) {
        const std::size_t t = static_cast<std::size_t>(token);
        tried.push_back(token);
        const double stays = std::min(1.0, q[t] / p[t]);
        say(node, text, token, chance * stays);
        chance *= 1.0 - stays;
        q = normalised(excess(q, p, 1.0));
        p[t] = 0.0;
        p = normalised(p);
      }
    }
    for (NodeId child = 1; child < tree.size(); ++child) {
      const Token token = tree.token(child);
      const bool before = std::count(tried.begin(), tried.end(), token) > 0;
      if (tree.node(child).parent != node || before) continue;
      const std::size_t t = static_cast<std::size_t>(token);
      say(node, text, token, chance * q[t]);
      chance *= 1.0 - q[t];
      q[t] = 0.0;
      q = normalised(q);
    }
    for (std::size_t t = 0; t < q.size(); ++t) {
      if (chance * q[t] > 0.0) say(node, text, static_cast<Token>(t), chance * q[t]);
    }
  }
};

}  // namespace

Texts reference_rejection(const SmallWorld& world, const TokenTree& tree, const Draws& draws) {
  RejectionReference reference{.world = world, .tree = tree, .draws = draws, .said = {}};
  reference.visit(kRoot, {}, 1.0);
  return reference.said;
}

Texts reference_block(const SmallWorld& world, const TokenTree& tree, const Draws& draws) {
  const std::size_t g = static_cast<std::size_t>(tree.size()) - 1;
  std::vector<Row> target;  // [g + 1]
  std::vector<Row> draft;   // [g + 1]; the last is not used
  Text path;
  for (std::size_t i = 0; i <= g; ++i) {
    const NodeId node = static_cast<NodeId>(i);
    if (i > 0) path.push_back(tree.token(node));
    target.push_back(dense(world.target(path), world.n_vocab()));
    const Draw* draw = draws.find(tree.node(node).draw);
    Row q(static_cast<std::size_t>(world.n_vocab()), 0.0);
    if (draw != nullptr) q = dense(draw->p, world.n_vocab());
    if (draw == nullptr && i < g) q[static_cast<std::size_t>(tree.token(node + 1))] = 1.0;
    draft.push_back(q);
  }
  std::vector<double> favour(1, 1.0);
  for (std::size_t i = 1; i <= g; ++i) {
    const std::size_t x = static_cast<std::size_t>(path[i - 1]);
    favour.push_back(std::min(1.0, favour[i - 1] * target[i - 1][x] / draft[i - 1][x]));
  }
  Texts said;
  double left = 1.0;  // nothing longer stays
  for (std::size_t i = g + 1; i-- > 0;) {
    const Row rest = i == g ? target[g] : excess(target[i], draft[i], favour[i]);
    const double s = sum(rest);
    double stays = 1.0;
    if (i == g && i > 0) stays = favour[g];
    if (i < g && i > 0) stays = s + 1.0 - favour[i] > 0.0 ? s / (s + 1.0 - favour[i]) : 1.0;
    const Row next = normalised(rest);
    for (std::size_t t = 0; t < next.size(); ++t) {
      if (!(left * stays * next[t] > 0.0)) continue;
      Text text(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i));
      text.push_back(static_cast<Token>(t));
      said[text] += left * stays * next[t];
    }
    left *= 1.0 - stays;
  }
  return said;
}

}  // namespace outrider::testing
