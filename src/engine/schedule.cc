#include "engine/schedule.h"

#include <algorithm>

namespace outrider {
namespace {

Part part_of(Sequence& s, Pos seen, std::int64_t n_tokens) {
  if (!s.started) {
    s.started = true;
    s.waited_ms = s.age.elapsed_ms();
  }
  const std::span<const Token> unseen = s.unseen(seen);
  const bool ready = n_tokens == static_cast<std::int64_t>(unseen.size());
  return {.sequence = &s,
          .seen = seen,
          .prefix = unseen.first(static_cast<std::size_t>(ready ? n_tokens - 1 : n_tokens)),
          .ready = ready,
          .as_prompt = s.is_prompt(seen)};
}

std::int64_t missing_of(const Sequence& s, Pos seen) {
  return static_cast<std::int64_t>(s.unseen(seen).size()) - (s.only_reads() ? 1 : 0);
}

// The least that another request waits for, behind what the target holds; all, where none does.
std::int64_t wanted_of(const Sequence& s, Pos seen,
                       std::span<const std::unique_ptr<Sequence>> sequences) {
  std::int64_t wanted = missing_of(s, seen);
  for (const std::unique_ptr<Sequence>& other : sequences) {
    if (other->over() || !other->awaited || other->awaited->id != s.id) continue;
    const std::int64_t behind = static_cast<std::int64_t>(other->awaited->tokens) - seen;
    if (behind > 0) wanted = std::min(wanted, behind);
  }
  return wanted;
}

}  // namespace

std::vector<Part> choose_parts(const LanguageModel& target,
                               std::span<const std::unique_ptr<Sequence>> sequences,
                               PromptShare& share, PromptDivision& division) {
  std::vector<Part> parts;
  const std::int64_t n_batch = target.capabilities().n_batch;
  std::int64_t room = n_batch;
  std::vector<Sequence*> again;  // texts that go on once they have been read again
  std::vector<Sequence*> prompts;
  for (const std::unique_ptr<Sequence>& s : sequences) {
    if (s->over() || s->awaited) continue;
    const Pos seen = target.length(s->seq);
    if (s->unseen(seen).size() > 1) {
      (s->is_prompt(seen) ? prompts : again).push_back(s.get());
    } else if (room > 0 && !s->only_reads()) {
      parts.push_back(part_of(*s, seen, 1));
      --room;
    }
  }
  const auto read = [&](Sequence& s, Pos seen, std::int64_t n) {
    if (n == 0) return;
    room -= n;
    parts.push_back(part_of(s, seen, n));
  };
  const std::int64_t chunk = std::min<std::int64_t>(n_batch, share.chunk());
  std::int64_t grid = parts.empty() ? n_batch : chunk;
  std::int64_t left = std::min(room, grid);
  for (Sequence* s : again) {
    const Pos seen = target.length(s->seq);
    const std::int64_t n = cut_at_grid(seen, missing_of(*s, seen), left, grid);
    left -= n;
    read(*s, seen, n);
  }
  if (prompts.empty()) return parts;
  const std::int64_t texts = std::ssize(parts);
  grid = texts == 0 ? n_batch : share.grid();
  const std::int64_t most = texts == 0 ? n_batch : share.tokens(texts, std::ssize(prompts));
  std::vector<PromptDivision::Unread> unread;
  for (const Sequence* s : prompts) {
    const Pos seen = target.length(s->seq);
    unread.push_back(
        {.seen = seen, .missing = missing_of(*s, seen), .wanted = wanted_of(*s, seen, sequences)});
  }
  const std::vector<std::int64_t> given = division.divide(unread, std::min(room, most), grid);
  for (std::size_t i = 0; i < prompts.size(); ++i) read(*prompts[i], unread[i].seen, given[i]);
  return parts;
}

}  // namespace outrider
