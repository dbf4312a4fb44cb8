#include "draft/draft_chain.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <utility>

#include "base/clock.h"

namespace outrider {
namespace {

// The path that takes the likeliest child at each node, at most `longest` tokens.
std::vector<Token> likeliest_path(const TokenTree& tree, std::int32_t longest) {
  std::vector<Token> tokens;
  NodeId at = kRoot;
  while (static_cast<std::int32_t>(tokens.size()) < longest) {
    NodeId best = kNoNode;
    for (NodeId id = at + 1; id < tree.size(); ++id) {
      const bool child = tree.node(id).parent == at;
      if (child && (best == kNoNode || tree.node(id).chance > tree.node(best).chance)) best = id;
    }
    if (best == kNoNode) break;
    tokens.push_back(tree.token(best));
    at = best;
  }
  return tokens;
}

void note_failure(DraftMethodStats& stats, const Status& status) {
  ++stats.failures;
  stats.last_failure = status.message();
}

}  // namespace

DraftChain::DraftChain(std::vector<Drafter*> methods, const DraftChainOptions& options)
    : methods_(std::move(methods)), options_(options), ready_(methods_.size(), false) {
  for (const Drafter* method : methods_) {
    assert(method != nullptr);
    stats_.push_back({.name = std::string(method->name())});
  }
}

DraftChain::~DraftChain() { reset(); }

void DraftChain::begin(std::span<const Token> text) {
  const std::size_t kept = static_cast<std::size_t>(
      std::mismatch(text_.begin(), text_.end(), text.begin(), text.end()).first - text_.begin());
  outstanding_ = 0;
  for (std::size_t i = 0; i < methods_.size(); ++i) {
    ScopedTimer timer(stats_[i].begin_ms);
    const Status status = methods_[i]->begin(options_.seq, ready_[i] ? kept : 0);
    ready_[i] = status.ok();
    if (!status.ok()) note_failure(stats_[i], status);
  }
  text_.assign(text.begin(), text.end());
}

// Tells the methods how the text went on; of another text, that it begins.
Status DraftChain::follow(std::span<const Token> text) {
  if (text.empty()) return invalid_argument("the text is empty, but its last token is the root");
  const bool goes_on = text.size() >= text_.size() && !text_.empty() &&
                       std::equal(text_.begin(), text_.end(), text.begin());
  const std::span<const Token> fresh = goes_on ? text.subspan(text_.size()) : text;
  const std::span<const Token>::iterator bad =
      std::find_if(fresh.begin(), fresh.end(), [](Token token) { return token < 0; });
  if (bad != fresh.end()) {
    return invalid_argument("the text holds " + std::to_string(*bad) + ", which is no token");
  }
  outstanding_ = 0;
  if (!goes_on) {
    begin(text);
    return Status();
  }
  if (fresh.empty()) return Status();
  text_.insert(text_.end(), fresh.begin(), fresh.end());
  for (std::size_t i = 0; i < methods_.size(); ++i) {
    if (!ready_[i]) continue;
    ScopedTimer timer(stats_[i].accept_ms);
    methods_[i]->accept(options_.seq, text_);
  }
  return Status();
}

Status DraftChain::propose(std::span<const Token> text, std::int32_t max_nodes,
                           const DraftShape& shape) {
  OUTRIDER_RETURN_IF_ERROR(follow(text));
  tree_.emplace(text_.back());
  if (max_nodes <= 0) return Status();
  for (std::size_t i = 0; i < methods_.size(); ++i) {
    if (!ready_[i]) continue;
    DraftRequest request{.seq = options_.seq,
                         .text = text_,
                         .seed = options_.seed,
                         .sampler = options_.sampler,
                         .max_nodes = max_nodes,
                         .shape = shape,
                         .mask = 1,
                         .tree = &*tree_};
    ++stats_[i].calls;
    ScopedTimer timer(stats_[i].draft_ms);
    const Status status = draft_one(*methods_[i], request);
    if (!status.ok()) note_failure(stats_[i], status);
    if (tree_->drafted() == 0) continue;
    winner_ = i;
    return Status();
  }
  return Status();
}

// The latest draft holds `drafted` tokens, at most `depth` of them behind each other.
void DraftChain::credit_draft(std::int32_t drafted, std::int32_t depth) {
  if (drafted == 0) return;
  ++stats_[winner_].drafts;
  stats_[winner_].drafted += drafted;
  outstanding_ = depth;
}

Result<std::span<const Token>> DraftChain::draft(std::span<const Token> text,
                                                 std::int32_t max_tokens) {
  DraftShape shape = options_.shape;
  shape.branches = 1;
  OUTRIDER_RETURN_IF_ERROR(propose(text, max_tokens, shape));
  tokens_ = likeliest_path(*tree_, max_tokens);
  const std::int32_t n = static_cast<std::int32_t>(tokens_.size());
  credit_draft(n, n);
  return std::span<const Token>(tokens_);
}

Result<const TokenTree*> DraftChain::draft_tree(std::span<const Token> text,
                                                std::int32_t max_nodes) {
  OUTRIDER_RETURN_IF_ERROR(propose(text, max_nodes, options_.shape));
  if (tree_->drafted() > std::max(0, max_nodes)) {  // parents come first, so a beginning is a tree
    std::vector<bool> keep(static_cast<std::size_t>(tree_->size()), true);
    std::fill(keep.begin() + 1 + max_nodes, keep.end(), false);
    (void)tree_->prune(keep);
  }
  credit_draft(tree_->drafted(), tree_->max_depth());
  return &*tree_;
}

Status DraftChain::accept(std::int32_t n_accepted) {
  if (n_accepted == 0) return Status();
  if (n_accepted < 0 || n_accepted > outstanding_) {
    return invalid_argument("accept(" + std::to_string(n_accepted) +
                            "): the outstanding draft has " + std::to_string(outstanding_) +
                            " tokens; the target's own token is not counted, and a draft is "
                            "accepted once");
  }
  ++stats_[winner_].accepted_drafts;
  stats_[winner_].accepted += n_accepted;
  outstanding_ = 0;
  return Status();
}

bool DraftChain::wants_rows() const {
  for (std::size_t i = 0; i < methods_.size(); ++i) {
    if (ready_[i] && methods_[i]->wants_rows()) return true;
  }
  return false;
}

void DraftChain::observe(Token token, std::span<const float> row) {
  for (std::size_t i = 0; i < methods_.size(); ++i) {
    if (!ready_[i] || !methods_[i]->wants_rows()) continue;
    ScopedTimer timer(stats_[i].accept_ms);
    methods_[i]->observe(options_.seq, token, row);
  }
}

std::string_view DraftChain::drafted_by() const {
  return outstanding_ > 0 ? std::string_view(stats_[winner_].name) : std::string_view();
}

void DraftChain::reset() {
  for (std::size_t i = 0; i < methods_.size(); ++i) {
    methods_[i]->end(options_.seq);
    ready_[i] = false;
  }
  text_.clear();
  tree_.reset();
  tokens_.clear();
  outstanding_ = 0;
}

void DraftChain::clear_statistics() {
  for (DraftMethodStats& stats : stats_) stats = {.name = stats.name};
}

std::string DraftChain::statistics_text() const {
  std::string table =
      "method            calls  drafts  held   drafted  accepted    rate  begin ms  draft ms  "
      "accept "
      "ms";
  for (const DraftMethodStats& s : stats_) {
    char rate[16] = "-";
    if (s.drafted > 0) {
      std::snprintf(rate, sizeof(rate), "%.1f %%",
                    100.0 * static_cast<double>(s.accepted) / static_cast<double>(s.drafted));
    }
    char line[200];
    std::snprintf(line, sizeof(line),
                  "\n%-15s %7lld %7lld %5lld %9lld %9lld %7s %9.2f %9.2f %10.2f", s.name.c_str(),
                  static_cast<long long>(s.calls), static_cast<long long>(s.drafts),
                  static_cast<long long>(s.accepted_drafts), static_cast<long long>(s.drafted),
                  static_cast<long long>(s.accepted), rate, s.begin_ms, s.draft_ms, s.accept_ms);
    table += line;
    if (s.failures > 0) {
      table += "  " + std::to_string(s.failures) + " failed, the last: " + s.last_failure;
    }
  }
  return table;
}

}  // namespace outrider
