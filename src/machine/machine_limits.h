// What this machine can read and multiply, and the least that a step of b tokens must take: the
// longer of reading all weights once and of making its products.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "json/json.h"
#include "model/model_options.h"

namespace outrider {

struct MachineLimits {
  double read_gb_per_s = 0.0;        // of memory, by all threads together; 0: not known
  double multiply_gmac_per_s = 0.0;  // products of two 8-bit values with their sums
  std::string instruction_set;       // of those products
};

// Measures for about a second with `n_threads` threads, >= 1. Nothing else should compute
// meanwhile. Reads as much memory as a step of one token does, `step_bytes`, but 64 MiB at least,
// and 1 GiB and a quarter of what is free at most; it is given back. Errors: kResourceExhausted
// when there are not so many threads.
Result<MachineLimits> measure_limits(std::int32_t n_threads, std::uint64_t step_bytes);

// What a file's steps read and multiply.
struct StepWork {
  std::uint64_t bytes = 0;         // of the matrices that every token is multiplied with
  std::uint64_t macs = 0;          // products a token
  std::uint64_t expert_bytes = 0;  // of all experts together; a token reads `experts_used` of
  std::int32_t experts = 0;        // `experts` of them
  std::int32_t experts_used = 0;
};

// From the file's header. Errors: kNotFound, kDataLoss, as for loading the file.
Result<StepWork> read_step_work(const std::string& path);

struct Floor {
  std::int32_t width = 1;
  double read_ms = 0.0;
  double multiply_ms = 0.0;
  double ms() const { return read_ms > multiply_ms ? read_ms : multiply_ms; }
};

// [{"width", "read_ms", "multiply_ms", "ms"}]
json::Json floor_json(const std::vector<Floor>& floor);

// For each width. Where tokens go to experts, for tokens that choose them evenly and by themselves.
std::vector<Floor> floors(const StepWork& work, const MachineLimits& limits,
                          const std::vector<std::int32_t>& widths);

// The floor of a model's steps on this machine, measured for about a second. Empty where layers are
// on other devices or on workers. Errors: as read_step_work().
struct MachineFloor {
  MachineLimits limits;
  std::vector<Floor> floor;
};
Result<MachineFloor> measure_floor(const ModelOptions& options, std::int32_t n_threads,
                                   const std::vector<std::int32_t>& widths);

}  // namespace outrider
