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
  entries_.emplace_back(seq, std::move(text));
}

std::optional<IdleTexts::Choice> IdleTexts::choose(std::span<const Token> prompt,
                                                   bool whole_only) const {
  if (entries_.empty()) return std::nullopt;
  std::optional<Choice> best;
  double most = 0.0;
  bool best_is_empty = false;
  std::size_t age = entries_.size();
  for (const Entry& entry : entries_) {  // from the one put longest ago
    --age;
    const std::size_t kept = usable(entry.text(), prompt, whole_only);
    const double lost = static_cast<double>(entry.text().size() - kept);
    const double worth = static_cast<double>(kept) - lost / static_cast<double>(2 + age);
    const bool better =
        !best || worth > most || (worth == most && entry.text().empty() && !best_is_empty);
    if (!better) continue;
    best = Choice{entry.seq, kept};
    most = worth;
    best_is_empty = entry.text().empty();
  }
  return best;
}

void IdleTexts::remove(SeqId seq) {
  assert(find(seq) != entries_.end());
  entries_.erase(find(seq));
}

std::optional<SeqId> IdleTexts::oldest() const {
  for (const Entry& entry : entries_) {
    if (!entry.text().empty()) return entry.seq;
  }
  return std::nullopt;
}

void IdleTexts::clear(SeqId seq) {
  assert(find(seq) != entries_.end());
  *find(seq) = Entry(seq, {});
}

}  // namespace outrider
