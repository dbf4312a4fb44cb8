// What LlamaModel adds to llama.cpp per step, and what rebuilding the cache costs, on the GGUF file
// that OUTRIDER_BENCH_MODEL names (the smaller, the clearer).
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "llama.h"
#include "llama/files/model_file.h"
#include "llama/model/llama_model.h"

namespace outrider::llama {
namespace {

// Null, and the benchmark skipped, without a model.
std::unique_ptr<LlamaModel> make(benchmark::State& state, std::int32_t n_sequences) {
  const char* path = std::getenv("OUTRIDER_BENCH_MODEL");
  if (path == nullptr) {
    state.SkipWithError("set OUTRIDER_BENCH_MODEL to a GGUF file");
    return nullptr;
  }
  const std::shared_ptr<ModelFile> file = ModelFile::load(path, 0, true, LoadHooks{}).value();
  // Threads cost a tiny model more than they give.
  const std::int32_t n_threads = file->facts().n_params < 10000000 ? 1 : 0;
  return LlamaModel::create(file,
                            {.n_ctx = 4096, .n_sequences = n_sequences, .n_threads = n_threads}, {})
      .value();
}

// Steps of `width` nodes of which one is kept, from a text of 200 tokens on.
void steps(benchmark::State& state) {
  const std::int32_t width = static_cast<std::int32_t>(state.range(0));
  std::unique_ptr<LlamaModel> model = make(state, 1);
  if (model == nullptr) return;
  const std::vector<Token> prompt(200, 70);
  const EvalItem start{.seq = 0, .prefix = prompt};
  if (!model->evaluate({&start, 1}).ok() || !model->commit(0, {}).ok()) std::abort();
  TokenTree tree(70);
  for (NodeId i = 1; i < width; ++i) tree.add(i - 1, 71, 1.0f, 1);
  const EvalItem item{.seq = 0, .prefix = {}, .tree = &tree};
  const std::array<NodeId, 1> root{kRoot};
  for (auto _ : state) {
    if (!model->evaluate({&item, 1}).ok() || !model->commit(0, root).ok()) std::abort();
    if (model->length(0) == 256) {
      if (!model->truncate(0, 200).ok()) std::abort();
    }
  }
}

// The same with llama.cpp alone.
void llama_steps(benchmark::State& state) {
  const std::int32_t width = static_cast<std::int32_t>(state.range(0));
  std::unique_ptr<LlamaModel> model = make(state, 1);
  if (model == nullptr) return;
  const llama_memory_t memory = llama_get_memory(model->handle());
  std::vector<llama_token> tokens(200, 70);
  if (llama_decode(model->handle(), llama_batch_get_one(tokens.data(), 200)) != 0) std::abort();
  llama_batch batch = llama_batch_init(width, 0, 1);
  batch.n_tokens = width;
  llama_pos length = 200;
  for (auto _ : state) {
    for (std::int32_t i = 0; i < width; ++i) {
      batch.token[i] = i == 0 ? 70 : 71;
      batch.pos[i] = length + i;
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = 1;
    }
    if (llama_decode(model->handle(), batch) != 0) std::abort();
    benchmark::DoNotOptimize(llama_get_logits(model->handle()));
    ++length;
    if (width > 1) llama_memory_seq_rm(memory, 0, length, -1);
    if (length == 256) {
      length = 200;
      llama_memory_seq_rm(memory, 0, length, -1);
    }
  }
  llama_batch_free(batch);
}

// Four sequences of `length` tokens each, saved and put back.
void compaction(benchmark::State& state) {
  const std::int32_t length = static_cast<std::int32_t>(state.range(0));
  std::unique_ptr<LlamaModel> model = make(state, 4);
  if (model == nullptr) return;
  const std::vector<Token> piece(100, 70);
  for (SeqId seq = 0; seq < 4; ++seq) {
    while (model->length(seq) < length) {
      const EvalItem item{.seq = seq, .prefix = piece};
      if (!model->evaluate({&item, 1}).ok() || !model->commit(0, {}).ok()) std::abort();
    }
  }
  for (auto _ : state) {
    if (!model->compact().ok()) std::abort();
  }
}

BENCHMARK(steps)->Arg(1)->Arg(4)->Arg(8)->Arg(16)->Unit(benchmark::kMicrosecond);
BENCHMARK(llama_steps)->Arg(1)->Arg(4)->Unit(benchmark::kMicrosecond);
BENCHMARK(compaction)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace outrider::llama
