// What `outrider make-draft` does: makes a draft model for a target out of a smaller model, or out
// of the target itself.
//
// Every candidate of the search (draft_search.h) is written, loaded beside the target, walked along
// what the target said (draft_walk.h) and removed again; one for which memory is too short is not
// usable. The few that are predicted to be the fastest are measured as `bench` does it, until the
// intervals are narrow, and draft_verdict.h chooses which of these is written. Where none is faster
// than plain decoding for certain, nothing is.
// Tested by make_draft_run_test.cc and made_draft_test.cc on tiny models, and by
// tests/cli_make_draft_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "json/json.h"
#include "lab/draft_sample.h"
#include "lab/draft_search.h"
#include "machine/machine.h"
#include "model/kernel_use.h"
#include "model/model_options.h"
#include "run/harness.h"

namespace outrider::lab {

struct MakeDraftPlan {
  std::string source;   // the model that drafts are made of; may be the target's own file
  std::string output;   // replaced if it exists
  ModelOptions target;  // how the target was opened
  ModelOptions draft;   // how drafts are opened; its path is not used
  SampleOptions sample;
  // What is tried; not given: as the source and the machine suggest.
  std::optional<std::vector<std::string>> types;
  std::optional<std::vector<std::int32_t>> n_tokens;
  std::optional<std::vector<std::int32_t>> n_left_out;
  std::int32_t most_measured = 2;  // candidates; 0: what is predicted decides
  std::string command;
  NowMs now_ms = {};  // of passes; empty: the machine's clock
  // Bytes that the machine has left, 0: not known; empty: what free_memory() says.
  std::function<std::uint64_t()> free_memory = {};
};

struct MakeDraftResult {
  std::string target;  // files
  std::string source;
  std::string output;
  std::int64_t walked_tokens = 0;  // on which acceptance was measured
  std::vector<std::string> notes;  // what could not be tried, and why
  std::vector<DraftCandidate> candidates;
  std::optional<std::size_t> chosen;  // not given: none pays, and nothing was written
  std::string verdict;                // a sentence
  KernelUse kernels;                  // the target's
  Machine machine;
  std::string command;
};

// Errors: read_draft_source()'s, write_sample()'s, the runtime's; kInvalidArgument for what is to
// be tried and cannot be; kUnsupported where what passes of the target take was not measured;
// kResourceExhausted where the disk has no room; kCancelled. On failure
// nothing is left behind, and a file at `output` is as it was. REQUIRES: the runtime has no draft
// model and does not keep prefixes
Result<MakeDraftResult> make_draft(const Harness& harness, const MakeDraftPlan& plan);

// "target", "source", "output", "verdict", "chosen", "candidates", "kernels" and "kernels_reason"
// (the target's), "machine", ...
json::Json make_draft_json(const MakeDraftResult& result);

// For people, in lines of at most 100 columns.
std::string make_draft_table(const MakeDraftResult& result);

}  // namespace outrider::lab
