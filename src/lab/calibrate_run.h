// What `outrider calibrate` does: passes of a target and its draft model are timed, and beside them
// what the machine could do at best and what llama.cpp's kernels take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/calibration.h"
#include "model/model_options.h"
#include "run/harness.h"

namespace outrider::lab {

struct CalibratePlan {
  ModelOptions target;
  ModelOptions draft;                // where there is one
  std::vector<std::int32_t> widths;  // rising, from 1 on
  std::vector<std::int32_t> depths;  // of the text in front of the passes; not empty
  std::int32_t repeat = 9;
};

// Why passes of `widest` tokens behind `depth` do not fit into a context of `n_ctx`; empty: they
// do.
std::string too_deep(std::int32_t depth, std::int32_t widest, std::int32_t n_ctx);

// The curves of the runtime's target, and its draft model's passes.
// Errors: kUnsupported for a target that cannot take tokens back; kInvalidArgument for widths and
// depths beyond it; kCancelled; the models' own.
Status measure_models(const Harness& harness, const CalibratePlan& plan, Calibration& result);

// The machine's limits under these curves. The models are best gone by now: nothing else should
// compute, nor fill the memory. REQUIRES: measure_models() was done
Status measure_machine(const CalibratePlan& plan, const Watcher& watcher, Calibration& result);

// Whether llama.cpp's kernels would be others than those measured.
bool wants_stock_curve(const Calibration& result);
// The first depth's curve of a target that was opened with them. Errors as measure_models().
Status measure_stock(const Harness& harness, const CalibratePlan& plan, Calibration& result);

}  // namespace outrider::lab
