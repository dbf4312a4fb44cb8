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
          .ready = ready};
}

}  // namespace

std::vector<Part> choose_parts(const LanguageModel& target,
                               std::span<const std::unique_ptr<Sequence>> sequences,
                               std::int32_t prompt_chunk) {
  std::vector<Part> parts;
  const std::int64_t n_batch = target.capabilities().n_batch;
  std::int64_t room = n_batch;
  std::vector<Sequence*> readers;
  for (const std::unique_ptr<Sequence>& s : sequences) {
    if (s->over() || s->awaited) continue;
    const Pos seen = target.length(s->seq);
    if (s->unseen(seen).size() > 1) {
      readers.push_back(s.get());
    } else if (room > 0) {
      parts.push_back(part_of(*s, seen, 1));
      --room;
    }
  }
  const bool alone = parts.empty();
  const std::int64_t grid = alone ? n_batch : std::min<std::int64_t>(n_batch, prompt_chunk);
  room = std::min(room, grid);
  for (Sequence* s : readers) {
    if (room == 0) break;
    const Pos seen = target.length(s->seq);
    const std::int64_t missing = static_cast<std::int64_t>(s->unseen(seen).size());
    const std::int64_t n = std::min({missing, grid - seen % grid, room});
    room -= n;
    parts.push_back(part_of(*s, seen, n));
  }
  return parts;
}

}  // namespace outrider
