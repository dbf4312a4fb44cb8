#include "lab/text_replay.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/clock.h"

namespace outrider {
namespace {

constexpr std::int64_t kStepsPerReport = 256;

// The nodes in a row, from below the root on, that `said` goes along.
std::vector<NodeId> walk(const TokenTree& tree, std::span<const Token> said) {
  std::vector<NodeId> path;
  NodeId at = kRoot;
  while (path.size() < said.size()) {
    at = tree.child(at, said[path.size()]);
    if (at == kNoNode) break;
    path.push_back(at);
  }
  return path;
}

// The `width` likeliest nodes, the root among them. A child is never likelier than its parent, and
// of equals the one nearer the root stays, so they form a tree. (plan/width_plan.h, for one tree.)
TokenTree likeliest(const TokenTree& tree, std::int32_t width) {
  TokenTree sent = tree;
  if (tree.size() <= width) return sent;
  std::vector<NodeId> order(static_cast<std::size_t>(tree.size()));
  std::iota(order.begin(), order.end(), kRoot);
  std::sort(order.begin(), order.end(), [&tree](NodeId a, NodeId b) {
    const TokenTree::Node& x = tree.node(a);
    const TokenTree::Node& y = tree.node(b);
    if (x.chance != y.chance) return x.chance > y.chance;
    return x.depth != y.depth ? x.depth < y.depth : a < b;
  });
  std::vector<bool> keep(order.size(), false);
  for (std::int32_t i = 0; i < width; ++i) {
    keep[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
  }
  keep[kRoot] = true;
  (void)sent.prune(keep);
  return sent;
}

// What one drafter gets credit for in a step that gave the tokens `said`.
void credit(ReplayDrafterStats& stats, DrafterMask mask, const TokenTree& proposed,
            const TokenTree& sent, std::span<const Token> said) {
  stats.drafts += proposed.has_proposed(mask) ? 1 : 0;
  for (NodeId id = 1; id < sent.size(); ++id) {
    stats.drafted += (sent.node(id).proposed_by & mask) != 0 ? 1 : 0;
  }
  const std::vector<NodeId> accepted = walk(sent, said);
  const std::int64_t mine = std::count_if(accepted.begin(), accepted.end(), [&](NodeId id) {
    return (sent.node(id).proposed_by & mask) != 0;
  });
  stats.accepted += mine;
  stats.accepted_drafts += mine > 0 ? 1 : 0;
  const std::vector<NodeId> right = walk(proposed, said);
  stats.foregone +=
      std::count_if(right.begin() + static_cast<std::ptrdiff_t>(accepted.size()), right.end(),
                    [&](NodeId id) { return (proposed.node(id).proposed_by & mask) != 0; });
}

}  // namespace

TextReplay::TextReplay(std::vector<Drafter*> drafters, const DrafterPlan& plan,
                       const ReplayOptions& options)
    : drafters_(std::move(drafters)), options_(options) {
  assert(drafters_.size() <= kMaxDrafters);
  stats_.steps_by_width.assign(static_cast<std::size_t>(options.width) + 1, 0);
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    stats_.drafters.push_back({.name = std::string(drafters_[d]->name())});
    if (plan.empty()) chains_.push_back({d});
  }
  for (const std::vector<std::string>& names : plan.chains) {
    std::vector<std::size_t>& chain = chains_.emplace_back();
    for (const std::string& name : names) {
      for (std::size_t d = 0; d < drafters_.size(); ++d) {
        if (stats_.drafters[d].name == name) chain.push_back(d);
      }
    }
    assert(chain.size() == names.size());
  }
}

TextReplay::TextReplay(Drafter& drafter, const ReplayOptions& options)
    : TextReplay({&drafter}, DrafterPlan(), options) {}

// `text` is what is decided. Stage by stage, in the engine's order, so that of equally likely nodes
// the same ones are sent: first all that a chain asks first, then what is asked where these found
// nothing.
Status TextReplay::propose(std::span<const Token> text, TokenTree& tree) {
  if (options_.width == 1) return Status();
  std::size_t stages = 0;
  for (const std::vector<std::size_t>& chain : chains_) stages = std::max(stages, chain.size());
  for (std::size_t stage = 0; stage < stages; ++stage) {
    for (std::size_t d = 0; d < drafters_.size(); ++d) {
      const bool asked = std::any_of(
          chains_.begin(), chains_.end(),
          [&](const std::vector<std::size_t>& chain) { return asks_at(chain, stage, d, tree); });
      if (!asked) continue;
      DraftRequest request{.seq = 0,
                           .text = text,
                           .max_nodes = options_.width - 1,
                           .shape = options_.shape,
                           .mask = DrafterMask{1} << d,
                           .tree = &tree};
      ++stats_.drafters[d].calls;
      OUTRIDER_RETURN_IF_ERROR(draft_one(*drafters_[d], request));
    }
  }
  return Status();
}

Status TextReplay::step(std::span<const Token> text, std::size_t& decided, bool first) {
  TokenTree proposed(text[decided - 1]);
  {
    ScopedTimer timer(first ? stats_.begin_ms : stats_.draft_ms);
    OUTRIDER_RETURN_IF_ERROR(propose(text.first(decided), proposed));
  }
  const TokenTree sent = likeliest(proposed, options_.width);
  const std::span<const Token> left = text.subspan(decided);
  const std::size_t accepted = walk(sent, left).size();
  const std::size_t said = std::min(accepted + 1, left.size());
  ++stats_.steps;
  ++stats_.steps_by_width[static_cast<std::size_t>(sent.size())];
  stats_.drafted += sent.drafted();
  stats_.accepted += static_cast<std::int64_t>(accepted);
  stats_.tokens += static_cast<std::int64_t>(said);
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    credit(stats_.drafters[d], DrafterMask{1} << d, proposed, sent, left.first(said));
  }
  decided += said;
  ScopedTimer timer(stats_.accept_ms);
  for (Drafter* drafter : drafters_) drafter->accept(0, text.first(decided));
  return Status();
}

Status TextReplay::run(std::span<const Token> text, std::size_t given, bool keep,
                       const std::atomic<bool>* interrupt,
                       const std::function<void(std::size_t)>& on_progress) {
  assert(given >= 1 && given <= text.size());
  const std::span<const Token> prompt = text.first(given);
  const std::size_t shared = static_cast<std::size_t>(
      std::mismatch(before_.begin(), before_.end(), prompt.begin(), prompt.end()).first -
      before_.begin());
  {
    ScopedTimer timer(stats_.begin_ms);
    for (Drafter* drafter : drafters_) {
      OUTRIDER_RETURN_IF_ERROR(drafter->begin(0, keep ? shared : 0));
    }
  }
  ++stats_.texts;
  std::size_t decided = given;
  before_.assign(prompt.begin(), prompt.end());
  while (decided < text.size()) {
    if (interrupt != nullptr && interrupt->load()) return cancelled("interrupted");
    OUTRIDER_RETURN_IF_ERROR(step(text, decided, decided == given));
    if (on_progress && stats_.steps % kStepsPerReport == 0) on_progress(decided);
  }
  before_.assign(text.begin(), text.end());
  return Status();
}

}  // namespace outrider
