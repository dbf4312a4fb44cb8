#include "llama/sampling/row_edits.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>
#include <utility>

#include "base/types.h"
#include "llama/vocabulary/vocabulary.h"

namespace outrider::llama {
namespace {

// What a bias makes of a logit lies within this, and no penalty raises one above it: beyond 3e8
// llama.cpp's sort of the candidates overflows, and a token that should come for sure would be gone
// (docs/bugs.md). Where two tokens are biased as far, the one is as sure as the other.
constexpr float kMostBiased = 1e7f;

bool uses_penalties(const SamplingOptions& o) {
  return o.mirostat == 0 && o.repeat_last_n > 0 &&
         (o.repeat_penalty != 1.0f || o.frequency_penalty != 0.0f || o.presence_penalty != 0.0f);
}

bool uses_dry(const SamplingOptions& o) {
  return o.mirostat == 0 && o.dry_multiplier > 0.0f && o.dry_penalty_last_n > 0;
}

Status check_without_vocabulary(const SamplingOptions& o) {
  const char* needs = o.ignore_eos                               ? "ignore_eos"
                      : uses_dry(o)                              ? "dry_multiplier"
                      : uses_penalties(o) && !o.penalize_newline ? "penalize_newline"
                                                                 : nullptr;
  if (needs == nullptr) return Status();
  return refused(needs, "needs a vocabulary, and this sampler has none");
}

// Where `token` is, or would be.
std::vector<TokenCount>::iterator place_of(std::vector<TokenCount>& sorted, Token token) {
  return std::lower_bound(sorted.begin(), sorted.end(), token,
                          [](const TokenCount& a, Token b) { return a.token < b; });
}

}  // namespace

Result<RowEdits> RowEdits::create(const SamplingOptions& o, std::int32_t n_vocab,
                                  std::span<const Token> suppressed,
                                  const LlamaVocabulary* vocabulary) {
  RowEdits edits;
  for (const LogitBias& bias : o.logit_bias) {
    if (bias.token >= 0 && bias.token < n_vocab) continue;
    return refused("logit_bias", "names token " + std::to_string(bias.token) +
                                     ", but the vocabulary has " + std::to_string(n_vocab) +
                                     " tokens, 0 to " + std::to_string(n_vocab - 1));
  }
  Fixed fixed;
  fixed.biases = o.logit_bias;
  fixed.never.assign(suppressed.begin(), suppressed.end());
  if (vocabulary == nullptr) OUTRIDER_RETURN_IF_ERROR(check_without_vocabulary(o));
  for (Token token = 0; o.ignore_eos && token < vocabulary->size(); ++token) {
    if (vocabulary->is_end_of_generation(token)) fixed.never.push_back(token);
  }
  if (uses_penalties(o)) {
    edits.penalties_.reset(llama_sampler_init_penalties(n_vocab, o.repeat_last_n, o.repeat_penalty,
                                                        o.frequency_penalty, o.presence_penalty));
    edits.window_ = static_cast<std::size_t>(o.repeat_last_n);
    if (!o.penalize_newline) {  // kNoToken where the model has none
      fixed.unpenalized = llama_vocab_nl(vocabulary->handle());
    }
  }
  if (uses_dry(o)) {
    fixed.dry.emplace(o, vocabulary->dry_breakers(o.dry_sequence_breakers));
    edits.window_ = std::max(edits.window_, static_cast<std::size_t>(o.dry_penalty_last_n));
  }
  edits.fixed_ = std::make_shared<const Fixed>(std::move(fixed));
  return edits;
}

std::span<const float> RowEdits::apply(std::span<const float> row) {
  if (fixed_->biases.empty() && fixed_->never.empty() && history_.empty()) return row;
  row_.assign(row.begin(), row.end());
  for (const LogitBias& bias : fixed_->biases) {
    const std::size_t i = static_cast<std::size_t>(bias.token);
    if (i >= row_.size()) continue;
    row_[i] += bias.bias;
    if (std::isfinite(row_[i])) row_[i] = std::clamp(row_[i], -kMostBiased, kMostBiased);
  }
  for (const Token token : fixed_->never) {
    const std::size_t i = static_cast<std::size_t>(token);
    if (i < row_.size()) row_[i] = kRuledOut;
  }
  if (!history_.empty()) apply_history();
  return row_;
}

void RowEdits::apply_history() {
  candidates_.clear();
  for (const TokenCount& in : in_window_) {
    const std::size_t i = static_cast<std::size_t>(in.token);
    if (i < row_.size()) candidates_.push_back({.id = in.token, .logit = row_[i], .p = 0.0f});
  }
  llama_token_data_array array{
      .data = candidates_.data(), .size = candidates_.size(), .selected = -1, .sorted = false};
  if (penalties_) {
    llama_sampler_apply(penalties_.get(), &array);
    // Penalties leave the candidates in their order.
    const Token unpenalized = fixed_->unpenalized;
    for (std::size_t i = 0; unpenalized != kNoToken && i < array.size; ++i) {
      if (array.data[i].id != unpenalized) continue;
      array.data[i].logit = row_[static_cast<std::size_t>(unpenalized)];
    }
  }
  if (fixed_->dry) fixed_->dry->apply(history_, candidates_, dry_scratch_);
  for (const llama_token_data& c : candidates_) {
    row_[static_cast<std::size_t>(c.id)] = std::min(c.logit, kMostBiased);
  }
}

// The penalties, and the text. What is in front of the window goes now and then.
void RowEdits::keep(Token token) {
  if (penalties_) llama_sampler_accept(penalties_.get(), token);
  if (history_.size() >= 2 * window_) {
    history_.erase(history_.begin(), history_.end() - static_cast<std::ptrdiff_t>(window_));
  }
  history_.push_back(token);
}

void RowEdits::accept(std::span<const Token> tokens) {
  if (!has_history()) return;
  // llama.cpp's penalties hold no more than their window, either.
  for (const Token token : tokens.last(std::min(window_, tokens.size()))) keep(token);
  count_window();
}

void RowEdits::accept(Token token) {
  if (!has_history()) return;
  if (history_.size() >= window_) remove(history_[history_.size() - window_]);
  keep(token);
  add(token);
}

void RowEdits::count_window() {
  const std::size_t n = std::min(window_, history_.size());
  std::vector<Token> sorted(history_.end() - static_cast<std::ptrdiff_t>(n), history_.end());
  std::sort(sorted.begin(), sorted.end());
  in_window_.clear();
  for (const Token token : sorted) {
    if (in_window_.empty() || in_window_.back().token != token) in_window_.push_back({token, 0});
    ++in_window_.back().count;
  }
}

void RowEdits::add(Token token) {
  const std::vector<TokenCount>::iterator at = place_of(in_window_, token);
  if (at != in_window_.end() && at->token == token) {
    ++at->count;
  } else {
    in_window_.insert(at, {token, 1});
  }
}

// REQUIRES: it is there
void RowEdits::remove(Token token) {
  const std::vector<TokenCount>::iterator at = place_of(in_window_, token);
  assert(at != in_window_.end() && at->token == token);
  if (--at->count == 0) in_window_.erase(at);
}

RowEdits RowEdits::clone() const {
  RowEdits copy;
  copy.fixed_ = fixed_;
  copy.penalties_ = clone_sampler(penalties_);
  copy.window_ = window_;
  const std::size_t n = std::min(window_, history_.size());
  copy.history_.assign(history_.end() - static_cast<std::ptrdiff_t>(n), history_.end());
  copy.in_window_ = in_window_;
  return copy;
}

}  // namespace outrider::llama
