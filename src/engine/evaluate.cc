#include "base/clock.h"
#include "engine/step.h"

namespace outrider {
namespace {

EvalItem item_of(const Part& part) {
  return {.seq = part.sequence->seq,
          .prefix = part.prefix,
          .tree = part.ready ? &*part.sequence->sent : nullptr};
}

Status evaluate_all(Step& step) {
  step.items.clear();
  for (Part& part : step.parts) {
    part.item = static_cast<std::ptrdiff_t>(step.items.size());
    step.items.push_back(item_of(part));
  }
  return step.target.evaluate(step.items);
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
  for (std::size_t i = 0; i < step.parts.size(); ++i) {
    Part& part = step.parts[i];
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
  }
}

}  // namespace

// What runs out or breaks costs the drafts first, then the one request that cannot go on, never
// another.
void evaluate(Step& step) {
  Stopwatch watch;
  Status status = evaluate_all(step);
  if (!status.ok() && status.code() != StatusCode::kCancelled && drop_drafts(step)) {
    status = evaluate_all(step);
  }
  if (status.code() == StatusCode::kCancelled) {
    step.interrupted = true;
  } else if (!status.ok()) {
    evaluate_one(step);
  }
  if (step.interrupted) {
    for (Part& part : step.parts) part.item = -1;
  }
  step.evaluate_ms = watch.elapsed_ms();
}

}  // namespace outrider
