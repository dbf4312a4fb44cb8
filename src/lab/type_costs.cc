#include "lab/type_costs.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

#include "base/numbers.h"
#include "kernels/activations.h"
#include "kernels/instruction_set.h"
#include "kernels/packed.h"
#include "machine/fastest_run.h"

namespace outrider::lab {
namespace {

using json::Json;

// What models are quantised to, as far as the kernels take it.
constexpr const char* kOffered[] = {"q4_0", "q4_1", "iq4_nl", "q5_0",   "q5_1", "q8_0",
                                    "q2_K", "q3_K", "q4_K",   "iq4_xs", "q5_K", "q6_K"};

// Beyond most caches, and what a draft model has; of larger ones a part is measured.
constexpr std::size_t kMostBytes = std::size_t{192} << 20;
constexpr std::int64_t kColumns = 1024;
constexpr int kRuns = 7;
// Less of a difference than repeated measurements tell.
constexpr double kAsCheap = 0.9;
// Where the second least run takes more than so many times the least, something else computes.
constexpr double kSteady = 1.3;
// Convolutions and the like have rows of a few weights: they are not what costs, and never
// quantised.
constexpr std::uint64_t kLeastColumns = 32;

struct Free {
  void operator()(std::uint8_t* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::uint8_t, Free>;

// Of a token: of experts, only those that it takes.
double weights_of(const llama::Matrix& matrix) {
  return static_cast<double>(matrix.elements) * matrix.experts_used / matrix.experts;
}

// A row of activations as the kernels for `type` take it.
std::vector<std::uint8_t> some_activations(const kernels::InstructionSet& set,
                                           kernels::WeightType type) {
  const std::vector<float> x(kColumns, 0.5f);
  const bool is_float = kernels::weight_format(type).values == kernels::Values::kFloat;
  const std::size_t groups = kColumns / kernels::kGroup;
  std::vector<std::uint8_t> row(is_float ? kColumns * sizeof(float)
                                         : groups * sizeof(kernels::ActivationGroup));
  if (is_float) {
    std::copy_n(reinterpret_cast<const std::uint8_t*>(x.data()), row.size(), row.data());
  } else {
    set.quantise(x.data(), static_cast<std::int64_t>(groups), set.offset_rule(type),
                 reinterpret_cast<kernels::ActivationGroup*>(row.data()));
  }
  return row;
}

struct TwoLeast {
  double least = 0.0;
  double second = 0.0;  // of one run alone, that one
};

TwoLeast two_least(std::vector<double> runs) {
  std::sort(runs.begin(), runs.end());
  return {.least = runs.front(), .second = runs[std::min<std::size_t>(1, runs.size() - 1)]};
}

Result<double> measure_ns(const kernels::InstructionSet& set, const kernels::PackedLayout& layout,
                          const std::uint8_t* packed, std::int32_t n_threads) {
  const std::vector<std::uint8_t> row = some_activations(set, layout.type);
  const kernels::InstructionSet::Multiply multiply =
      set.multiply[static_cast<std::size_t>(layout.type)];
  const auto work = [&](std::int32_t thread) {
    alignas(64) float out[64];  // of a strip, at most 32 rows
    const std::int64_t begin = layout.n_strips * thread / n_threads;
    const std::int64_t end = layout.n_strips * (thread + 1) / n_threads;
    for (std::int64_t strip = begin; strip < end; ++strip) {
      multiply(packed + static_cast<std::size_t>(strip) * layout.strip_bytes, kColumns, row.data(),
               row.size(), 1, out);
    }
  };
  OUTRIDER_ASSIGN_OR_RETURN(const double ms, fastest_run(n_threads, 1, work));
  return ms * 1e6 / static_cast<double>(layout.n_rows * kColumns);
}

}  // namespace

TypeCosts type_costs(const std::vector<llama::Matrix>& matrices, const TypeRuns& runs) {
  std::map<std::string, TwoLeast> ns_per_weight;
  for (const auto& [type, ns] : runs) ns_per_weight.emplace(type, two_least(ns));
  TypeCosts costs;
  double weights = 0.0;
  std::uint64_t elements = 0;
  bool all_known = true;
  for (const llama::Matrix& matrix : matrices) {
    if (matrix.columns < kLeastColumns) continue;
    const auto known = ns_per_weight.find(matrix.type);
    all_known = all_known && known != ns_per_weight.end();
    if (all_known) {
      costs.ms += weights_of(matrix) * known->second.least / 1e6;
      costs.second_ms += weights_of(matrix) * known->second.second / 1e6;
    }
    weights += weights_of(matrix);
    elements += matrix.elements;
  }
  if (!all_known) costs.ms = costs.second_ms = 0.0;
  for (const char* const name : kOffered) {
    const auto known = ns_per_weight.find(name);
    if (known == ns_per_weight.end()) continue;
    const kernels::WeightFormat& format = kernels::weight_format(*kernels::weight_type(name));
    const auto block = static_cast<std::uint64_t>(format.block_weights);
    const bool fits = std::all_of(matrices.begin(), matrices.end(), [block](const auto& matrix) {
      return matrix.columns < kLeastColumns || matrix.columns % block == 0;
    });
    if (!fits) continue;
    costs.types.push_back(
        {.type = name,
         .ms = weights * known->second.least / 1e6,
         .second_ms = weights * known->second.second / 1e6,
         .bytes = elements / block * static_cast<std::uint64_t>(format.block_bytes)});
  }
  std::stable_sort(costs.types.begin(), costs.types.end(),
                   [](const TypeCost& a, const TypeCost& b) { return a.ms < b.ms; });
  return costs;
}

Result<TypeCosts> measure_type_costs(const std::string& path, std::int32_t n_threads) {
  const Result<std::vector<llama::Matrix>> matrices = llama::read_matrices(path);
  if (!matrices.ok()) return matrices.status();
  std::uint64_t elements = 0;
  std::set<std::string> names(std::begin(kOffered), std::end(kOffered));
  for (const llama::Matrix& matrix : *matrices) {
    elements += matrix.elements;
    names.insert(matrix.type);
  }
  const kernels::InstructionSet& set = *kernels::instruction_sets().front();
  std::vector<kernels::PackedLayout> layouts;
  std::size_t bytes = 0;
  for (const std::string& name : names) {
    const std::optional<kernels::WeightType> type = kernels::weight_type(name);
    if (!type) continue;
    const kernels::WeightFormat& format = kernels::weight_format(*type);
    const std::int64_t row_bytes = kColumns / format.block_weights * format.block_bytes;
    const std::int64_t n_rows = std::min(static_cast<std::int64_t>(elements) / kColumns,
                                         static_cast<std::int64_t>(kMostBytes) / row_bytes);
    layouts.emplace_back(*type, std::max<std::int64_t>(n_rows, 1), kColumns, set.strip_rows);
    bytes = std::max(bytes, layouts.back().bytes());
  }
  const Buffer packed(static_cast<std::uint8_t*>(std::aligned_alloc(64, bytes)));
  if (!packed) return resource_exhausted("not enough memory to measure types of weights");
  std::fill_n(packed.get(), bytes, std::uint8_t{0});  // which values they are takes no time
  // In turn, so that what disturbs the machine for a moment disturbs no type alone.
  TypeRuns runs;
  for (int run = 0; run < kRuns; ++run) {
    for (const kernels::PackedLayout& layout : layouts) {
      OUTRIDER_ASSIGN_OR_RETURN(const double ns, measure_ns(set, layout, packed.get(), n_threads));
      runs[std::string(kernels::weight_format(layout.type).name)].push_back(ns);
    }
  }
  return type_costs(*matrices, runs);
}

Json type_costs_json(const TypeCosts& costs) {
  Json types = Json::array();
  for (const TypeCost& cost : costs.types) {
    types.push_back({{"type", cost.type},
                     {"ms", cost.ms},
                     {"second_ms", cost.second_ms},
                     {"bytes", cost.bytes}});
  }
  return {{"ms", costs.ms > 0.0 ? Json(costs.ms) : Json()},
          {"second_ms", costs.ms > 0.0 ? Json(costs.second_ms) : Json()},
          {"types", std::move(types)}};
}

std::string cheapest_text(const TypeCosts& costs) {
  if (costs.types.empty()) return "";
  const TypeCost& cheapest = costs.types.front();
  double spread = cheapest.second_ms / cheapest.ms;
  if (costs.ms > 0.0) spread = std::max(spread, costs.second_ms / costs.ms);
  const std::string there = cheapest.type + ", " + fixed(cheapest.ms, 2) + " ms a token";
  const std::string both = costs.ms > 0.0 ? there + ", " + fixed(costs.ms, 2) + " as it is" : there;
  std::string text = "not known (" + both + ")";
  if (costs.ms > 0.0 ? spread * cheapest.ms < kAsCheap * costs.ms : spread <= kSteady) {
    text = both;
  } else if (spread <= kSteady && cheapest.ms >= kAsCheap * costs.ms) {
    text = "as it is, " + fixed(costs.ms, 2) + " ms a token (" + there + ")";
  }
  if (spread > kSteady) text += "; the times vary much: is the machine doing something else?";
  return text;
}

}  // namespace outrider::lab
