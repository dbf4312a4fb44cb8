// Job: one completion from start() to the hand-out of its result.
//
//   waiting   in the queue; holds the request
//   running   the engine of its station has the request, under `running`
//   finished  the result is there, until it is fetched or has waited too long
//
// Everything is guarded by the runtime's mutex, except what is said to be constant.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "engine/idle_texts.h"
#include "engine/request.h"
#include "request/completion_request.h"
#include "serve/completion_result.h"
#include "serve/station.h"

namespace outrider {

struct Job {
  using Clock = std::chrono::steady_clock;

  // Set before any other thread sees the job, and constant from then on.
  CompletionId id = 0;
  std::optional<Clock::time_point> deadline;
  bool speculative = false;        // asked for
  Clock::time_point asked_at;      // when make_job() began
  std::weak_ptr<const void> hold;  // StartedCompletion's

  std::shared_ptr<Station> station;  // null once finished
  Request request;  // while waiting; freed before the station, whose vocabulary it uses

  std::optional<RequestId> running;
  EndedBy ended_by = EndedBy::kItself;  // else: it is being ended
  double prompt_progress = 0.0;
  std::vector<SaidToken> fresh;  // not handed out yet
  Clock::time_point polled_at;   // last; at first when it was added
  int polls = 0;                 // calls of poll() and wait_any() that are waiting
  Guesses guesses;               // with the last of them

  // Made with the job, so that ending it needs no memory; `finished` when it is complete.
  std::shared_ptr<CompletionResult> result;
  bool finished = false;
  Clock::time_point finished_at;
  std::condition_variable changed;  // fresh or finished

  // For whoever polls.
  bool has_news() const { return finished || !fresh.empty(); }

  // It has a slot now, or ends without one.
  void note_end_of_wait() {
    result->queued_ms = std::chrono::duration<double, std::milli>(Clock::now() - asked_at).count();
  }
};
using JobPtr = std::shared_ptr<Job>;

// From what a client asks for to a job for this station, not yet known to anybody: all that can be
// done on the client's own thread, without the mutex. The prompt is tokenised, the sampler made,
// and everything checked. The deadline and the wait count from now on. `idle`: what the idle
// sequences hold, to predict what will be reused. `remembering`: whether texts are remembered at
// all. Errors: those of make_prompt(), Target::make_sampler() and check_request(). REQUIRES:
// validate(request)
Result<JobPtr> make_job(CompletionRequest request, std::shared_ptr<Station> station,
                        const IdleTexts& idle, bool remembering);

}  // namespace outrider
