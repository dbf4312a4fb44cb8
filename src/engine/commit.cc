#include "base/clock.h"
#include "engine/step.h"

namespace outrider {
namespace {

void teach_drafters(const Step& step, Sequence& s) {
  if (!s.wants_drafts() || s.over()) return;
  for (std::size_t d = 0; d < step.drafters.size(); ++d) {
    if (!s.asks(d)) continue;
    ScopedTimer timer(s.stats.drafters[d].accept_ms);
    step.drafters[d]->accept(s.seq, s.text);
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
    if (part.walk) teach_drafters(step, s);
  }
}

}  // namespace outrider
