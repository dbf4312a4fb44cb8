#include "testing/text_replay.h"

#include <algorithm>

#include "base/clock.h"

namespace outrider::testing {
namespace {

// The `n` tokens before `end`, as a key.
std::string gram(std::span<const Token> text, std::size_t end, std::size_t n) {
  return std::string(reinterpret_cast<const char*>(text.data() + (end - n)), n * sizeof(Token));
}

}  // namespace

TextReplay replay_text(Drafter& drafter, std::span<const Token> text, std::int32_t width,
                       std::int32_t branches, float split_p) {
  TextReplay result;
  std::size_t at = 1;
  (void)drafter.begin(0, 0);
  while (at < text.size()) {
    TokenTree tree(text[at - 1]);
    DraftRequest request;
    request.text = text.first(at);
    request.max_nodes = width - 1;
    request.shape.branches = branches;
    request.shape.split_p = split_p;
    request.mask = 1;
    request.tree = &tree;
    const Stopwatch watch;
    (void)drafter.draft(std::span(&request, 1));
    result.draft_ms += watch.elapsed_ms();
    NodeId node = kRoot;
    std::size_t n = 0;
    while (at + n < text.size() && (node = tree.child(node, text[at + n])) != kNoNode) ++n;
    ++result.steps;
    result.drafted += tree.drafted();
    result.accepted += static_cast<std::int64_t>(n);
    at = std::min(at + n + 1, text.size());
    drafter.accept(0, text.first(at));
  }
  result.tokens = static_cast<std::int64_t>(text.size()) - 1;
  return result;
}

Status NaiveLongestMatch::draft(std::span<DraftRequest> requests) {
  for (DraftRequest& request : requests) {
    const std::span<const Token> text = request.text;
    // An occurrence ends before the text does, so that something follows it.
    for (; n_seen_ + 1 < text.size(); ++n_seen_) {
      const std::size_t end = n_seen_ + 1;
      for (std::size_t n = 1; n <= std::min(kLongest, end); ++n)
        last_end_[gram(text, end, n)] = end;
    }
    std::size_t from = text.size();
    for (std::size_t n = std::min(kLongest, text.size()); n > 0 && from == text.size(); --n) {
      const std::unordered_map<std::string, std::size_t>::const_iterator found =
          last_end_.find(gram(text, text.size(), n));
      if (found != last_end_.end()) from = found->second;
    }
    NodeId node = kRoot;
    for (std::int32_t i = 0; i < request.max_nodes && from < text.size(); ++i, ++from) {
      node = request.tree->add(node, text[from], 0.5f, request.mask);
    }
  }
  return Status();
}

}  // namespace outrider::testing
