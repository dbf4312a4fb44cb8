// What `outrider calibrate` found out, and how it is told: table, JSON, plot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json/json.h"
#include "lab/draft_costs.h"
#include "lab/type_costs.h"
#include "machine/machine.h"
#include "machine/machine_limits.h"
#include "model/measure_costs.h"
#include "model/model_info.h"

namespace outrider::lab {

// A time that was measured several times: the median, and the quartiles around it, between which
// half of the measurements lie. Where they fall between two, so in proportion; of one all are that.
struct MeasuredTime {
  double ms = 0.0;
  double low_ms = 0.0;
  double high_ms = 0.0;
  std::int64_t n = 0;
};

// REQUIRES: `ms` not empty
MeasuredTime summarise(const std::vector<double>& ms);

struct MeasuredWidth {
  std::int32_t width = 1;
  MeasuredTime time;
};

// The target's passes behind a text of `depth` tokens, by rising width; width 1 is there.
struct MeasuredCurve {
  std::int32_t depth = 0;
  // Of a pass of another width than the one before, beside its time (PassCosts::rebuild_ms).
  double rebuild_ms = 0.0;
  std::vector<MeasuredWidth> points;

  double ratio(const MeasuredWidth& point) const { return point.time.ms / points[0].time.ms; }
};

struct Calibration {
  ModelInfo target;
  std::int32_t threads = 0;
  std::string exactness;  // the verdict, and what was compared for it
  std::string exactness_coverage;
  std::vector<MeasuredCurve> curves;  // in the order asked for; not empty
  MachineLimits limits;
  std::vector<Floor> floor;            // of the widths of the curves; empty: not on this processor
  std::optional<MeasuredCurve> stock;  // of the first depth with llama.cpp's kernels
  std::optional<ModelInfo> draft;
  std::int32_t draft_threads = 0;
  MeasuredTime first_pass;  // of the draft model; n is 0 without one
  MeasuredTime further_pass;
  TypeCosts draft_types;  // without types: not for our kernels
  Machine machine;
  std::string command;
};

// REQUIRES: `samples` not empty
MeasuredCurve curve_of(std::int32_t depth, const std::vector<CostSamples>& samples);

// One object: "curve" is what `replay --cost` reads (lab/cost_file.h), of the first depth.
json::Json calibration_json(const Calibration& calibration);

// For people, in lines of at most 100 columns.
std::string calibration_table(const Calibration& calibration);

// The curve as SVG, with T(1) and b * T(1) for reference.
std::string calibration_plot(const Calibration& calibration);

}  // namespace outrider::lab
