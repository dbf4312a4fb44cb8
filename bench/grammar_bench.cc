// What a grammar costs a step, on a real vocabulary: the model is the small one of
// OUTRIDER_MODELS_DIR. Microseconds for a chain's row, for masking a whole row, and for a copy.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "llama/files/model_file.h"
#include "llama/grammar/grammar_mask.h"
#include "llama/sampling/sampler_chain.h"
#include "llama/schema/json_schema.h"
#include "llama/vocabulary/vocabulary.h"

namespace outrider::llama {
namespace {

constexpr const char* kSchema =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":30},"age":)"
    R"({"type":"integer","minimum":0,"maximum":120},"languages":{"type":"array","items":)"
    R"({"enum":["C++","Python","Rust"]},"minItems":1}},"required":["name","age"]})";

const ModelFile* file(benchmark::State& state) {
  static std::shared_ptr<ModelFile> loaded;
  const char* folder = std::getenv("OUTRIDER_MODELS_DIR");
  if (!loaded && folder != nullptr) {
    Result<std::shared_ptr<ModelFile>> result = ModelFile::load(
        std::string(folder) + "/SmolLM2-135M-Instruct-Q4_1.gguf", 0, false, LoadHooks{});
    if (result.ok()) loaded = *result;
  }
  if (!loaded) state.SkipWithError("needs OUTRIDER_MODELS_DIR with the small model");
  return loaded.get();
}

// Where the text is: the texts end where few tokens, or nearly all, may follow.
constexpr const char* kTexts[] = {"", "{\"name\":\"Syl", "{\"name\":\"Sylvie\",\"age\":4"};

template <typename Listener>
void say(const ModelFile& model, const char* text, Listener& listener) {
  const std::vector<Token> tokens = model.vocabulary().tokenize(text, false, false).value();
  for (const Token token : tokens) listener.accept(token);
}

std::vector<float> row_of(std::size_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(-2.0f, 2.5f);
  std::vector<float> row(n);
  for (float& value : row) value = normal(random);
  return row;
}

void chain(benchmark::State& state, bool constrained) {
  const ModelFile* model = file(state);
  if (model == nullptr) return;
  SamplingOptions options;
  if (constrained) options.json_schema = kSchema;
  std::unique_ptr<Sampler> sampler = make_sampler(options, model->vocabulary()).value();
  say(*model, kTexts[state.range(0)], *sampler);
  const std::vector<float> row = row_of(static_cast<std::size_t>(model->vocabulary().size()));
  for (auto _ : state) benchmark::DoNotOptimize(sampler->apply(row).logits.data());
}

void mask(benchmark::State& state) {
  const ModelFile* model = file(state);
  if (model == nullptr) return;
  const std::string grammar = grammar_from_json_schema(kSchema).value();
  const std::unique_ptr<GrammarMask> mask =
      GrammarMask::create(grammar, {}, model->vocabulary()).value();
  say(*model, kTexts[state.range(0)], *mask);
  std::vector<float> row = row_of(static_cast<std::size_t>(model->vocabulary().size()));
  for (auto _ : state) {
    std::vector<float> masked = row;
    mask->mask_row(masked);
    benchmark::DoNotOptimize(masked.data());
  }
}

void copy(benchmark::State& state) {
  const ModelFile* model = file(state);
  if (model == nullptr) return;
  SamplingOptions options;
  options.json_schema = kSchema;
  std::unique_ptr<Sampler> sampler = make_sampler(options, model->vocabulary()).value();
  say(*model, kTexts[1], *sampler);
  for (auto _ : state) benchmark::DoNotOptimize(sampler->clone());
}

void create(benchmark::State& state) {
  const ModelFile* model = file(state);
  if (model == nullptr) return;
  SamplingOptions options;
  options.json_schema = kSchema;
  for (auto _ : state) benchmark::DoNotOptimize(make_sampler(options, model->vocabulary()).ok());
}

// With a trigger: looking at the vocabulary and at what runs past it, once for a request.
void create_lazy(benchmark::State& state, const char* grammar, const char* trigger) {
  const ModelFile* model = file(state);
  if (model == nullptr) return;
  for (auto _ : state) {
    benchmark::DoNotOptimize(GrammarMask::create(grammar, {trigger}, model->vocabulary()).ok());
  }
}

BENCHMARK_CAPTURE(chain, free, false)->Arg(0);
BENCHMARK_CAPTURE(chain, schema, true)->DenseRange(0, 2);
BENCHMARK(mask)->DenseRange(0, 2);
BENCHMARK(copy);
BENCHMARK(create);
BENCHMARK_CAPTURE(create_lazy, rare, "root ::= \"<tool_call>\" [^<]*", "<tool_call>");
BENCHMARK_CAPTURE(create_lazy, brace, "root ::= \"{\" [^}]* \"}\"", "{");
BENCHMARK_CAPTURE(create_lazy, space, "root ::= \" \" [^}]* \"}\"", " ");

}  // namespace
}  // namespace outrider::llama
