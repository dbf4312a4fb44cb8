#include "api/completion_methods.h"

#include <algorithm>
#include <new>

#include "api/update_json.h"
#include "base/on_exit.h"

namespace outrider::api {
namespace {

using json::Json;

Result<std::int64_t> read_id(JsonFields& fields) {
  std::int64_t id = 0;
  fields.require("id");
  fields.integer("id", id, 1, std::numeric_limits<std::int64_t>::max());
  OUTRIDER_RETURN_IF_ERROR(fields.finish());
  return id;
}

// Waits in slices: up to `wait_ms`, or for ever when it is negative.
Result<PolledCompletion> wait_for(const MethodContext& context, CompletionId id,
                                  std::int64_t wait_ms) {
  for (;;) {
    const std::int64_t slice = wait_ms < 0 ? kSliceMs : std::min(wait_ms, kSliceMs);
    Result<PolledCompletion> polled = context.runtime.poll(id, context.stopping.load() ? 0 : slice);
    if (wait_ms >= 0) wait_ms -= slice;
    const bool news = !polled.ok() || polled->finished || !polled->tokens.empty();
    if (news || wait_ms == 0 || context.stopping.load()) return polled;
  }
}

}  // namespace

Result<Json> completion_start(const MethodContext& context, const Json& params) {
  OUTRIDER_ASSIGN_OR_RETURN(CompletionRequest request, read_completion(params));
  request.prompt_texts = true;  // in "prompt_stats"
  OUTRIDER_ASSIGN_OR_RETURN(StartedCompletion started, context.runtime.start(std::move(request)));
  return Json{{"id", started.id}, {"prompt_stats", prompt_stats_json(started.prompt)}};
}

Result<Json> completion_poll(const MethodContext& context, const Json& params) {
  JsonFields fields(params);
  std::int64_t wait_ms = 0;
  fields.integer("wait_ms", wait_ms, 0, kMaxWaitMs);
  OUTRIDER_ASSIGN_OR_RETURN(const std::int64_t id, read_id(fields));
  Result<PolledCompletion> polled = wait_for(context, static_cast<CompletionId>(id), wait_ms);
  if (!polled.ok()) return polled.status().about("id");
  Json answer = {{"updates", updates_json(polled->tokens)},
                 {"finished", polled->finished},
                 {"prompt_progress", polled->prompt_progress}};
  if (polled->result) answer["result"] = result_json(*polled->result);
  return answer;
}

Result<Json> completion_cancel(const MethodContext& context, const Json& params) {
  JsonFields fields(params);
  OUTRIDER_ASSIGN_OR_RETURN(const std::int64_t id, read_id(fields));
  const Status status = context.runtime.cancel(static_cast<CompletionId>(id));
  if (!status.ok()) return status.about("id");
  return Json{{"id", id}};
}

Result<Json> completion_run(const MethodContext& context, const Json& params) {
  OUTRIDER_ASSIGN_OR_RETURN(CompletionRequest request, read_completion(params));
  OUTRIDER_ASSIGN_OR_RETURN(StartedCompletion started, context.runtime.start(std::move(request)));
  bool taken = false;
  // A run whose caller does not get a result (no memory for it, say) must not go on.
  const OnExit cancel([&] {
    try {
      if (!taken) (void)context.runtime.cancel(started.id);
    } catch (const std::bad_alloc&) {  // it ends by itself, and its result by the retention
    }
  });
  bool cancelled = false;
  for (;;) {
    if (context.stopping.load() && !cancelled) {
      (void)context.runtime.cancel(started.id);  // unknown: it has ended
      cancelled = true;
    }
    OUTRIDER_ASSIGN_OR_RETURN(PolledCompletion polled, context.runtime.poll(started.id, kSliceMs));
    if (!polled.result) continue;
    taken = true;
    return result_json(*polled.result);
  }
}

}  // namespace outrider::api
