// What `outrider bench` measured, summed up: a pair of runs, plain and speculative, for each prompt
// and repetition, becomes figures for each category and all together.
//
// In a repetition a category's speed is its tokens over its time, all prompts together; over the
// repetitions it is the geometric mean, and so is the ratio: speedup is speculative_tps over
// plain_tps exactly. Overall is the geometric mean over categories, so that a category with many
// prompts counts no more than others. Tested by bench_result_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cost_point.h"
#include "engine/request.h"
#include "json/json.h"
#include "lab/bench_statistics.h"
#include "machine/machine.h"
#include "machine/machine_limits.h"
#include "model/kernel_use.h"
#include "plan/calibration_score.h"

namespace outrider::lab {

// What a run took, and what it would have taken an oracle (lab/oracle.h), both by the cost curve
// and the measured costs of drafting.
struct OracleTimes {
  double taken_ms = 0.0;
  double oracle_ms = 0.0;
};

// Processor time of this process, all threads together, reading of prompts included.
struct ProcessorTimes {
  double plain_ms = 0.0;  // 0: not known
  double speculative_ms = 0.0;
};

// One prompt, run once each way with the same seed.
struct BenchPair {
  std::size_t category = 0;  // index of BenchSetting::categories
  std::int32_t repetition = 0;
  bool identical = false;
  Timings plain;
  Timings speculative;
  SpeculationStats plain_steps;
  SpeculationStats speculative_steps;
  std::size_t prompt = 0;                  // its index
  std::vector<Token> said;                 // with speculation, when an oracle is to be asked
  std::optional<OracleTimes> oracle = {};  // when it was
  ProcessorTimes processor = {};
};

// Milliseconds of decoding, and the tokens said in them.
struct TimeParts {
  double draft_ms = 0.0;
  double verify_ms = 0.0;
  double sample_ms = 0.0;
  double plan_ms = 0.0;
  double total_ms = 0.0;
  std::int64_t tokens = 0;

  void add(const Timings& timings, const SpeculationStats& stats);
};

struct BenchGroup {
  std::string name;
  std::int64_t pairs = 0;
  std::int64_t identical = 0;
  std::optional<double> plain_tps;  // not given: no text had two tokens
  std::optional<double> speculative_tps;
  std::optional<double> speedup;
  std::optional<Interval> interval;   // of the speedup
  double plain_first_token_ms = 0.0;  // median over the pairs
  double speculative_first_token_ms = 0.0;
  std::int64_t steps = 0;
  std::int64_t emitted = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  TimeParts plain_time;
  TimeParts speculative_time;
  std::vector<std::int64_t> steps_by_width;  // [width]
  std::vector<DepthStats> by_depth;          // [depth - 1]
  std::vector<double> ratios;                // [repetitions] of the speeds
  OracleTimes oracle;                        // of the pairs for which it was asked; 0: none
  ProcessorTimes processor;
  std::int64_t plain_tokens = 0;  // all that were said, the first ones included
  std::int64_t speculative_tokens = 0;

  // The part of the time that an oracle would have taken.
  std::optional<double> oracle_share() const {
    if (!(oracle.taken_ms > 0.0)) return std::nullopt;
    return oracle.oracle_ms / oracle.taken_ms;
  }
  // A token of plain decoding takes so many times as much processor time as one with speculation.
  std::optional<double> processor_speedup() const;
  // By how much the interval reaches beyond the speed-up, the wider way, as a part of it.
  std::optional<double> interval_width() const;
};

struct BenchSetting {
  std::vector<std::string> categories;  // in the file's order
  std::string target;                   // file
  std::string target_description;
  std::optional<std::string> draft;
  std::string drafter;  // as in --drafter
  std::string width;
  std::string rule;
  std::string exactness;  // the verdict
  std::string exactness_coverage;
  KernelUse kernels;
  float temperature = 0.0f;
  std::uint64_t seed = 0;
  std::int32_t max_tokens = -1;
  std::int32_t threads = 0;
  std::int32_t repetitions = 1;  // that were to be made
  double until = 0.05;           // how narrow the overall interval is to be (interval_width())
  std::int64_t prompts = 0;
  std::string command;
  Machine machine;
};

struct BenchResult {
  BenchSetting setting;
  std::vector<BenchGroup> categories;  // those with pairs
  BenchGroup overall;
  std::int32_t repetitions = 0;  // that count
  bool interrupted = false;
  std::vector<CostPoint> costs;  // what steps took, by rising width
  std::vector<Floor> floor;      // the least that the machine could take for them; may be empty
  std::string floor_reason;      // why that could not be measured; empty: it was, or is not asked
                                 // for, since layers are on other devices or on workers
  CalibrationScore score;        // of the planner's predictions

  // The overall interval is as narrow as was asked for.
  bool is_sure() const;
};

// A repetition that was cut off counts only when there is no whole one.
BenchResult sum_up(BenchSetting setting, const std::vector<BenchPair>& pairs, bool interrupted);

// The contract's object: "categories" by name, "overall", "cost_curve", "floor", "floor_reason"
// (why it could not be measured, or null), "kernels", "machine", ...
json::Json bench_json(const BenchResult& result);

// For people, in lines of at most 100 columns.
std::string bench_table(const BenchResult& result);

// The greatest speed-up that any drafting could have here: most tokens for the time of a step, in
// plain steps. Not given without costs.
struct Ceiling {
  std::int32_t width = 1;
  double speedup = 1.0;
};
std::optional<Ceiling> ceiling_of(const std::vector<CostPoint>& costs);

// "1.31 (1.22 to 1.40)"; "-" when it is not known.
std::string speedup_text(const BenchGroup& group);

}  // namespace outrider::lab
