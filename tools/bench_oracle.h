// How near the runs of `outrider bench` came to an oracle's (lab/oracle.h).
#pragma once

#include <span>
#include <vector>

#include "engine/request.h"
#include "lab/bench_result.h"
#include "tools/local_runtime.h"

namespace outrider::tools {

// One run with speculation, under the coupled rule.
struct OracleWork {
  std::span<const Token> prompt;
  std::span<const Token> said;
  std::uint64_t seed = 0;
  std::int64_t after_first = 0;  // tokens said behind the first step's
  const SpeculationStats* stats = nullptr;
};

// What the run took, and what an oracle would have, both by what steps and guesses cost in the
// runtime by now. `request`: as the run had it. Its drafters are used and know no text afterwards:
// nothing may be generated any more. Errors: kCancelled by a signal; the drafters'.
Result<lab::OracleTimes> ask_oracle(LocalRuntime& local, const OracleWork& work,
                                    const CompletionRequest& request, const SignalWatch& signals);

}  // namespace outrider::tools
