// How far the rows that kernels compute are from those of float arithmetic on the same weights, and
// the perplexity of a text: Outrider's kernels beside llama.cpp's.
//
// OUTRIDER_BENCH_MODEL names a quantised GGUF file, OUTRIDER_BENCH_FLOATS the same weights in F32
// (llama-quantize --allow-requantize MODEL FLOATS F32), OUTRIDER_BENCH_TEXT a text of some thousand
// words. The reference is llama.cpp's, in floats throughout: weights, activations, cache, and
// attention without flash attention, which would round the cache to F16.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "llama/files/model_file.h"
#include "llama/model/llama_model.h"
#include "llama/vocabulary/vocabulary.h"

namespace outrider::llama {
namespace {

constexpr std::size_t kWidth = 16;     // tokens of a step
constexpr std::size_t kTokens = 2000;  // of the text

const char* named(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

class Scorer {
 public:
  Scorer(const std::string& path, KernelChoice kernels, const std::string& cache,
         bool flash_attention = true) {
    FileOptions options;
    options.kernels = kernels;
    file_ = ModelFile::load(path, options, LoadHooks{}).value();
    ContextSettings settings;
    settings.flash_attention = flash_attention;
    settings.type_k = settings.type_v = cache;
    settings.max_width = static_cast<std::int32_t>(kWidth);
    model_ = LlamaModel::create(file_, {.n_ctx = 2048, .n_sequences = 1}, settings).value();
  }

  std::vector<Token> tokens(const std::string& text) const {
    std::vector<Token> all = file_->vocabulary().tokenize(text, true, false).value();
    all.resize(std::min(all.size(), kTokens));
    return all;
  }

  // Row i is of the token behind tokens[i]: log-probabilities.
  std::vector<std::vector<double>> rows(const std::vector<Token>& tokens) {
    std::vector<std::vector<double>> all;
    if (!model_->truncate(0, 0).ok()) std::abort();
    for (std::size_t at = 0; at < tokens.size();) {
      const std::size_t n = std::min(kWidth, tokens.size() - at);
      TokenTree tree(tokens[at]);
      std::vector<NodeId> path{kRoot};
      for (std::size_t i = 1; i < n; ++i) {
        path.push_back(tree.add(path.back(), tokens[at + i], 1.0F, 1));
      }
      const EvalItem item{.seq = 0, .prefix = {}, .tree = &tree};
      if (!model_->evaluate({&item, 1}).ok()) std::abort();
      for (const NodeId node : path) all.push_back(log_probabilities(model_->logits(0, node)));
      if (!model_->commit(0, path).ok()) std::abort();
      at += n;
    }
    return all;
  }

 private:
  static std::vector<double> log_probabilities(std::span<const float> logits) {
    const double most = *std::max_element(logits.begin(), logits.end());
    double sum = 0.0;
    for (const float x : logits) sum += std::exp(x - most);
    std::vector<double> row;
    for (const float x : logits) row.push_back(x - most - std::log(sum));
    return row;
  }

  std::shared_ptr<ModelFile> file_;
  std::unique_ptr<LlamaModel> model_;
};

// A mean and its standard error.
class Mean {
 public:
  void add(double x) {
    n_ += 1.0;
    sum_ += x;
    squares_ += x * x;
  }
  double value() const { return sum_ / n_; }
  double error() const { return std::sqrt((squares_ / n_ - value() * value()) / (n_ - 1.0)); }

 private:
  double n_ = 0.0;
  double sum_ = 0.0;
  double squares_ = 0.0;
};

void accuracy(benchmark::State& state, KernelChoice kernels, const std::string& cache) {
  const std::string path = named("OUTRIDER_BENCH_MODEL");
  const std::string floats = named("OUTRIDER_BENCH_FLOATS");
  std::ifstream in(named("OUTRIDER_BENCH_TEXT"));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (path.empty() || floats.empty() || text.empty()) {
    state.SkipWithError("set OUTRIDER_BENCH_MODEL, _FLOATS and _TEXT");
    return;
  }
  static std::vector<std::vector<double>> wanted;
  Scorer scorer(path, kernels, cache);
  const std::vector<Token> tokens = scorer.tokens(text);
  if (wanted.empty()) wanted = Scorer(floats, KernelChoice::kStock, "f32", false).rows(tokens);
  for (auto _ : state) {
    const std::vector<std::vector<double>> rows = scorer.rows(tokens);
    Mean divergence;
    Mean more_surprise;  // than the reference's, of each token that comes
    double squares = 0.0;
    double other_first = 0.0;
    double surprise = 0.0;
    double wanted_surprise = 0.0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      double sum = 0.0;
      double diverges = 0.0;
      for (std::size_t t = 0; t < rows[i].size(); ++t) {
        const double difference = wanted[i][t] - rows[i][t];
        diverges += std::exp(wanted[i][t]) * difference;
        sum += difference * difference;
      }
      divergence.add(diverges);
      squares += sum / static_cast<double>(rows[i].size());
      const auto first = [](const std::vector<double>& row) {
        return std::max_element(row.begin(), row.end()) - row.begin();
      };
      other_first += first(rows[i]) == first(wanted[i]) ? 0.0 : 1.0;
      if (i + 1 == rows.size()) continue;
      const auto next = static_cast<std::size_t>(tokens[i + 1]);
      surprise -= rows[i][next];
      wanted_surprise -= wanted[i][next];
      more_surprise.add(wanted[i][next] - rows[i][next]);
    }
    const auto n = static_cast<double>(rows.size());
    state.counters["kl"] = divergence.value();
    state.counters["kl_error"] = divergence.error();
    state.counters["more_surprise"] = more_surprise.value();
    state.counters["more_surprise_error"] = more_surprise.error();
    state.counters["rms"] = std::sqrt(squares / n);
    state.counters["other_first"] = other_first / n;
    state.counters["perplexity"] = std::exp(surprise / (n - 1.0));
    state.counters["in_floats"] = std::exp(wanted_surprise / (n - 1.0));
  }
}

BENCHMARK_CAPTURE(accuracy, own, KernelChoice::kAuto, "f16")->Iterations(1);
BENCHMARK_CAPTURE(accuracy, llama_cpp, KernelChoice::kStock, "f16")->Iterations(1);
BENCHMARK_CAPTURE(accuracy, llama_cpp_bf16_keys, KernelChoice::kStock, "bf16")->Iterations(1);

}  // namespace
}  // namespace outrider::llama
