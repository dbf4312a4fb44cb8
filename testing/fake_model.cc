#include "testing/fake_model.h"
#include "testing/simple_chat.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/random.h"

namespace outrider::testing {
namespace {

// A violated REQUIRES ends the test in every build.
void require(bool kept, const char* requirement) {
  if (kept) return;
  std::fprintf(stderr, "FakeModel: the caller violates REQUIRES: %s\n", requirement);
  std::abort();
}

// The last `width` tokens, each as its id + 1.
std::vector<float> hidden_state(std::span<const Token> context, std::size_t width) {
  std::vector<float> state(width, 0.0f);
  const std::size_t n = std::min(width, context.size());
  for (std::size_t i = 0; i < n; ++i) {
    state[width - 1 - i] = static_cast<float>(context[context.size() - 1 - i] + 1);
  }
  return state;
}

// What encoding adds to each number of a row, so that one that was not encoded is noticed.
constexpr float kEncoded = 1000.0f;

void mark_encoded(std::vector<float>& rows) {
  for (float& value : rows) value += kEncoded;
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
      texts_(static_cast<std::size_t>(capabilities_.n_sequences)),
      tentative_(static_cast<std::size_t>(capabilities_.n_sequences)) {}

Pos FakeModel::length(SeqId seq) const { return static_cast<Pos>(text(seq).size()); }

const std::vector<Token>& FakeModel::text(SeqId seq) const {
  require(seq >= 0 && seq < capabilities_.n_sequences, "a valid sequence");
  return texts_[static_cast<std::size_t>(seq)];
}

bool FakeModel::waits(SeqId seq) const { return tentative(seq).open; }

std::int32_t FakeModel::room(SeqId seq) const {
  if (!dead_.ok()) return 0;
  std::int64_t room = capabilities_.n_ctx - length(seq) - tentative(seq).size();
  if (room_tells_) {
    std::int64_t held = 0;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      held += static_cast<std::int64_t>(texts_[i].size()) + tentative_[i].size();
    }
    room = std::min(room, total_cells_ - held);
  }
  return static_cast<std::int32_t>(std::max<std::int64_t>(room, 0));
}

Status FakeModel::check_item(const EvalItem& item) const {
  std::vector<Token> tokens(item.prefix.begin(), item.prefix.end());
  for (NodeId id = item.first_new; item.tree != nullptr && id < item.tree->size(); ++id) {
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
  const Tentative& t = tentative(item.seq);
  require(t.open == (item.first_new > 0), "a waiting sequence comes with a grown tree, no other");
  if (item.first_new == 0) return Status();
  require(item.prefix.empty() && item.tree != nullptr && t.tree, "a tree that grows");
  if (capabilities_.rollback != Rollback::kAny) return unsupported("trees cannot grow here");
  if (item.first_new != t.tree->size() || item.first_new >= item.tree->size()) {
    return invalid_argument("the tentative tree has other nodes, or none is new");
  }
  for (NodeId id = 0; id < item.first_new; ++id) {
    if (item.tree->token(id) != t.tree->token(id) ||
        item.tree->node(id).parent != t.tree->node(id).parent) {
      return invalid_argument("the tentative tree is another one");
    }
  }
  return Status();
}

Status FakeModel::check(std::span<const EvalItem> items) const {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const EvalItem& item = items[i];
    require(item.seq >= 0 && item.seq < capabilities_.n_sequences, "a valid sequence");
    for (std::size_t j = 0; j < i; ++j) require(items[j].seq != item.seq, "one item a sequence");
    OUTRIDER_RETURN_IF_ERROR(check_item(item));
    total += static_cast<std::int64_t>(item.prefix.size());
    if (item.tree != nullptr) total += item.tree->size() - item.first_new;
  }
  require(total > 0, "at least one token");
  if (total > capabilities_.n_batch) return invalid_argument("the batch is too large");
  for (const std::vector<Token>& text : texts_) total += static_cast<std::int64_t>(text.size());
  for (const Tentative& t : tentative_) total += t.size();
  if (total_cells_ >= 0 && total > total_cells_) return resource_exhausted("no cells are left");
  return Status();
}

Status FakeModel::evaluate(std::span<const EvalItem> items) {
  if (hook_) hook_();
  ++evaluations_;
  if (!dead_.ok()) return dead_;
  if (!evaluate_failures_.empty()) {
    const Status status = evaluate_failures_.front();
    evaluate_failures_.pop_front();
    if (!status.ok()) return status;
  }
  OUTRIDER_RETURN_IF_ERROR(check(items));
  if (interrupt_ != nullptr && interrupt_->load()) return cancelled("interrupted");
  evaluated_.clear();
  const std::int64_t before = tokens_evaluated_;
  for (const EvalItem& item : items) run(item);
  if (after_) after_(tokens_evaluated_ - before);
  return Status();
}

// Of a head the tokens that the hidden state names, and the last of `context`, which is its own
// text; else `context`.
std::vector<Token> FakeModel::seen_context(std::vector<Token> context, const EvalItem& item,
                                           std::size_t token) const {
  const std::size_t width = static_cast<std::size_t>(capabilities_.n_hidden_in);
  if (width == 0) return context;
  require(item.hidden.size() >= (token + 1) * width, "a hidden state with each token of a head");
  std::vector<Token> named;
  for (float value : item.hidden.subspan(token * width, width)) {
    if (capabilities_.n_encoded > 0) value -= kEncoded;
    require(value >= 0.0f, "an encoded state, where the head encodes them");
    if (value > 0.0f) named.push_back(static_cast<Token>(value) - 1);
  }
  named.push_back(context.back());
  const std::size_t n = std::min(named.size(), context.size());
  const bool of_its_text = std::equal(named.end() - static_cast<std::ptrdiff_t>(n), named.end(),
                                      context.end() - static_cast<std::ptrdiff_t>(n));
  require(of_its_text, "the hidden state of the token before, on its own path");
  require(context.size() == 1 || named.size() > 1, "a hidden state behind the first token");
  return named;
}

void FakeModel::run(const EvalItem& item) {
  Evaluated& evaluated = evaluated_.emplace_back();
  evaluated.first_new = item.first_new;
  Tentative& t = tentative(item.seq);
  t.open = true;
  if (item.first_new == 0) t.prefix.assign(item.prefix.begin(), item.prefix.end());
  std::vector<Token> base = text(item.seq);
  base.insert(base.end(), t.prefix.begin(), t.prefix.end());
  tokens_evaluated_ += static_cast<std::int64_t>(item.prefix.size());
  const std::size_t width = static_cast<std::size_t>(capabilities_.n_hidden);
  std::vector<Token> read = text(item.seq);
  for (std::size_t i = 0; width > 0 && i < item.prefix.size(); ++i) {
    read.push_back(item.prefix[i]);
    evaluated.hidden.push_back(hidden_state(seen_context(read, item, i), width));
    if (capabilities_.n_encoded > 0) mark_encoded(evaluated.hidden.back());
  }
  for (NodeId id = item.first_new; item.tree != nullptr && id < item.tree->size(); ++id) {
    std::vector<Token> context = base;
    for (const NodeId at : item.tree->path_to(id)) context.push_back(item.tree->token(at));
    context = seen_context(std::move(context), item,
                           item.prefix.size() + static_cast<std::size_t>(id - item.first_new));
    evaluated.rows.push_back(rows_(context));
    if (width > 0) evaluated.hidden.push_back(hidden_state(context, width));
    if (capabilities_.n_encoded > 0) mark_encoded(evaluated.hidden.back());
    ++tokens_evaluated_;
  }
  t.tree.reset();
  if (item.tree != nullptr) t.tree = *item.tree;
}

std::span<const float> FakeModel::logits(std::size_t item, NodeId node) const {
  const Evaluated& evaluated = evaluated_.at(item);
  require(node >= evaluated.first_new, "logits of the nodes that were run");
  return evaluated.rows.at(static_cast<std::size_t>(node - evaluated.first_new));
}

std::span<const float> FakeModel::hidden(std::size_t item, std::size_t token) const {
  require(capabilities_.n_hidden > 0, "a model that hands out hidden states");
  return evaluated_.at(item).hidden.at(token);
}

Status FakeModel::encode(std::span<const float> rows, std::vector<float>* encoded) {
  const std::size_t width = static_cast<std::size_t>(capabilities_.n_encoded);
  require(width > 0 && rows.size() % width == 0, "whole rows for a model that encodes");
  if (interrupt_ != nullptr && interrupt_->load()) return cancelled("the encoding was interrupted");
  if (!encode_failures_.empty()) {
    const Status status = encode_failures_.front();
    encode_failures_.pop_front();
    if (!status.ok()) return status;
  }
  std::vector<float> made(rows.begin(), rows.end());
  mark_encoded(made);
  encoded->insert(encoded->end(), made.begin(), made.end());
  rows_encoded_ += static_cast<std::int64_t>(rows.size() / width);
  return Status();
}

void FakeModel::die(Status why) {
  dead_ = std::move(why);
  for (std::vector<Token>& text : texts_) text.clear();
  for (Tentative& t : tentative_) t = Tentative();
}

Status FakeModel::commit(SeqId seq, std::span<const NodeId> path) {
  require(seq >= 0 && seq < capabilities_.n_sequences, "a valid sequence");
  if (!dead_.ok()) return dead_;
  require(tentative(seq).open, "commit what was evaluated, once");
  const Tentative t = std::move(tentative(seq));
  tentative(seq) = Tentative();
  if (!commit_failures_.empty()) {
    const Status status = commit_failures_.front();
    commit_failures_.pop_front();
    if (!status.ok()) return status;
  }
  std::vector<Token> kept = t.prefix;
  NodeId parent = kNoNode;
  for (const NodeId node : path) {
    require(t.tree.value().node(node).parent == parent, "a path from the root down");
    kept.push_back(t.tree->token(node));
    parent = node;
  }
  std::vector<Token>& text = texts_[static_cast<std::size_t>(seq)];
  if (static_cast<std::int32_t>(kept.size()) < t.size()) {
    const Rollback rollback = capabilities_.rollback;
    if (rollback == Rollback::kSaved) kept = t.prefix;
    if (rollback == Rollback::kNone || (rollback == Rollback::kSnapshot && path.empty())) {
      kept.clear();
      text.clear();
    }
  }
  text.insert(text.end(), kept.begin(), kept.end());
  return Status();
}

Status FakeModel::truncate(SeqId seq, Pos new_length) {
  if (!dead_.ok()) return dead_;
  require(new_length >= 0 && new_length <= length(seq), "truncate to 0 ... length");
  require(new_length == 0 || !tentative(seq).open, "commit before truncating to a length");
  if (new_length > 0 && capabilities_.rollback != Rollback::kAny) {
    return unsupported("this model cannot forget a part of its state");
  }
  texts_[static_cast<std::size_t>(seq)].resize(static_cast<std::size_t>(new_length));
  tentative(seq) = Tentative();
  return Status();
}

Status FakeModel::share(SeqId from, SeqId to, Pos new_length) {
  if (!dead_.ok()) return dead_;
  require(from != to, "two sequences");
  require(new_length >= 0 && new_length <= length(from), "share 0 ... length of a text");
  OUTRIDER_RETURN_IF_ERROR(truncate(to, 0));
  if (!capabilities_.can_share) return unsupported("this model's sequences cannot share a text");
  if (!share_failures_.empty()) {
    const Status status = share_failures_.front();
    share_failures_.pop_front();
    if (!status.ok()) return status;
  }
  const std::vector<Token>& text = this->text(from);
  texts_[static_cast<std::size_t>(to)].assign(text.begin(), text.begin() + new_length);
  ++shares_;
  return Status();
}

Result<std::vector<std::uint8_t>> FakeModel::save(SeqId seq) {
  if (!dead_.ok()) return dead_;
  require(!tentative(seq).open, "commit before saving");
  ++saves_;
  std::vector<std::uint8_t> bytes;
  for (const Token token : text(seq)) bytes.push_back(static_cast<std::uint8_t>(token));
  return bytes;
}

Status FakeModel::restore(SeqId seq, std::span<const std::uint8_t> bytes, Pos new_length) {
  OUTRIDER_RETURN_IF_ERROR(truncate(seq, 0));
  require(bytes.size() == static_cast<std::size_t>(new_length), "bytes that save() gave");
  texts_[static_cast<std::size_t>(seq)].assign(bytes.begin(), bytes.end());
  return Status();
}

void FakeModel::fail_share(std::vector<Status> statuses) {
  share_failures_.assign(statuses.begin(), statuses.end());
}

void FakeModel::fail_evaluate(std::vector<Status> statuses) {
  evaluate_failures_.assign(statuses.begin(), statuses.end());
}

void FakeModel::fail_encode(std::vector<Status> statuses) {
  encode_failures_.assign(statuses.begin(), statuses.end());
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
    names_.push_back(pieces_.back().empty() ? "<" + std::to_string(t) + ">" : "");
  }
}

std::string_view FakeVocabulary::spelled(Token token) const {
  const std::string& name = names_.at(static_cast<std::size_t>(token));
  return name.empty() ? piece(token) : name;
}

std::string_view FakeVocabulary::piece(Token token) const {
  return pieces_.at(static_cast<std::size_t>(token));
}

Result<std::vector<Token>> FakeVocabulary::tokenize(std::string_view text, bool, bool) const {
  std::vector<Token> tokens;
  for (const char c : text) {
    const Token t = chats_ ? static_cast<unsigned char>(c) % size() : c - 'a';
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

Result<ChatPrompt> FakeVocabulary::chat_prompt(const std::vector<ChatMessage>& messages,
                                               const ChatOptions& options) const {
  if (!chats_) return unsupported("no chat template");
  return simple_chat_prompt(messages, options);
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
