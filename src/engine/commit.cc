#include "base/clock.h"
#include "engine/step.h"

namespace outrider {
namespace {

// The hidden states of the tokens that the text keeps: the prefix (a chunk of a prompt, too) and
// the accepted path. Also when the text has ended: the next one may begin like it.
void show_hidden(const Step& step, const Part& part) {
  const Sequence& s = *part.sequence;
  if (!s.wants_drafts() || !s.error.ok()) return;
  const std::size_t item = static_cast<std::size_t>(part.item);
  const std::size_t first = static_cast<std::size_t>(part.seen);
  const std::size_t n_prefix = part.prefix.size();
  for (std::size_t d = 0; d < step.drafters.size(); ++d) {
    if (!s.asks(d) || !step.drafters[d]->wants_hidden()) continue;
    const auto show = [&](std::size_t behind, std::size_t token) {
      step.drafters[d]->see_hidden(s.seq, first + behind, s.text[first + behind],
                                   step.target.hidden(item, token));
    };
    for (std::size_t i = 0; i < n_prefix; ++i) show(i, i);
    if (!part.walk) continue;
    for (std::size_t depth = 0; depth < part.walk->path.size(); ++depth) {
      show(n_prefix + depth, n_prefix + static_cast<std::size_t>(part.walk->path[depth]));
    }
  }
}

void teach_drafters(const Step& step, const Part& part) {
  Sequence& s = *part.sequence;
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
    show_hidden(step, part);
    if (part.walk) teach_drafters(step, part);
  }
}

}  // namespace outrider
