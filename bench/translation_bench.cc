// What drafting across vocabularies adds beside the models: the map at load, the draft's
// tokenisation of a text that grows, a row at the target's ids. On the vocabularies of the GGUF
// files that OUTRIDER_BENCH_MODEL (target) and OUTRIDER_BENCH_DRAFT name.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/vocabulary_side.h"
#include "draft/translated/translated_model.h"
#include "llama/files/model_file.h"

namespace outrider {
namespace {

std::shared_ptr<llama::ModelFile> load(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr) return nullptr;
  return llama::ModelFile::load(path, /*n_gpu_layers=*/0, /*extra_bufts=*/false, {}).value();
}

// Both files; null and the benchmark skipped without them.
struct Pair {
  explicit Pair(benchmark::State& state)
      : target(load("OUTRIDER_BENCH_MODEL")), draft(load("OUTRIDER_BENCH_DRAFT")) {
    if (!target || !draft) {
      state.SkipWithError("set OUTRIDER_BENCH_MODEL and OUTRIDER_BENCH_DRAFT to GGUF files");
    }
  }
  explicit operator bool() const { return target && draft; }
  VocabularyMap map() const {
    return VocabularyMap::create(side_of(target->vocabulary()), side_of(draft->vocabulary()), {})
        .value();
  }
  std::shared_ptr<llama::ModelFile> target;
  std::shared_ptr<llama::ModelFile> draft;
};

void make_map(benchmark::State& state) {
  const Pair pair(state);
  if (!pair) return;
  for (auto _ : state) benchmark::DoNotOptimize(pair.map());
}

// One token of the target more, behind the sample four times over.
void grow_text(benchmark::State& state) {
  const Pair pair(state);
  if (!pair) return;
  const VocabularyMap map = pair.map();
  std::string sample;
  for (int i = 0; i < 4; ++i) sample += vocabulary_sample();
  const std::vector<Token> text = pair.target->vocabulary().tokenize(sample, true, false).value();
  TranslatedText translated(map);
  const std::size_t begin = text.size() / 2;
  std::size_t n = text.size();
  for (auto _ : state) {
    if (n == text.size()) {
      state.PauseTiming();
      if (!translated.set(0, std::span<const Token>(text).first(begin)).ok()) std::abort();
      n = begin;
      state.ResumeTiming();
    }
    if (!translated.set(n, std::span<const Token>(text).subspan(n, 1)).ok()) std::abort();
    ++n;
  }
}

// Costs nothing and says the same after everything.
class IdleModel : public LanguageModel {
 public:
  explicit IdleModel(std::int32_t n_vocab) : row_(static_cast<std::size_t>(n_vocab), 1.0f) {
    capabilities_ = {.n_vocab = n_vocab,
                     .n_ctx = 1 << 20,
                     .n_batch = 512,
                     .n_sequences = 1,
                     .max_leaves = 1,
                     .max_width = 16};
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  Pos length(SeqId) const override { return length_; }
  std::int32_t room(SeqId) const override { return 1 << 20; }
  Status evaluate(std::span<const EvalItem> items) override {
    n_prefix_ = static_cast<Pos>(items[0].prefix.size());
    return Status();
  }
  std::span<const float> logits(std::size_t, NodeId) const override { return row_; }
  Status commit(SeqId, std::span<const NodeId> path) override {
    length_ += n_prefix_ + static_cast<Pos>(path.size());
    return Status();
  }
  Status truncate(SeqId, Pos length) override {
    length_ = length;
    return Status();
  }
  void set_interrupt(const std::atomic<bool>*) override {}

 private:
  Capabilities capabilities_;
  std::vector<float> row_;
  Pos length_ = 0;
  Pos n_prefix_ = 0;
};

// A root evaluated and kept: one row, and the text of one token more.
void step(benchmark::State& state) {
  const Pair pair(state);
  if (!pair) return;
  const VocabularyMap map = pair.map();
  IdleModel idle(pair.draft->vocabulary().size());
  TranslatedModel model(idle, map);
  const std::vector<Token> text =
      pair.target->vocabulary().tokenize(vocabulary_sample(), true, false).value();
  const std::array<NodeId, 1> path{kRoot};
  std::size_t n = 0;
  for (auto _ : state) {
    if (n == text.size()) {
      n = 0;
      if (!model.truncate(0, 0).ok()) std::abort();
    }
    const TokenTree root(text[n++]);
    const EvalItem item{.seq = 0, .prefix = {}, .tree = &root};
    if (!model.evaluate({&item, 1}).ok() || !model.commit(0, path).ok()) std::abort();
  }
}

BENCHMARK(make_map)->Unit(benchmark::kMillisecond);
BENCHMARK(grow_text)->Unit(benchmark::kMicrosecond);
BENCHMARK(step)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace outrider
