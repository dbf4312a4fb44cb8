#include "machine/machine_limits.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>

#include "base/clock.h"
#include "kernels/instruction_set.h"
#include "llama/exactness/exactness_rule.h"
#include "llama/files/matrices.h"
#include "machine/fastest_run.h"

namespace outrider {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 20;  // beyond any cache
constexpr int kReads = 8;
constexpr std::size_t kStreams = 4;  // at once: one does not fill the memory's queue
constexpr std::size_t kLine = 8;     // words of a cache line
constexpr std::int64_t kRounds = 2'000'000;
constexpr int kMultiplications = 5;

}  // namespace

MachineLimits measure_limits(std::int32_t n_threads) {
  MachineLimits limits;
  const kernels::InstructionSet& set = *kernels::instruction_sets().front();
  limits.instruction_set = set.name;

  const std::vector<std::uint64_t> memory(kReadBytes / sizeof(std::uint64_t), 1);
  std::atomic<std::uint64_t> sum = 0;  // looked at, so that everything has to be read
  const std::size_t share = memory.size() / static_cast<std::size_t>(n_threads) / kStreams;
  const double read_ms = fastest_run(n_threads, kReads, [&](std::int32_t t) {
    const std::uint64_t* from = memory.data() + share * kStreams * static_cast<std::size_t>(t);
    std::array<std::uint64_t, kStreams> sums{};
    for (std::size_t i = 0; i + kLine <= share; i += kLine) {
      for (std::size_t s = 0; s < kStreams; ++s) {
        for (std::size_t j = 0; j < kLine; ++j) sums[s] += from[s * share + i + j];
      }
    }
    sum += std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
  });
  if (sum > 0) limits.read_gb_per_s = static_cast<double>(kReadBytes) / read_ms / 1e6;

  // Rounds that take about 20 ms, whatever the instructions.
  std::int64_t rounds = 1000;
  for (; rounds < kRounds; rounds *= 2) {
    const Stopwatch watch;
    (void)set.multiply_in_registers(rounds);
    if (watch.elapsed_ms() >= 20.0) break;
  }
  std::atomic<std::int64_t> macs = 0;
  const double multiply_ms = fastest_run(n_threads, kMultiplications, [&](std::int32_t /*thread*/) {
    macs = set.multiply_in_registers(rounds);
  });
  limits.multiply_gmac_per_s =
      static_cast<double>(macs) * static_cast<double>(n_threads) / multiply_ms / 1e6;
  return limits;
}

Result<StepWork> read_step_work(const std::string& path) {
  const Result<std::vector<llama::Matrix>> matrices = llama::read_matrices(path);
  if (!matrices.ok()) return matrices.status();
  StepWork work;
  for (const llama::Matrix& matrix : *matrices) {
    if (matrix.experts <= 1) {
      work.bytes += matrix.bytes;
      work.macs += matrix.elements;
      continue;
    }
    work.experts = matrix.experts;
    work.experts_used = matrix.experts_used;
    work.expert_bytes += matrix.bytes;
    work.macs += matrix.elements / static_cast<std::uint64_t>(matrix.experts) *
                 static_cast<std::uint64_t>(matrix.experts_used);
  }
  return work;
}

std::vector<Floor> floors(const StepWork& work, const MachineLimits& limits,
                          const std::vector<std::int32_t>& widths) {
  std::vector<Floor> result;
  for (const std::int32_t width : widths) {
    const double share =
        work.experts == 0
            ? 0.0
            : std::min(1.0, static_cast<double>(width) * work.experts_used / work.experts);
    const double bytes =
        static_cast<double>(work.bytes) + share * static_cast<double>(work.expert_bytes);
    const double macs = static_cast<double>(work.macs) * width;
    result.push_back({.width = width,
                      .read_ms = bytes / limits.read_gb_per_s / 1e6,
                      .multiply_ms = macs / limits.multiply_gmac_per_s / 1e6});
  }
  return result;
}

json::Json floor_json(const std::vector<Floor>& floor) {
  json::Json points = json::Json::array();
  for (const Floor& point : floor) {
    points.push_back({{"width", point.width},
                      {"read_ms", point.read_ms},
                      {"multiply_ms", point.multiply_ms},
                      {"ms", point.ms()}});
  }
  return points;
}

Result<MachineFloor> measure_floor(const ModelOptions& options, std::int32_t n_threads,
                                   const std::vector<std::int32_t>& widths) {
  const Result<llama::RuleFacts> facts = llama::read_rule_facts(options);
  if (!facts.ok()) return facts.status();
  if (!options.workers.empty() || !facts->on_cpu) return MachineFloor{};
  const Result<StepWork> work = read_step_work(options.path);
  if (!work.ok()) return work.status();
  MachineFloor result{.limits = measure_limits(n_threads), .floor = {}};
  result.floor = floors(*work, result.limits, widths);
  return result;
}

}  // namespace outrider
