#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/step.h"

namespace outrider {
namespace {

EvalItem item_of(const Part& part) {
  return {.seq = part.sequence->seq,
          .prefix = part.prefix,
          .tree = part.ready ? &*part.sequence->sent : nullptr};
}

// Not for a request that has failed, nor for a chunk whose tokens are all in already (drop_lost).
bool has_work(const Part& part) {
  return part.sequence->error.ok() && (part.ready || !part.prefix.empty());
}

Status evaluate_all(Step& step) {
  step.items.clear();
  for (Part& part : step.parts) {
    part.item = -1;
    if (!has_work(part)) continue;
    part.item = static_cast<std::ptrdiff_t>(step.items.size());
    step.items.push_back(item_of(part));
  }
  return step.items.empty() ? Status() : step.target.evaluate(step.items);
}

// A target that cannot roll back may have lost more than this step's tokens. A request whose text
// was lost that way ends: if the text were read again, it might be lost again, for ever.
bool drop_lost(Step& step, const Status& why) {
  bool dropped = false;
  for (Part& part : step.parts) {
    Sequence& s = *part.sequence;
    const Pos now = step.target.length(s.seq);
    if (!s.error.ok() || now == part.seen) continue;
    if (now > part.seen) {  // the prefix is in already, or a beginning of it
      const std::size_t more = static_cast<std::size_t>(now - part.seen);
      part.prefix = part.prefix.subspan(std::min(more, part.prefix.size()));
      part.seen = now;
    } else {
      s.error = why;
    }
    dropped = true;
  }
  return dropped;
}

bool drop_drafts(Step& step) {
  bool dropped = false;
  for (Part& part : step.parts) {
    if (!part.ready || part.sequence->sent->size() == 1) continue;
    part.sequence->sent.emplace(part.sequence->sent->token(kRoot));
    dropped = true;
  }
  return dropped;
}

// The batch fails even without drafts. Each part is tried alone: those that fail alone end with
// that error, and the first that succeeds is what this step evaluates. The others come next step.
void evaluate_one(Step& step) {
  for (Part& part : step.parts) part.item = -1;
  for (Part& part : step.parts) {
    if (!has_work(part)) continue;
    step.items.assign(1, item_of(part));
    const Status status = step.target.evaluate(step.items);
    if (status.ok()) {
      part.item = 0;
      return;
    }
    if (status.code() == StatusCode::kCancelled) {
      step.interrupted = true;
      return;
    }
    part.sequence->error = status;
    // What it holds is of no use any more, and may be what the next one lacks. To nothing always
    // works; a model that is gone holds nothing.
    if (status.code() == StatusCode::kResourceExhausted) {
      static_cast<void>(step.target.truncate(part.sequence->seq, 0));
    }
  }
}

// Ended texts give way before a request that runs: the one put longest ago first, until the batch
// can be evaluated or none is left; each time twice as many, since each time is a whole pass. Cells
// are Engine::make_room's; this is for what only the pass tells, as memory to rebuild the cache in.
Status make_way(Step& step, Status status) {
  for (int n = 1; status.code() == StatusCode::kResourceExhausted && step.forget_oldest; n *= 2) {
    int forgotten = 0;
    while (forgotten < n && step.forget_oldest()) ++forgotten;
    if (forgotten == 0) break;
    drop_lost(step, status);
    status = evaluate_all(step);
  }
  return status;
}

// The tokens of a batch without prompts; 0: it has some, a part was left out, or it took two passes
// (a target that saves its state before a chain reads what is in front of it first).
std::int32_t width_without_prompts(const Step& step) {
  std::int32_t width = 0;
  for (const Part& part : step.parts) {
    if (part.item < 0 || !part.ready || part.as_prompt) return 0;
    const bool saves = step.target.capabilities().rollback == Rollback::kSaved;
    if (saves && !part.prefix.empty() && part.sequence->sent->size() > 1) return 0;
    width += part.n_tokens();
  }
  return width;
}

void count_tokens(Step& step) {
  for (Part& part : step.parts) {
    if (step.interrupted) part.item = -1;
    if (part.item < 0) continue;
    (part.as_prompt ? step.n_prompt : step.n_text) += part.n_tokens();
    if (part.sequence->answered) continue;
    part.sequence->timings.prompt_tokens_evaluated +=
        static_cast<std::int64_t>(part.prefix.size()) + (part.ready ? 1 : 0);  // the root
  }
}

}  // namespace

// What runs out or breaks costs the drafts first, then ended texts where it is memory, then the one
// request that cannot go on, never another.
void evaluate(Step& step) {
  const Stopwatch watch(step.clock);
  Status status = evaluate_all(step);
  const bool at_once = status.ok();
  if (!status.ok() && status.code() != StatusCode::kCancelled) {
    const bool fewer = drop_lost(step, status);
    if (drop_drafts(step) || fewer) status = evaluate_all(step);
    status = make_way(step, std::move(status));
  }
  if (status.code() == StatusCode::kCancelled) {
    step.interrupted = true;
  } else if (!status.ok()) {
    drop_lost(step, status);
    evaluate_one(step);
  }
  count_tokens(step);
  step.evaluate_ms = watch.elapsed_ms();
  if (at_once) step.timed_width = width_without_prompts(step);
}

}  // namespace outrider
