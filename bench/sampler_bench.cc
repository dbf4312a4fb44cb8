// What a sampler chain costs per visited node: microseconds for one row of logits.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "llama/base/handles.h"
#include "llama/sampling/sampler_chain.h"

namespace outrider::llama {
namespace {

// As a language model's: a broad hump and a few high values.
std::vector<float> row_of(std::int64_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(-2.0f, 2.5f);
  std::vector<float> row(static_cast<std::size_t>(n));
  for (float& value : row) value = normal(random);
  for (int i = 0; i < 20; ++i) row[random() % row.size()] += 8.0f;
  return row;
}

void run(benchmark::State& state, const SamplingOptions& options) {
  const std::vector<float> row = row_of(state.range(0));
  std::unique_ptr<Sampler> sampler =
      make_sampler(options, static_cast<std::int32_t>(row.size())).value();
  for (auto _ : state) {
    benchmark::DoNotOptimize(sampler->apply(row).logits.data());
  }
}

// As a text's: some come often.
std::vector<Token> text_of(std::int64_t n, std::int64_t n_vocab) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  std::vector<Token> text(static_cast<std::size_t>(n));
  for (Token& token : text) {
    const double rank = std::pow(static_cast<double>(n_vocab), uniform(random));
    token = static_cast<Token>(rank) % static_cast<Token>(n_vocab);
  }
  return text;
}

constexpr std::int32_t kPenaltyVocab = 49152;

std::unique_ptr<Sampler> with_window(std::int64_t window, std::span<const Token> text) {
  const SamplingOptions o{.repeat_last_n = static_cast<std::int32_t>(window),
                          .repeat_penalty = 1.1f};
  std::unique_ptr<Sampler> sampler = make_sampler(o, kPenaltyVocab).value();
  sampler->begin(text, 1);
  return sampler;
}

// A token of a text whose last range(0) ones are penalised: a row, and what was chosen.
void run_penalties(benchmark::State& state) {
  const std::vector<float> row = row_of(kPenaltyVocab);
  const std::vector<Token> text = text_of(2 * state.range(0), kPenaltyVocab);
  const std::unique_ptr<Sampler> sampler = with_window(state.range(0), text);
  std::size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(sampler->apply(row).logits.data());
    sampler->accept(text[at++ % text.size()]);
  }
}

// What a draft begins with, and then frees.
void copy_penalties(benchmark::State& state) {
  const std::vector<Token> text = text_of(2 * state.range(0), kPenaltyVocab);
  const std::unique_ptr<Sampler> sampler = with_window(state.range(0), text);
  for (auto _ : state) benchmark::DoNotOptimize(sampler->clone().get());
}

// The same chain as llama.cpp runs it: candidates for the whole row, then its samplers.
void run_llama(benchmark::State& state, const SamplingOptions& o) {
  const std::vector<float> row = row_of(state.range(0));
  const SamplerHandle chain(llama_sampler_chain_init(llama_sampler_chain_default_params()));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_top_k(o.top_k));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_top_p(o.top_p, 0));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_min_p(o.min_p, 0));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_temp(o.temperature));
  std::vector<llama_token_data> data(row.size());
  for (auto _ : state) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      data[i] = {.id = static_cast<llama_token>(i), .logit = row[i], .p = 0.0f};
    }
    llama_token_data_array array{
        .data = data.data(), .size = data.size(), .selected = -1, .sorted = false};
    llama_sampler_apply(chain.get(), &array);
    benchmark::DoNotOptimize(array.size);
  }
}

const SamplingOptions kDefault{};
const SamplingOptions kGreedy{.temperature = 0.0f};
const SamplingOptions kTemperature{.temperature = 0.7f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f};
const SamplingOptions kMinP{.temperature = 0.7f, .top_k = 0, .top_p = 1.0f, .min_p = 0.05f};
const SamplingOptions kTopP{.temperature = 0.7f, .top_k = 0, .top_p = 0.95f, .min_p = 0.0f};

BENCHMARK_CAPTURE(run, default_chain, kDefault)->Arg(49152)->Arg(262144);
BENCHMARK_CAPTURE(run, greedy, kGreedy)->Arg(49152)->Arg(262144);
BENCHMARK_CAPTURE(run, temperature, kTemperature)->Arg(49152)->Arg(262144);
BENCHMARK_CAPTURE(run, min_p, kMinP)->Arg(49152)->Arg(262144);
BENCHMARK_CAPTURE(run, top_p, kTopP)->Arg(49152)->Arg(262144);
BENCHMARK(run_penalties)->Arg(64)->Arg(4096)->Arg(32768);
BENCHMARK(copy_penalties)->Arg(64)->Arg(4096)->Arg(32768);
BENCHMARK_CAPTURE(run_llama, default_chain, kDefault)->Arg(49152)->Arg(262144);
BENCHMARK_CAPTURE(run_llama, min_p, kMinP)->Arg(49152)->Arg(262144);
BENCHMARK_CAPTURE(run_llama, top_p, kTopP)->Arg(49152)->Arg(262144);

}  // namespace
}  // namespace outrider::llama
