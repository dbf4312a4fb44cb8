#include "draft/recycle/recycle.h"

#include <algorithm>
#include <queue>

#include "dist/log_probability.h"

namespace outrider {
namespace {

// How often the text went on with the successor of each rank: SmolLM2-135M, 12 texts of
// bench/prompts.jsonl, 256 tokens each.
constexpr std::array<float, RecycleDrafter::kSuccessors> kRankChance = {
    0.30f, 0.09f, 0.05f, 0.035f, 0.025f, 0.02f, 0.015f, 0.012f};

struct Candidate {
  float chance;
  NodeId parent;
  Token token;
};

struct LessLikely {
  bool operator()(const Candidate& a, const Candidate& b) const {
    if (a.chance != b.chance) return a.chance < b.chance;
    return a.parent > b.parent;
  }
};

}  // namespace

RecycleDrafter::RecycleDrafter(std::int32_t n_vocab, std::int32_t n_sequences)
    : n_vocab_(n_vocab), tables_(static_cast<std::size_t>(n_sequences)) {}

Status RecycleDrafter::begin(SeqId seq, std::size_t kept) {
  Table& table = tables_[static_cast<std::size_t>(seq)];
  // The last token of a text is never part of what is kept of its state.
  if (kept + 1 < table.text_size || kept == 0) end(seq);
  return Status();
}

void RecycleDrafter::accept(SeqId seq, std::span<const Token> text) {
  tables_[static_cast<std::size_t>(seq)].text_size = text.size();
}

void RecycleDrafter::end(SeqId seq) { tables_[static_cast<std::size_t>(seq)] = Table(); }

void RecycleDrafter::observe(SeqId seq, Token token, std::span<const float> row) {
  if (token < 0 || token >= n_vocab_) return;
  Table& table = tables_[static_cast<std::size_t>(seq)];
  if (table.of.empty()) {
    Successors none;
    none.fill(kNoToken);
    table.of.assign(static_cast<std::size_t>(n_vocab_), none);
  }
  const std::vector<Token> best =
      likeliest(row.first(std::min(row.size(), static_cast<std::size_t>(n_vocab_))), kSuccessors);
  Successors& successors = table.of[static_cast<std::size_t>(token)];
  successors.fill(kNoToken);
  std::copy(best.begin(), best.end(), successors.begin());
}

Status RecycleDrafter::draft(std::span<DraftRequest> requests) {
  for (DraftRequest& request : requests) {
    const Table& table = tables_[static_cast<std::size_t>(request.seq)];
    if (!table.of.empty()) grow(table, request);
  }
  return Status();
}

// Best first. A node's first successor goes on with its path, each further one is a leaf more.
void RecycleDrafter::grow(const Table& table, DraftRequest& request) const {
  TokenTree& tree = *request.tree;
  std::priority_queue<Candidate, std::vector<Candidate>, LessLikely> open;
  const auto expand = [&](NodeId node, Token token, float chance) {
    if (token < 0 || token >= n_vocab_) return;
    const Successors& successors = table.of[static_cast<std::size_t>(token)];
    for (std::size_t rank = 0; rank < kSuccessors && successors[rank] != kNoToken; ++rank) {
      open.push({chance * kRankChance[rank], node, successors[rank]});
    }
  };
  expand(kRoot, tree.token(kRoot), 1.0f);
  std::vector<bool> has_child(1, false);  // [nodes of ours]
  std::vector<NodeId> ours = {kRoot};
  std::int32_t leaves = 1;
  while (!open.empty() && static_cast<std::int32_t>(ours.size()) <= request.max_nodes) {
    const Candidate best = open.top();
    open.pop();
    const std::size_t parent = static_cast<std::size_t>(best.parent);
    if (has_child[parent] && leaves >= request.shape.branches) continue;
    leaves += has_child[parent] ? 1 : 0;
    has_child[parent] = true;
    has_child.push_back(false);
    ours.push_back(tree.add(ours[parent], best.token, best.chance, request.mask));
    expand(static_cast<NodeId>(ours.size()) - 1, best.token, best.chance);
  }
}

std::size_t RecycleDrafter::memory_bytes() const {
  std::size_t bytes = 0;
  for (const Table& table : tables_) bytes += table.of.capacity() * sizeof(Successors);
  return bytes;
}

std::string RecycleDrafter::check_integrity() const {
  for (std::size_t seq = 0; seq < tables_.size(); ++seq) {
    for (std::size_t token = 0; token < tables_[seq].of.size(); ++token) {
      const Successors& successors = tables_[seq].of[token];
      bool ended = false;
      for (std::size_t rank = 0; rank < kSuccessors; ++rank) {
        const Token successor = successors[rank];
        const std::string where =
            "sequence " + std::to_string(seq) + ", token " + std::to_string(token) + ": ";
        if (successor == kNoToken) {
          ended = true;
        } else if (ended) {
          return where + "a gap among the successors";
        } else if (successor < 0 || successor >= n_vocab_) {
          return where + "a successor outside the vocabulary";
        } else if (std::count(successors.begin(), successors.end(), successor) != 1) {
          return where + "a successor twice";
        }
      }
    }
  }
  return "";
}

std::unique_ptr<LookupDrafter> make_recycle_drafter(const LookupSettings& settings) {
  return std::make_unique<RecycleDrafter>(settings.n_vocab, settings.n_sequences);
}

}  // namespace outrider
