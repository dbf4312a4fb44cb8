// What `outrider bench` does: each prompt plain and with speculation, in turn, with the same seeds.
//
// Which of the two goes first changes from prompt to prompt and from repetition to repetition, so
// that a machine that gets slower or quicker meanwhile favours neither. All prompts are repeated
// as often as was asked, or until the overall interval is as narrow as it shall be.
// Tested by bench_run_test.cc on made-up models.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/bench_result.h"
#include "model/model_options.h"
#include "request/completion_request.h"
#include "run/harness.h"

namespace outrider::lab {

struct BenchPlan {
  std::vector<TokenPrompt> prompts;
  std::vector<std::string> categories;  // of the prompts, in the order of the result
  // All but the prompt. Its drafters are named; its seed is that of the first repetition, and
  // repetition r has r more.
  CompletionRequest request;
  ModelOptions model;       // how the target was opened
  std::int32_t repeat = 0;  // 0: 4 to 10 times, until it is sure
  double until = 0.05;      // see BenchSetting
  // Prompts that are run once, 16 tokens each way, before it counts.
  std::int32_t warm_up = 1;
  bool oracle = false;  // whether to ask one afterwards; for the coupled rule
  std::string command;
};

struct BenchRun {
  BenchResult result;      // of what was measured
  std::int64_t pairs = 0;  // that were measured
  std::int64_t wanted = 0;
  Status failure;  // what ended it before its time; an interruption is none
};

// REQUIRES: the runtime does not keep prefixes: each run reads its prompt. Its drafters' texts are
// forgotten when an oracle was asked.
BenchRun run_bench(const Harness& harness, const BenchPlan& plan);

}  // namespace outrider::lab
