#include "base/clock.h"
#include "engine/step.h"

namespace outrider {
namespace {

void teach_drafters(const Step& step, const Part& part) {
  Sequence& s = *part.sequence;
  if (s.planned) step.planner.learn(*s.proposed, part.walk->emitted, s.asked, s.plan);
  if (!s.wants_drafts() || s.over()) return;
  for (std::size_t d = 0; d < step.drafters.size(); ++d) {
    if (!s.asks(d)) continue;
    ScopedTimer timer(s.stats.drafters[d].accept_ms);
    Drafter& drafter = *step.drafters[d];
    for (NodeId id = 0; drafter.wants_rows() && id < s.sent->size(); ++id) {
      if (s.sent->is_filler(id)) continue;  // nobody's guess
      const std::span<const float> row =
          step.target.logits(static_cast<std::size_t>(part.item), id);
      drafter.observe(s.seq, s.sent->token(id), row);
    }
    drafter.accept(s.seq, s.text);
  }
}

}  // namespace

void commit(Step& step) {
  for (Part& part : step.parts) {
    if (part.item < 0) continue;
    Sequence& s = *part.sequence;
    std::span<const NodeId> path;
    if (part.walk) path = part.walk->path;
    const Status status = step.target.commit(s.seq, path);
    if (!status.ok()) s.error = status;
    if (part.walk) teach_drafters(step, part);
  }
}

}  // namespace outrider
