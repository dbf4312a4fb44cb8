#include "engine/idle_texts.h"

#include <algorithm>
#include <cassert>

namespace outrider {
namespace {

std::size_t usable(std::span<const Token> text, std::span<const Token> prompt, bool whole_only) {
  if (prompt.empty()) return 0;
  const std::size_t most = std::min(text.size(), prompt.size() - 1);
  std::size_t n = 0;
  while (n < most && text[n] == prompt[n]) ++n;
  return whole_only && n < text.size() ? 0 : n;
}

}  // namespace

std::vector<IdleTexts::Entry>::iterator IdleTexts::find(SeqId seq) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [seq](const Entry& entry) { return entry.seq == seq; });
}

void IdleTexts::put(SeqId seq, std::vector<Token> text) {
  assert(find(seq) == entries_.end());
  entries_.push_back({seq, std::move(text)});
}

std::optional<IdleTexts::Choice> IdleTexts::choose(std::span<const Token> prompt,
                                                   bool whole_only) const {
  if (entries_.empty()) return std::nullopt;
  const Entry* best = nullptr;
  const Entry* spare = nullptr;  // an empty one, else the oldest
  std::size_t most = 0;
  for (const Entry& entry : entries_) {
    const std::size_t n = usable(entry.text, prompt, whole_only);
    if (n > most) {
      best = &entry;
      most = n;
    }
    if (spare == nullptr || (entry.text.empty() && !spare->text.empty())) spare = &entry;
  }
  if (best != nullptr && (2 * most >= best->text.size() || 2 * most >= prompt.size())) {
    return Choice{best->seq, most};
  }
  return Choice{spare->seq, usable(spare->text, prompt, whole_only)};
}

void IdleTexts::remove(SeqId seq) {
  assert(find(seq) != entries_.end());
  entries_.erase(find(seq));
}

std::optional<SeqId> IdleTexts::oldest() const {
  for (const Entry& entry : entries_) {
    if (!entry.text.empty()) return entry.seq;
  }
  return std::nullopt;
}

void IdleTexts::clear(SeqId seq) {
  assert(find(seq) != entries_.end());
  find(seq)->text.clear();
}

}  // namespace outrider
