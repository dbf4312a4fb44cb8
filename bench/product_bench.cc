// Products of packed weights alone: each thread multiplies its own matrix with the same rows of
// activations. Arguments: rows, kilobytes of weights a thread (400: its second-level cache holds
// them; 100,000: they come from memory, and 450,000 where a third-level cache holds those). `GB/s`
// are packed bytes, `products` 8-bit ones, both of all threads. OUTRIDER_FASTEST_SET (at
// configuring) chooses other instructions.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/large_pages.h"
#include "base/random.h"
#include "kernels/instruction_set.h"
#include "kernels/packed.h"

namespace outrider::kernels {
namespace {

constexpr std::int64_t kColumns = 2304;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Bytes = std::unique_ptr<std::uint8_t, Free>;

// Packed weights of about so many bytes. Their bits do not matter for the time, as long as no
// number among the scales is subnormal or infinite.
Bytes weights(std::size_t size) {
  const std::size_t whole = (size + kLargePage - 1) / kLargePage * kLargePage;
  Bytes bytes(static_cast<std::uint8_t*>(std::aligned_alloc(kLargePage, whole)));
  ask_for_large_pages(bytes.get(), whole);
  std::uint64_t draw = 1;
  for (std::size_t i = 0; i < whole; i += sizeof draw) {
    draw = mix64(draw);
    const std::uint64_t mild = draw & 0x3F3F3F3F3F3F3F3F;
    std::memcpy(bytes.get() + i, &mild, sizeof mild);
  }
  return bytes;
}

void BM_Product(benchmark::State& state, WeightType type) {
  const InstructionSet& set = *instruction_sets().front();
  const auto n = static_cast<int>(state.range(0));
  const PackedLayout one(type, set.strip_rows, kColumns, set.strip_rows);
  const auto wanted = static_cast<std::size_t>(state.range(1)) * 1000;
  const auto n_strips = static_cast<std::int64_t>(wanted / one.strip_bytes) + 1;
  // What is fetched ahead of the last strip is there, too.
  const Bytes packed = weights(static_cast<std::size_t>(n_strips + 1) * one.strip_bytes);

  const std::size_t row_bytes = sizeof(ActivationGroup) * kColumns / kGroup;
  const Bytes rows(static_cast<std::uint8_t*>(std::malloc(row_bytes * kMaxTile)));
  std::vector<float> values(kColumns);
  for (int i = 0; i < n; ++i) {
    for (std::int64_t c = 0; c < kColumns; ++c) {
      values[static_cast<std::size_t>(c)] = static_cast<float>((c * 7 + i * 5) % 201 - 100);
    }
    void* row = rows.get() + static_cast<std::size_t>(i) * row_bytes;
    set.quantise(values.data(), kColumns / kGroup, set.offset_rule(type),
                 static_cast<ActivationGroup*>(row));
  }

  const InstructionSet::Multiply multiply = set.multiply[static_cast<std::size_t>(type)];
  alignas(64) float out[kMaxTile * 32];
  for (auto _ : state) {
    for (std::int64_t s = 0; s < n_strips; ++s) {
      multiply(packed.get() + static_cast<std::size_t>(s) * one.strip_bytes, kColumns, rows.get(),
               row_bytes, n, out);
    }
    benchmark::ClobberMemory();
  }
  const double strips = static_cast<double>(n_strips) * static_cast<double>(state.iterations());
  using benchmark::Counter;
  state.counters["GB/s"] =
      Counter(strips * static_cast<double>(one.strip_bytes) / 1e9, Counter::kIsRate);
  state.counters["products"] =
      Counter(strips * static_cast<double>(kColumns * set.strip_rows * n), Counter::kIsRate);
  state.SetLabel(std::string(set.name));
}

void arguments(benchmark::internal::Benchmark* bench) {
  bench->ArgsProduct({{1, 2, 3, 4, 6, 8, 12, 16}, {400, 100000, 450000}})
      ->Threads(1)
      ->Threads(2)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}
BENCHMARK_CAPTURE(BM_Product, Q4_0, WeightType::kQ40)->Apply(arguments);
BENCHMARK_CAPTURE(BM_Product, Q4_K, WeightType::kQ4K)->Apply(arguments);
BENCHMARK_CAPTURE(BM_Product, Q6_K, WeightType::kQ6K)->Apply(arguments);
BENCHMARK_CAPTURE(BM_Product, Q8_0, WeightType::kQ80)->Apply(arguments);

}  // namespace
}  // namespace outrider::kernels
