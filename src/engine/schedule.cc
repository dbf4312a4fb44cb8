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

// Of `missing` tokens behind `seen`, those up to the last multiple of `grid` within `room`, if any.
std::int64_t cut(Pos seen, std::int64_t missing, std::int64_t room, std::int64_t grid) {
  if (missing <= room) return missing;
  const std::int64_t end = (seen + room) / grid * grid;
  return end > seen ? end - seen : room;
}

}  // namespace

std::vector<Part> choose_parts(const LanguageModel& target,
                               std::span<const std::unique_ptr<Sequence>> sequences,
                               PromptShare& share) {
  std::vector<Part> parts;
  const std::int64_t n_batch = target.capabilities().n_batch;
  std::int64_t room = n_batch;
  std::vector<Sequence*> again;  // texts that go on once they have been read again
  std::vector<Sequence*> prompts;
  for (const std::unique_ptr<Sequence>& s : sequences) {
    if (s->over() || s->awaited) continue;
    const Pos seen = target.length(s->seq);
    if (s->unseen(seen).size() > 1) {
      (s->answered ? again : prompts).push_back(s.get());
    } else if (room > 0 && !s->only_reads()) {
      parts.push_back(part_of(*s, seen, 1));
      --room;
    }
  }
  const auto read = [&](const std::vector<Sequence*>& readers, std::int64_t most,
                        std::int64_t grid) {
    std::int64_t left = std::min(room, most);
    for (Sequence* s : readers) {
      if (left == 0) break;
      const Pos seen = target.length(s->seq);
      const std::int64_t missing =
          static_cast<std::int64_t>(s->unseen(seen).size()) - (s->only_reads() ? 1 : 0);
      const std::int64_t n = cut(seen, missing, left, grid);
      left -= n;
      room -= n;
      parts.push_back(part_of(*s, seen, n));
    }
  };
  const std::int64_t chunk = std::min<std::int64_t>(n_batch, share.chunk());
  const std::int64_t grid = parts.empty() ? n_batch : chunk;
  read(again, grid, grid);
  const std::int64_t texts = std::ssize(parts);
  if (texts == 0) {
    read(prompts, n_batch, n_batch);
  } else if (!prompts.empty()) {
    const std::int64_t n = share.tokens(texts, std::ssize(prompts));
    read(prompts, n, share.grid());
  }
  return parts;
}

}  // namespace outrider
