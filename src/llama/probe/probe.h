// The probe: does a batch give the very bits of single steps, with this model, here and now?
//
// Idea. A backend does not tell which kernels it picks for a batch of n tokens. So try:
// go to a place in the cache, take single steps and keep their rows, go back, evaluate the same
// tokens as one batch, and compare every row bit for bit. Then keep a part of the batch, evaluate a
// batch with wrong tokens behind it, take those back, and so on: rollbacks must not show either.
// The places are the beginning, where a batch crosses 256 cells, and beyond 512; the tokens are
// random and, in between, what the model itself would say.
//
//      cells   0 .. 253 | 254 255 256 257 258 ...
//      single           |  t0  t1  t2  t3  t4      rows r0 r1 r2 r3 r4: the truth
//      batch 4          | [t0  t1  t2  t3]         all four compared; the first two are kept
//      batch 4          |        [t2  t3  x   x]   two compared; nothing is kept
//
// A difference at width w limits the verdict to w-1; the search goes on below. One equal row proves
// little: with repacked Q4_K one row of three differs (measured), so hundreds are compared.
//
// Cost. About 40 single steps per place for widths up to 16, twice (two sets of tokens); measured
// 3 s for SmolLM2-135M, all of the default budget of 10 s for models beyond 1 B on two cores. What
// did not fit is missing from the coverage text, and may be compared by a later probe, which begins
// where this one ended.
//
// Tested by probe_test.cc and probe_time_test.cc on a fake model with wrong rows at chosen widths
// and depths.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "llama/probe/probe_plan.h"
#include "model/exactness.h"
#include "model/language_model.h"

namespace outrider::llama {

// What an earlier probe of the same model, settings and places found equal before its time was up.
struct ProbePassed {
  std::vector<ProbeUnit> units;
  std::int64_t rows = 0;
  double elapsed_ms = 0.0;

  bool holds(const ProbeUnit& unit) const {
    return std::find(units.begin(), units.end(), unit) != units.end();
  }
};

struct ProbeOptions {
  std::int32_t widest = 16;    // widths 2..widest are asked for; >= 2
  double budget_ms = 10000.0;  // what speculation depends on may take two or three times as long
  bool same_for_all_widths = false;  // as in ProbePlanOptions
  bool insist = false;  // what is required (widths to 4) is compared however long it takes
  std::uint64_t seed = 1;
  // Cells in front of the batches, ascending. The first is the length of the text to start from.
  std::vector<std::int32_t> starts = {24, 254, 520};

  ProbePassed passed = {};  // is not compared again; counts as if it had been

  // Tokens that may be evaluated; empty: all of the vocabulary.
  std::function<bool(Token)> usable = {};

  // Makes the cells in use at least `cells` without changing any sequence's length, such as by
  // copying. Empty, or kUnsupported: the text itself is made as long, which costs its evaluation.
  std::function<Status(std::int32_t cells)> deepen = {};

  std::function<double()> now_ms = {};                 // a monotonic clock; empty: the machine's
  std::function<void(double fraction)> progress = {};  // 0 to 1, never falling; may be empty
  const std::atomic<bool>* cancel = nullptr;           // raised: the probe ends with kCancelled
};

struct ProbeReport {
  Exactness exactness;
  bool complete = false;           // everything that was planned was compared
  std::int32_t everywhere = 1;     // widest width that was compared at every start and found equal
  std::int32_t longest_piece = 0;  // prompt pieces up to this leave the state of exact batches
  bool pieces_differ = false;      // a longer one did not
  std::int64_t rows = 0;           // compared, in earlier probes too
  double elapsed_ms = 0.0;         // likewise
  std::vector<ProbeUnit> passed;   // all that was found equal; empty once anything differed

  // A further probe may allow wider batches: time was all that was missing.
  bool could_go_on(std::int32_t widest) const {
    const bool open =
        exactness.width < widest || exactness.kind == Exactness::Kind::kDistributional;
    return !complete && !passed.empty() && open;
  }
};

// Uses the model's sequences 0, 1 and 2 (as many as it has), which must be empty and are left
// empty. Errors: kCancelled; kInvalidArgument for a `widest` that is below 2 or more than the model
// takes; kUnsupported for a model that cannot roll back; what the model's own calls return.
Result<ProbeReport> probe_exactness(LanguageModel& model, const ProbeOptions& options);

}  // namespace outrider::llama
