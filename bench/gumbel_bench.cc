// The coupled choice over whole vocabularies: 49,152 is SmolLM2's, 262,144 gemma-3's.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "dist/gumbel.h"

namespace outrider {
namespace {

std::vector<float> logits_like_a_models(std::size_t n) {
  std::vector<float> logits(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double u = noise_uniform(noise_key(1, i), 3);
    logits[i] = 2.0f * static_cast<float>(std::log(u / (1.0 - u)));
  }
  return logits;
}

void BM_Argmax(benchmark::State& state) {
  const std::vector<float> logits = logits_like_a_models(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(argmax(logits));
}
BENCHMARK(BM_Argmax)->Arg(49152)->Arg(262144)->Unit(benchmark::kMicrosecond);

void BM_PerturbedArgmax(benchmark::State& state) {
  const std::vector<float> logits = logits_like_a_models(static_cast<std::size_t>(state.range(0)));
  std::uint64_t position = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(perturbed_argmax({.logits = logits}, noise_key(1, ++position)));
  }
}
BENCHMARK(BM_PerturbedArgmax)->Arg(49152)->Arg(262144)->Unit(benchmark::kMicrosecond);

void BM_PerturbedTop4(benchmark::State& state) {
  const std::vector<float> logits = logits_like_a_models(static_cast<std::size_t>(state.range(0)));
  std::uint64_t position = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(perturbed_top({.logits = logits}, noise_key(1, ++position), 4));
  }
}
BENCHMARK(BM_PerturbedTop4)->Arg(49152)->Arg(262144)->Unit(benchmark::kMicrosecond);

void BM_PerturbedReference(benchmark::State& state) {
  const std::vector<float> logits = logits_like_a_models(static_cast<std::size_t>(state.range(0)));
  std::uint64_t position = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        perturbed_top_reference({.logits = logits}, noise_key(1, ++position), 1));
  }
}
BENCHMARK(BM_PerturbedReference)->Arg(49152)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace outrider

BENCHMARK_MAIN();
