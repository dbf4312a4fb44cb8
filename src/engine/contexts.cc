// What the target's sequences hold between requests, and what gives way when they are full.
#include <algorithm>
#include <cassert>

#include "base/random.h"
#include "engine/engine.h"

namespace outrider {

bool Engine::whole_only() const { return target_.capabilities().rollback != Rollback::kAny; }

// Cuts what `seq` holds to its first `kept` tokens, or to nothing where that does not work. Returns
// what is left.
std::size_t Engine::take_over(SeqId seq, std::size_t kept) {
  const Pos length = std::min(static_cast<Pos>(kept), target_.length(seq));
  if (length > 0 && target_.truncate(seq, length).ok()) return static_cast<std::size_t>(length);
  // Truncating to nothing always works; a model that is gone for good holds nothing any more
  // (LanguageModel::truncate).
  const Status cleared = target_.truncate(seq, 0);
  assert(cleared.ok() || target_.length(seq) == 0);
  (void)cleared;
  return 0;
}

void Engine::forget(SeqId seq) {
  for (Drafter* drafter : drafters_) {
    if (drafter != nullptr) drafter->end(seq);
  }
  take_over(seq, 0);
}

void Engine::forget_idle() {
  assert(!busy());
  apply_cancels();  // one that came too late for its request would interrupt others
  for (SeqId seq = 0; seq < target_.capabilities().n_sequences; ++seq) {
    forget(seq);
    idle_.clear(seq);
  }
  set_interrupt(&interrupt_);
}

// Ended texts give way when a running one finds too little room for its next step.
void Engine::make_room() {
  const Capabilities& caps = target_.capabilities();
  for (const std::unique_ptr<Sequence>& s : sequences_) {
    if (s->over()) continue;
    const std::int64_t length = target_.length(s->seq);
    const std::int64_t missing = static_cast<std::int64_t>(s->text.size()) - length;
    const std::int32_t width = s->request.width == kAutoWidth
                                   ? std::min(options_.planned_width, caps.max_width)
                                   : s->request.width;
    const std::int64_t wanted =
        std::min<std::int64_t>({missing + width - 1, caps.n_batch, caps.n_ctx - length});
    while (target_.room(s->seq) < wanted) {
      const std::optional<SeqId> oldest = idle_.oldest();
      if (!oldest) return;
      forget(*oldest);
      idle_.clear(*oldest);
    }
  }
}

void Engine::shift_full_contexts() {
  for (const std::unique_ptr<Sequence>& s : sequences_) {
    const bool full = static_cast<std::int64_t>(s->text.size()) >= target_.capabilities().n_ctx;
    if (full && s->request.shift_keep >= 0 && !s->over()) shift(*s);
  }
}

// The tokens that stay are read again at their new places, which is exact for every kind of model;
// rotating cached keys, as llama.cpp does, keeps what they had seen of the dropped ones.
void Engine::shift(Sequence& s) {
  const std::int64_t size = static_cast<std::int64_t>(s.text.size());
  const std::int64_t keep =
      std::clamp<std::int64_t>(s.request.shift_keep, 0, std::max<std::int64_t>(size - 4, 0));
  const std::int64_t dropped = std::max<std::int64_t>((size - keep) / 2, 1);
  s.text.erase(s.text.begin() + keep, s.text.begin() + keep + dropped);
  s.n_dropped += dropped;
  ++s.shifts;
  s.plan.forget_asked();
  s.noise_seed = mix64(s.request.seed ^ mix64(static_cast<std::uint64_t>(s.shifts)));
  const std::size_t kept = take_over(s.seq, whole_only() ? 0 : static_cast<std::size_t>(keep));
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    if (drafters_[d] == nullptr || !s.asks(d)) continue;
    const Status status = drafters_[d]->begin(s.seq, kept);
    if (status.ok()) continue;
    s.drop_drafter(d, std::string(drafters_[d]->name()) + " failed: " + status.message());
  }
}

}  // namespace outrider
