#include "testing/fake_model.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/random.h"

namespace outrider::testing {
namespace {

// A broken promise of the caller ends the test in every build.
void require(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "FakeModel: the caller broke a promise: %s\n", promise);
  std::abort();
}

// A number in [-1, 1) from the last tokens of a context.
float mixed(std::uint64_t seed, std::span<const Token> context, std::size_t memory, Token token) {
  std::uint64_t h = mix64(seed);
  const std::size_t n = std::min(memory, context.size());
  for (const Token t : context.last(n)) h = mix64(h ^ static_cast<std::uint64_t>(t + 1));
  h = mix64(h + static_cast<std::uint64_t>(token) * 0x9e3779b97f4a7c15ULL);
  return static_cast<float>(static_cast<double>(h >> 11) * 0x1p-52 - 1.0);
}

}  // namespace

RowFunction random_rows(std::int32_t n_vocab, std::uint64_t seed, float spread,
                        std::size_t memory) {
  return [=](std::span<const Token> context) {
    std::vector<float> row(static_cast<std::size_t>(n_vocab));
    for (Token t = 0; t < n_vocab; ++t) {
      row[static_cast<std::size_t>(t)] = spread * mixed(seed, context, memory, t);
    }
    return row;
  };
}

RowFunction noisy_rows(RowFunction rows, std::uint64_t seed, float noise) {
  return [=](std::span<const Token> context) {
    std::vector<float> row = rows(context);
    for (std::size_t t = 0; t < row.size(); ++t) {
      row[t] += noise * mixed(seed, context, 4, static_cast<Token>(t));
    }
    return row;
  };
}

FakeModel::FakeModel(Capabilities capabilities, RowFunction rows)
    : capabilities_(std::move(capabilities)),
      rows_(std::move(rows)),
      texts_(static_cast<std::size_t>(capabilities_.n_sequences)) {}

Pos FakeModel::length(SeqId seq) const { return static_cast<Pos>(text(seq).size()); }

const std::vector<Token>& FakeModel::text(SeqId seq) const {
  require(seq >= 0 && seq < capabilities_.n_sequences, "a valid sequence");
  return texts_[static_cast<std::size_t>(seq)];
}

std::int32_t FakeModel::room(SeqId seq) const { return capabilities_.n_ctx - length(seq); }

Status FakeModel::check(std::span<const EvalItem> items) const {
  std::int64_t total = 0;
  for (const EvalItem& item : items) {
    std::vector<Token> tokens(item.prefix.begin(), item.prefix.end());
    for (NodeId id = 0; item.tree != nullptr && id < item.tree->size(); ++id) {
      tokens.push_back(item.tree->token(id));
    }
    for (const Token t : tokens) {
      if (t < 0 || t >= capabilities_.n_vocab) {
        return invalid_argument("token " + std::to_string(t) + " is outside the vocabulary");
      }
    }
    if (item.tree != nullptr) {
      require(item.tree->check_integrity().empty(), "an intact tree");
      if (static_cast<std::int32_t>(item.tree->leaves().size()) > capabilities_.max_leaves ||
          item.tree->size() > capabilities_.max_width) {
        return invalid_argument("a tree is wider than the model allows");
      }
    }
    if (static_cast<std::int64_t>(tokens.size()) > room(item.seq)) {
      return resource_exhausted("the context is full");
    }
    total += static_cast<std::int64_t>(tokens.size());
  }
  require(total > 0, "at least one token");
  if (total > capabilities_.n_batch) return invalid_argument("the batch is too large");
  for (const std::vector<Token>& text : texts_) total += static_cast<std::int64_t>(text.size());
  if (total_cells_ >= 0 && total > total_cells_) return resource_exhausted("no cells are left");
  return Status();
}

Status FakeModel::evaluate(std::span<const EvalItem> items) {
  for (const Waiting& w : waiting_) require(w.committed, "commit before the next evaluate");
  if (hook_) hook_();
  ++evaluations_;
  if (!evaluate_failures_.empty()) {
    const Status status = evaluate_failures_.front();
    evaluate_failures_.pop_front();
    if (!status.ok()) return status;
  }
  OUTRIDER_RETURN_IF_ERROR(check(items));
  if (interrupt_ != nullptr && interrupt_->load()) return cancelled("interrupted");

  waiting_.clear();
  for (const EvalItem& item : items) {
    for (const Waiting& w : waiting_) require(w.seq != item.seq, "one item a sequence");
    Waiting w{};
    w.seq = item.seq;
    w.prefix.assign(item.prefix.begin(), item.prefix.end());
    std::vector<Token> base = text(item.seq);
    base.insert(base.end(), w.prefix.begin(), w.prefix.end());
    tokens_evaluated_ += static_cast<std::int64_t>(w.prefix.size());
    for (NodeId id = 0; item.tree != nullptr && id < item.tree->size(); ++id) {
      std::vector<Token> context = base;
      for (const NodeId at : item.tree->path_to(id)) context.push_back(item.tree->token(at));
      w.rows.push_back(rows_(context));
      ++tokens_evaluated_;
    }
    if (item.tree != nullptr) w.tree.push_back(*item.tree);
    waiting_.push_back(std::move(w));
  }
  return Status();
}

std::span<const float> FakeModel::logits(std::size_t item, NodeId node) const {
  return waiting_.at(item).rows.at(static_cast<std::size_t>(node));
}

Status FakeModel::commit(std::size_t item, std::span<const NodeId> path) {
  Waiting& w = waiting_.at(item);
  require(!w.committed, "one commit an item");
  w.committed = true;
  if (!commit_failures_.empty()) {
    const Status status = commit_failures_.front();
    commit_failures_.pop_front();
    if (!status.ok()) return status;
  }
  std::vector<Token>& text = texts_[static_cast<std::size_t>(w.seq)];
  text.insert(text.end(), w.prefix.begin(), w.prefix.end());
  NodeId parent = kNoNode;
  for (const NodeId node : path) {
    require(w.tree.at(0).node(node).parent == parent, "a path from the root down");
    text.push_back(w.tree[0].token(node));
    parent = node;
  }
  return Status();
}

Status FakeModel::truncate(SeqId seq, Pos new_length) {
  require(new_length >= 0 && new_length <= length(seq), "truncate to 0 ... length");
  if (new_length > 0 && capabilities_.rollback != Rollback::kAny) {
    return unsupported("this model cannot forget a part of its state");
  }
  texts_[static_cast<std::size_t>(seq)].resize(static_cast<std::size_t>(new_length));
  return Status();
}

void FakeModel::fail_evaluate(std::vector<Status> statuses) {
  evaluate_failures_.assign(statuses.begin(), statuses.end());
}

void FakeModel::fail_commit(std::vector<Status> statuses) {
  commit_failures_.assign(statuses.begin(), statuses.end());
}

FakeVocabulary::FakeVocabulary(std::int32_t size, Token end, std::map<Token, std::string> pieces)
    : end_(end) {
  for (Token t = 0; t < size; ++t) {
    const std::map<Token, std::string>::const_iterator given = pieces.find(t);
    const std::string letter(1, static_cast<char>('a' + t % 26));
    pieces_.push_back(given != pieces.end() ? given->second : t == end ? "" : letter);
  }
}

std::string_view FakeVocabulary::piece(Token token) const {
  return pieces_.at(static_cast<std::size_t>(token));
}

Result<std::vector<Token>> FakeVocabulary::tokenize(std::string_view text, bool, bool) const {
  std::vector<Token> tokens;
  for (const char c : text) {
    const Token t = c - 'a';
    if (t < 0 || t >= size()) return invalid_argument("only letters here");
    tokens.push_back(t);
  }
  return tokens;
}

Result<std::string> FakeVocabulary::detokenize(const std::vector<Token>& tokens) const {
  std::string text;
  for (const Token t : tokens) text += piece(t);
  return text;
}

Result<std::string> FakeVocabulary::apply_chat_template(const std::vector<ChatMessage>&) const {
  return unsupported("no chat template");
}

Distribution FakeSampler::apply(std::span<const float> logits) {
  if (temperature_ > 0.0f) return {.logits = logits, .scale = 1.0f / temperature_};
  const std::ptrdiff_t best = argmax(logits);
  if (best < 0) return {};
  only_ = static_cast<Token>(best);
  return {.logits = std::span<const float>(&only_logit_, 1),
          .tokens = std::span<const Token>(&only_, 1)};
}

}  // namespace outrider::testing
