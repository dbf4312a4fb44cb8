#include "engine/step.h"

namespace outrider {

void emit(Step& step, std::vector<Update>& updates) {
  for (Part& part : step.parts) {
    Sequence& s = *part.sequence;
    if (!s.error.ok()) s.output.finish(FinishReason::kError);
    Update update{.id = s.id, .pieces = s.output.take(), .finished = s.output.finished()};
    if (update.finished || !update.pieces.empty()) updates.push_back(std::move(update));
  }
}

}  // namespace outrider
