#include "testing/fake_block_model.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace outrider::testing {
namespace {

// A violated REQUIRES ends the test in every build.
void require(bool kept, const char* requirement) {
  if (kept) return;
  std::fprintf(stderr, "FakeBlockModel: the caller violates REQUIRES: %s\n", requirement);
  std::abort();
}

}  // namespace

RowFunction lagged_rows(RowFunction rows, std::size_t lag) {
  return [=](std::span<const Token> context) {
    return rows(context.first(context.size() - std::min(lag - 1, context.size() - 1)));
  };
}

FakeBlockModel::FakeBlockModel(BlockCapabilities capabilities, RowFunction rows)
    : capabilities_(capabilities),
      rows_(std::move(rows)),
      texts_(static_cast<std::size_t>(capabilities.n_sequences)) {}

const std::vector<Token>& FakeBlockModel::text(SeqId seq) const {
  require(seq >= 0 && seq < capabilities_.n_sequences, "a valid sequence");
  return texts_[static_cast<std::size_t>(seq)];
}

Status FakeBlockModel::begin_pass(std::size_t n_tokens) {
  last_.clear();
  require(n_tokens > 0, "at least one token");
  if (!failures_.empty()) {
    const Status status = failures_.front();
    failures_.pop_front();
    if (!status.ok()) return status;
  }
  if (n_tokens > static_cast<std::size_t>(capabilities_.n_batch)) {
    return invalid_argument("the batch is too large");
  }
  if (interrupt_ != nullptr && interrupt_->load()) return cancelled("interrupted");
  return Status();
}

Status FakeBlockModel::read(std::span<const BlockText> items) {
  const std::size_t width = static_cast<std::size_t>(capabilities_.n_states);
  std::size_t n_tokens = 0;
  for (const BlockText& item : items) {
    require(item.states.size() % width == 0 && !item.states.empty(), "whole rows");
    n_tokens += item.states.size() / width;
    const std::size_t end = text(item.seq).size() + item.states.size() / width;
    if (end > static_cast<std::size_t>(capabilities_.n_ctx)) {
      return resource_exhausted("the context is full");
    }
  }
  OUTRIDER_RETURN_IF_ERROR(begin_pass(n_tokens));
  for (const BlockText& item : items) {
    std::vector<Token>& text = texts_[static_cast<std::size_t>(item.seq)];
    for (std::size_t i = 0; i < item.states.size(); i += width) {
      std::vector<Token> named;
      for (const float value : item.states.subspan(i, width)) {
        if (value > 0.0f) named.push_back(static_cast<Token>(value) - 1);
      }
      require(!named.empty(), "the state of a token");
      const std::size_t n = std::min(named.size() - 1, text.size());
      require(std::equal(text.end() - static_cast<std::ptrdiff_t>(n), text.end(),
                         named.end() - 1 - static_cast<std::ptrdiff_t>(n)),
              "the states of the text's next tokens, on its own path");
      text.push_back(named.back());
    }
  }
  tokens_read_ += static_cast<std::int64_t>(n_tokens);
  return Status();
}

Status FakeBlockModel::guess(std::span<const BlockRoot> items) {
  std::size_t n_tokens = 0;
  for (const BlockRoot& item : items) {
    require(item.n_guesses >= 1 && item.n_guesses <= capabilities_.most_guesses,
            "1 to most_guesses depths");
    const std::size_t n = static_cast<std::size_t>(item.n_guesses) + 1;
    n_tokens += n;
    if (text(item.seq).size() + n > static_cast<std::size_t>(capabilities_.n_ctx)) {
      return resource_exhausted("the context is full");
    }
    if (item.root < 0 || item.root >= capabilities_.n_vocab) {
      return invalid_argument("the root is outside the vocabulary");
    }
  }
  OUTRIDER_RETURN_IF_ERROR(begin_pass(n_tokens));
  for (const BlockRoot& item : items) {
    std::vector<Token> context = text(item.seq);
    context.push_back(item.root);
    std::vector<std::vector<float>>& rows = last_.emplace_back();
    for (std::int32_t depth = 1; depth <= item.n_guesses; ++depth) {
      rows.push_back(rows_(context));
      context.push_back(kUnknown);
    }
  }
  ++guesses_;
  if (after_) after_(static_cast<std::int64_t>(n_tokens));
  return Status();
}

std::span<const float> FakeBlockModel::logits(std::size_t item, std::int32_t depth) const {
  require(item < last_.size(), "logits of the last guess");
  require(depth >= 1 && static_cast<std::size_t>(depth) <= last_[item].size(), "a depth of it");
  return last_[item][static_cast<std::size_t>(depth) - 1];
}

Status FakeBlockModel::truncate(SeqId seq, Pos length) {
  require(length >= 0 && length <= this->length(seq), "truncate to 0 ... length");
  texts_[static_cast<std::size_t>(seq)].resize(static_cast<std::size_t>(length));
  return Status();
}

Status FakeBlockModel::share(SeqId from, SeqId to, Pos length) {
  require(capabilities_.can_share && from != to, "two sequences of a model that can share");
  require(length >= 0 && length <= this->length(from), "share 0 ... length of a text");
  const std::vector<Token>& source = text(from);
  texts_[static_cast<std::size_t>(to)].assign(source.begin(), source.begin() + length);
  return Status();
}

}  // namespace outrider::testing
