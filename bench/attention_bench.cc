// Attention over 64 layers of three heads of keys one after the other, which a processor's cache
// does not hold but for the shortest: heads of 64, three rows of queries each (SmolLM2's shape),
// one thread. Arguments: cells, tokens in the step, heads worked on together. `us` is of one head.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/instruction_set.h"

namespace outrider::kernels {
namespace {

constexpr int kSize = 64;
constexpr int kLayers = 21;
constexpr int kKeyHeads = 3;
constexpr int kShare = 3;

struct Free {
  void operator()(void* p) const { std::free(p); }
};

void BM_Attend(benchmark::State& state, WeightType type) {
  const auto n_cells = static_cast<int>(state.range(0));
  const auto n_tokens = static_cast<int>(state.range(1));
  const std::size_t head_bytes = type == WeightType::kQ80 ? kSize / 32 * 34 : 2 * kSize;
  const auto n_heads = static_cast<int>(state.range(2));
  // As llama.cpp lays it out: a cell's heads side by side.
  const std::size_t stride = kKeyHeads * head_bytes;
  const std::size_t layer_bytes = stride * static_cast<std::size_t>(n_cells);
  std::vector<std::uint8_t> keys(layer_bytes * kLayers, 0x11);
  std::vector<std::uint8_t> values(layer_bytes * kLayers, 0x12);
  const int n_rows = n_tokens * kShare;
  std::vector<float> queries(static_cast<std::size_t>(n_heads * n_rows) * kSize, 0.01F);
  std::vector<float> out(queries.size());
  std::vector<std::uint16_t> mask(static_cast<std::size_t>(n_cells), 0);
  std::vector<QueryRow> rows(static_cast<std::size_t>(n_heads * n_rows));
  for (int r = 0; r < n_heads * n_rows; ++r) {
    rows[static_cast<std::size_t>(r)] = {.query = queries.data() + r * kSize,
                                         .mask = mask.data(),
                                         .end = n_cells,
                                         .out = out.data() + r * kSize};
  }
  const std::size_t n_scratch = attention_scratch(n_heads * n_rows, kSize, kSize, n_cells);
  const std::unique_ptr<float, Free> scratch(
      static_cast<float*>(std::aligned_alloc(64, (n_scratch * sizeof(float) + 63) / 64 * 64)));
  const InstructionSet& set = *instruction_sets().front();
  std::size_t layer = 0;
  for (auto _ : state) {
    for (int head = 0; head < kKeyHeads; head += n_heads) {
      const std::size_t at = layer * layer_bytes + static_cast<std::size_t>(head) * head_bytes;
      set.attend({.keys = {type, keys.data() + at, stride, kSize, head_bytes},
                  .values = {type, values.data() + at, stride, kSize, head_bytes},
                  .scale = 0.125F,
                  .rows = rows.data(),
                  .n_rows = n_heads * n_rows,
                  .head_rows = n_rows},
                 scratch.get());
    }
    layer = (layer + 1) % kLayers;
  }
  state.counters["us"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kKeyHeads * 1e-6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.SetLabel(std::string(set.name));
}

void arguments(benchmark::internal::Benchmark* bench) {
  bench->ArgsProduct({{96, 256, 2048, 8192}, {1, 4, 16}, {1, 3}})->Unit(benchmark::kMicrosecond);
}
BENCHMARK_CAPTURE(BM_Attend, F16, WeightType::kF16)->Apply(arguments);
BENCHMARK_CAPTURE(BM_Attend, BF16, WeightType::kBf16)->Apply(arguments);
BENCHMARK_CAPTURE(BM_Attend, Q8_0, WeightType::kQ80)->Apply(arguments);

}  // namespace
}  // namespace outrider::kernels
