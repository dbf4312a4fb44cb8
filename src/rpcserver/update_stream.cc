#include "rpcserver/update_stream.h"

#include <iterator>
#include <utility>

#include "base/utf8.h"

namespace outrider::rpcserver {

std::vector<TextUpdate> UpdateStream::add(std::vector<SaidToken> tokens) {
  waiting_.insert(waiting_.end(), std::make_move_iterator(tokens.begin()),
                  std::make_move_iterator(tokens.end()));
  return cut(/*at_end=*/false);
}

std::vector<TextUpdate> UpdateStream::finish() {
  std::vector<TextUpdate> updates = cut(/*at_end=*/true);
  waiting_.clear();
  return updates;
}

std::vector<TextUpdate> UpdateStream::cut(bool at_end) {
  std::vector<TextUpdate> updates;
  std::size_t sent = 0;      // tokens that are in `updates`
  std::size_t sendable = 0;  // tokens up to the last one with text that ends a character
  std::string content;       // of the tokens from `sent` on
  const auto close = [&] {
    TextUpdate& update = updates.emplace_back();
    for (; sent < sendable; ++sent) {
      update.content += waiting_[sent].text;
      update.tokens.push_back(std::move(waiting_[sent]));
    }
    content.clear();
  };
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const SaidToken& token = waiting_[i];
    content += token.text;
    const bool whole = complete_utf8_prefix(content) == content.size();
    if (token.text.empty() || (!whole && !at_end)) continue;
    sendable = i + 1;
    if (whole && (per_token_ || token.by == "target")) close();
  }
  if (sendable > sent) close();
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(sent));
  return updates;
}

}  // namespace outrider::rpcserver
