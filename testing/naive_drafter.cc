#include "testing/naive_drafter.h"

#include <algorithm>

namespace outrider::testing {
namespace {

// The `n` tokens before `end`, as a key.
std::string gram(std::span<const Token> text, std::size_t end, std::size_t n) {
  return std::string(reinterpret_cast<const char*>(text.data() + (end - n)), n * sizeof(Token));
}

}  // namespace

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
