// What `outrider compare` does: each prompt plain and with speculation at several widths, with the
// same seed, and where the texts part, how near the choice was. Tested by compare_run_test.cc on
// made-up models.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "lab/comparison.h"
#include "lab/replay_drafter.h"
#include "request/completion_request.h"
#include "run/harness.h"

namespace outrider::lab {

struct ComparePlan {
  std::vector<TokenPrompt> prompts;
  CompletionRequest request;         // all but prompt and width; drafters and seed are named
  std::vector<std::int32_t> widths;  // rising; not empty
  // One that is to propose the plain run's own text; the runtime's. Null: others are compared.
  ReplayDrafter* replay = nullptr;
};

// An option of the runtime that makes such a drafter, and says in `made` where it is.
AddedDrafter replay_drafter(ReplayDrafter*& made);

struct CompareRun {
  Comparison comparison;  // of the prompts that came to their end
  Status failure;         // of the next one; an interruption is none
};

// REQUIRES: the runtime does not keep prefixes: each run is alone.
CompareRun run_comparison(const Harness& harness, const ComparePlan& plan);

}  // namespace outrider::lab
