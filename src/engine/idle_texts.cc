#include "engine/idle_texts.h"

#include <algorithm>
#include <cassert>

namespace outrider {
namespace {

// Tokens that the prompt begins with like the text, less the prompt's last.
std::size_t usable(std::span<const Token> text, std::span<const Token> prompt) {
  if (prompt.empty()) return 0;
  const std::size_t most = std::min(text.size(), prompt.size() - 1);
  std::size_t n = 0;
  while (n < most && text[n] == prompt[n]) ++n;
  return n;
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

void IdleTexts::put_oldest(SeqId seq, std::vector<Token> text) {
  assert(find(seq) != entries_.end() && find(seq)->text().empty());
  Entry entry(seq, std::move(text));
  entries_.erase(find(seq));
  entries_.insert(entries_.begin(), std::move(entry));
}

// Of all texts, the one that has most of the prompt; `seq` is not decided.
IdleTexts::Choice IdleTexts::longest(std::span<const Token> prompt,
                                     std::span<const Running> running,
                                     std::size_t least_awaited) const {
  Choice choice;
  for (const Entry& entry : entries_) {
    const std::size_t n = usable(entry.text(), prompt);
    if (n <= choice.kept) continue;
    choice.from = entry.seq;
    choice.kept = n;
  }
  for (const Running& other : running) {
    const std::size_t n = usable(other.text, prompt);
    if (std::min(n, other.held) > choice.kept) {
      choice.from = other.seq;
      choice.kept = std::min(n, other.held);
    }
    if (n <= std::max(choice.awaited, other.held)) continue;
    choice.awaited_seq = other.seq;
    choice.awaited = n;
  }
  if (choice.awaited < choice.kept + least_awaited) choice.awaited = 0;
  return choice;
}

std::optional<IdleTexts::Choice> IdleTexts::choose(std::span<const Token> prompt, Use use,
                                                   std::span<const Running> running,
                                                   std::size_t least_awaited) const {
  if (entries_.empty()) return std::nullopt;
  const bool shares = use == Use::kShared;
  const Choice any = shares ? longest(prompt, running, least_awaited) : Choice();
  std::optional<Choice> best;
  double most = 0.0;
  int best_rank = 0;
  std::size_t age = entries_.size();
  for (const Entry& entry : entries_) {  // from the one put longest ago
    --age;
    std::size_t own = usable(entry.text(), prompt);
    if (use == Use::kWhole && own < entry.text().size()) own = 0;
    const std::size_t gained = shares ? any.kept : own;
    const double lost = static_cast<double>(entry.text().size() - own);
    const double worth = static_cast<double>(gained) - lost / static_cast<double>(2 + age);
    // Among equals the text that the prompt goes on, so that none is held twice; then an empty one.
    const bool goes_on = own > 0 && own == gained && own == entry.text().size();
    const int rank = goes_on ? 2 : entry.text().empty() ? 1 : 0;
    const bool better = !best || worth > most || (worth == most && rank > best_rank);
    if (!better) continue;
    best = any;
    best->seq = entry.seq;
    best->kept = gained;
    if (own == gained) best->from = entry.seq;
    most = worth;
    best_rank = rank;
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

void IdleTexts::clear(SeqId seq) noexcept {
  assert(find(seq) != entries_.end());
  *find(seq) = Entry(seq, {});
}

}  // namespace outrider
