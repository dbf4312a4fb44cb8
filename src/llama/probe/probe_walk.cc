#include "llama/probe/probe_walk.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "base/clock.h"
#include "base/random.h"

namespace outrider::llama {
namespace {

std::size_t argmax(std::span<const float> row) {
  return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

}  // namespace

TokenTree chain_of(std::span<const Token> tokens) {
  TokenTree tree(tokens.front());
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    tree.add(static_cast<NodeId>(i) - 1, tokens[i], /*chance=*/1.0f, /*proposed_by=*/1);
  }
  return tree;
}

std::vector<NodeId> first_nodes(std::int32_t n) {
  std::vector<NodeId> nodes(static_cast<std::size_t>(n));
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::string describe_difference(std::span<const float> got, std::span<const float> wanted) {
  float largest = 0.0f;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float difference = std::fabs(got[i] - wanted[i]);
    if (difference > largest || std::isnan(difference)) largest = difference;
  }
  char text[64];
  std::snprintf(text, sizeof text, "by up to %.2g", static_cast<double>(largest));
  const bool flips = argmax(got) != argmax(wanted);
  return text + std::string(flips ? ", and the most likely token changes" : "");
}

ProbeWalk::ProbeWalk(LanguageModel& model, const ProbeOptions& options)
    : model_(model), options_(options), now_ms_(options.now_ms) {
  const Capabilities& capabilities = model.capabilities();
  for (const std::int32_t cells : options.starts) {
    // Two batches of the widest fit behind a start. deepen() does not use up the context.
    const bool fits = cells + 2 * options.widest <= capabilities.n_ctx;
    if (starts_.empty() || fits || options.deepen) starts_.push_back(cells);
  }
  for (Token token = 0; token < capabilities.n_vocab; ++token) {
    if (!options.usable || options.usable(token)) usable_.push_back(token);
  }
  if (usable_.empty()) {
    usable_.resize(static_cast<std::size_t>(capabilities.n_vocab));
    std::iota(usable_.begin(), usable_.end(), 0);
  }
  if (!now_ms_) now_ms_ = [watch = Stopwatch()] { return watch.elapsed_ms(); };
}

Status ProbeWalk::clear() {
  at_ = -1;
  return model_.truncate(0, 0);
}

Status ProbeWalk::go_to(std::int32_t start) {
  // Where the state cannot drop tokens, the text is read again.
  const bool can_go_back = model_.capabilities().rollback == Rollback::kAny;
  if (at_ == start && can_go_back) return model_.truncate(0, base_length_);
  OUTRIDER_RETURN_IF_ERROR(clear());
  OUTRIDER_RETURN_IF_ERROR(lengthen(starts_.front()));
  if (start > 0) {
    const std::int32_t cells = starts_[static_cast<std::size_t>(start)];
    Status status = options_.deepen ? options_.deepen(cells) : lengthen(cells);
    if (status.code() == StatusCode::kUnsupported) status = lengthen(cells);
    OUTRIDER_RETURN_IF_ERROR(status);
  }
  base_length_ = model_.length(0);
  at_ = start;
  return Status();
}

Status ProbeWalk::lengthen(std::int32_t cells) {
  while (model_.length(0) < cells) {
    const Pos length = model_.length(0);
    const std::int32_t n = std::min(cells - length, model_.capabilities().n_batch);
    std::vector<Token> tokens;
    for (std::int32_t i = 0; i < n; ++i) {
      tokens.push_back(random_token(Stream::kBase, static_cast<std::uint64_t>(length + i)));
    }
    const EvalItem item{.seq = 0, .prefix = tokens, .tree = nullptr};
    OUTRIDER_RETURN_IF_ERROR(evaluate({&item, 1}));
    OUTRIDER_RETURN_IF_ERROR(model_.commit(0, {}));
  }
  return Status();
}

Status ProbeWalk::single_step(Token token, ProbeRow* row) {
  const TokenTree root(token);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
  const double begin = now_ms_();
  OUTRIDER_RETURN_IF_ERROR(evaluate({&item, 1}));
  single_ms_ = now_ms_() - begin;
  const std::span<const float> logits = model_.logits(0, 0);
  row->assign(logits.begin(), logits.end());
  return model_.commit(0, first_nodes(1));
}

Status ProbeWalk::feed(std::span<const Token> tokens, std::int32_t width, ProbeRow* last) {
  while (!tokens.empty()) {
    const std::size_t n = std::min(tokens.size(), static_cast<std::size_t>(width));
    const TokenTree tree = chain_of(tokens.first(n));
    const EvalItem item{.seq = 0, .prefix = {}, .tree = &tree};
    OUTRIDER_RETURN_IF_ERROR(evaluate({&item, 1}));
    const std::span<const float> row = model_.logits(0, static_cast<NodeId>(n) - 1);
    last->assign(row.begin(), row.end());
    OUTRIDER_RETURN_IF_ERROR(model_.commit(0, first_nodes(static_cast<std::int32_t>(n))));
    tokens = tokens.subspan(n);
  }
  return Status();
}

Status ProbeWalk::prepare_others(std::int32_t n_others) {
  for (SeqId seq = 1; seq <= n_others; ++seq) {
    std::vector<Token> prefix;
    for (std::int32_t i = 0; i < 4 + seq; ++i) {
      prefix.push_back(random_token(Stream::kOthers, static_cast<std::uint64_t>(64 * seq + i)));
    }
    const EvalItem item{.seq = seq, .prefix = prefix, .tree = nullptr};
    OUTRIDER_RETURN_IF_ERROR(evaluate({&item, 1}));
    OUTRIDER_RETURN_IF_ERROR(model_.commit(seq, {}));
  }
  return Status();
}

Status ProbeWalk::evaluate(std::span<const EvalItem> items) {
  if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) {
    return cancelled("the probe of exactness was cancelled");
  }
  return model_.evaluate(items);
}

Token ProbeWalk::random_token(Stream stream, std::uint64_t index, std::uint64_t substream) const {
  const std::uint64_t key =
      mix64(options_.seed * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(stream) + substream);
  return usable_[mix64(key + index) % usable_.size()];
}

bool ProbeWalk::is_usable(Token token) const {
  return std::binary_search(usable_.begin(), usable_.end(), token);
}

}  // namespace outrider::llama
