// From what a client asks for to a job: all that can be done on the client's own thread. The prompt
// is tokenised, the sampler made, and everything checked, without the runtime's mutex.
#pragma once

#include <memory>

#include "base/status.h"
#include "engine/idle_texts.h"
#include "request/completion_request.h"
#include "serve/job.h"

namespace outrider {

// A job for this station, not yet known to anybody; its deadline counts from now on. `idle`: what
// the idle sequences hold, to foretell what will be reused. `remembering`: whether texts are
// remembered at all. Errors: those of make_prompt(), Target::make_sampler() and check_request().
// REQUIRES: validate(request)
Result<std::shared_ptr<Job>> make_job(CompletionRequest request, std::shared_ptr<Station> station,
                                      const IdleTexts& idle, bool remembering);

}  // namespace outrider
