#include "engine/step.h"

namespace outrider {

Update next_update(Sequence& s) {
  Update update{.id = s.id,
                .pieces = s.output.take(),
                .guesses = {.drafted = s.stats.drafted, .accepted = s.stats.accepted},
                .finished = s.output.finished()};
  const std::size_t end = s.n_shown + update.pieces.size();
  if (s.request.logprobs >= 0) {
    update.logprobs.assign(s.logprobs.begin() + static_cast<std::ptrdiff_t>(s.n_shown),
                           s.logprobs.begin() + static_cast<std::ptrdiff_t>(end));
  }
  s.n_shown = end;
  return update;
}

void emit(Step& step, std::vector<Update>& updates) {
  for (Part& part : step.parts) {
    Sequence& s = *part.sequence;
    if (!s.error.ok()) s.output.finish(FinishReason::kError);
    Update update = next_update(s);
    if (update.finished || !update.pieces.empty()) updates.push_back(std::move(update));
  }
}

}  // namespace outrider
