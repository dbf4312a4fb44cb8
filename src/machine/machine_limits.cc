#include "machine/machine_limits.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "base/clock.h"
#include "base/large_pages.h"
#include "base/machine_memory.h"
#include "kernels/instruction_set.h"
#include "llama/exactness/exactness_rule.h"
#include "llama/files/matrices.h"
#include "machine/fastest_run.h"

namespace outrider {
namespace {

constexpr int kReads = 5;  // in each order

// What is read for measuring: as much as a step of the model reads, since less of it is read faster
// (on a Zen 5 55 to 56 GB/s of 256 MiB, 51 to 53 of 1 GiB), within these bounds.
constexpr std::uint64_t kLeastReadBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostReadBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kFreePart = 4;  // and at most this part of the memory that is free

std::size_t bytes_to_read(std::uint64_t step_bytes) {
  const std::uint64_t free = free_memory();
  const std::uint64_t most =
      free == 0 ? kMostReadBytes : std::min(kMostReadBytes, free / kFreePart);
  const std::uint64_t bytes = std::max(kLeastReadBytes, std::min(step_bytes, most));
  return static_cast<std::size_t>(bytes / kLargePage * kLargePage);
}

constexpr std::size_t kLine = 8;  // words of a cache line
constexpr std::int64_t kRounds = 2'000'000;
constexpr int kMultiplications = 5;

// Memory as weights have it: with pages of 2 MiB where the system gives them.
class WeightMemory {
 public:
  // `bytes`: a multiple of kLargePage.
  explicit WeightMemory(std::size_t bytes)
      : n_words_(bytes / sizeof(std::uint64_t)),
        words_(static_cast<std::uint64_t*>(std::aligned_alloc(kLargePage, bytes))) {
    if (words_ == nullptr) return;
    ask_for_large_pages(words_.get(), bytes);
    std::fill_n(words_.get(), n_words_, 1);
  }
  std::size_t n_words() const { return n_words_; }
  const std::uint64_t* words() const { return words_.get(); }  // [n_words], or null

 private:
  struct Free {
    void operator()(std::uint64_t* words) const { std::free(words); }
  };
  std::size_t n_words_;
  std::unique_ptr<std::uint64_t[], Free> words_;
};

// How a thread goes through its share. One stream alone does not fill the memory's queue on every
// processor: several at once do, or lines that are fetched ahead.
struct ReadOrder {
  std::size_t streams;
  std::size_t ahead;  // words
};
constexpr ReadOrder kOrders[] = {{4, 0}, {1, 512}, {4, 512}};

std::uint64_t sum_of(const std::uint64_t* from, std::size_t words, const ReadOrder& order) {
  std::array<std::uint64_t, 4> sums{};
  const std::size_t part = words / order.streams;
  for (std::size_t i = 0; i + kLine <= part; i += kLine) {
    for (std::size_t s = 0; s < order.streams; ++s) {
      const std::uint64_t* const line = from + s * part + i;
      if (order.ahead > 0) __builtin_prefetch(line + order.ahead);
      for (std::size_t j = 0; j < kLine; ++j) sums[s] += line[j];
    }
  }
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

// The most that the machine was seen to read, of all orders. 0: no memory for it.
Result<double> read_gb_per_s(std::int32_t n_threads, std::size_t bytes) {
  const WeightMemory memory(bytes);
  if (memory.words() == nullptr) return 0.0;
  std::atomic<std::uint64_t> sum = 0;  // looked at, so that everything has to be read
  const std::size_t share = memory.n_words() / static_cast<std::size_t>(n_threads);
  double fastest_ms = 0.0;
  for (const ReadOrder& order : kOrders) {
    const auto read = [&](std::int32_t t) {
      sum += sum_of(memory.words() + share * static_cast<std::size_t>(t), share, order);
    };
    OUTRIDER_ASSIGN_OR_RETURN(const double ms, fastest_run(n_threads, kReads, read));
    if (fastest_ms == 0.0 || ms < fastest_ms) fastest_ms = ms;
  }
  return sum > 0 ? static_cast<double>(bytes) / fastest_ms / 1e6 : 0.0;
}

}  // namespace

Result<MachineLimits> measure_limits(std::int32_t n_threads, std::uint64_t step_bytes) {
  MachineLimits limits;
  const kernels::InstructionSet& set = *kernels::instruction_sets().front();
  limits.instruction_set = set.name;
  OUTRIDER_ASSIGN_OR_RETURN(limits.read_gb_per_s,
                            read_gb_per_s(n_threads, bytes_to_read(step_bytes)));

  // Rounds that take about 20 ms, whatever the instructions.
  std::int64_t rounds = 1000;
  for (; rounds < kRounds; rounds *= 2) {
    const Stopwatch watch;
    (void)set.multiply_in_registers(rounds);
    if (watch.elapsed_ms() >= 20.0) break;
  }
  std::atomic<std::int64_t> macs = 0;
  const auto multiply = [&](std::int32_t /*thread*/) { macs = set.multiply_in_registers(rounds); };
  OUTRIDER_ASSIGN_OR_RETURN(const double multiply_ms,
                            fastest_run(n_threads, kMultiplications, multiply));
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
    // Of the experts, what tokens that choose evenly and by themselves take together.
    const double share =
        work.experts == 0
            ? 0.0
            : 1.0 - std::pow(1.0 - static_cast<double>(work.experts_used) / work.experts, width);
    const double bytes =
        static_cast<double>(work.bytes) + share * static_cast<double>(work.expert_bytes);
    const double macs = static_cast<double>(work.macs) * width;
    result.push_back(
        {.width = width,
         .read_ms = limits.read_gb_per_s > 0.0 ? bytes / limits.read_gb_per_s / 1e6 : 0.0,
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

namespace {

std::uint64_t bytes_of_a_token(const StepWork& work) {
  if (work.experts == 0) return work.bytes;
  return work.bytes + work.expert_bytes / static_cast<std::uint64_t>(work.experts) *
                          static_cast<std::uint64_t>(work.experts_used);
}

}  // namespace

Result<MachineFloor> measure_floor(const ModelOptions& options, std::int32_t n_threads,
                                   const std::vector<std::int32_t>& widths) {
  const Result<llama::RuleFacts> facts = llama::read_rule_facts(options);
  if (!facts.ok()) return facts.status();
  if (!options.workers.empty() || !facts->on_cpu) return MachineFloor{};
  const Result<StepWork> work = read_step_work(options.path);
  if (!work.ok()) return work.status();
  MachineFloor result;
  OUTRIDER_ASSIGN_OR_RETURN(result.limits, measure_limits(n_threads, bytes_of_a_token(*work)));
  result.floor = floors(*work, result.limits, widths);
  return result;
}

}  // namespace outrider
