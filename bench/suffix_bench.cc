// What the suffix drafter costs: a step of generation in a long context, alone and with a store of
// ten million tokens, or with a million tokens of finished texts; opening such a store; reading a
// prompt; remembering a text.
//
// The text is made up: words of a Zipf-like distribution with copied passages, as a file that is
// edited or an agent's log has them. A step accepts one token and drafts 15 nodes.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include "draft/suffix/suffix_drafter.h"

namespace outrider {
namespace {

constexpr std::int32_t kVocab = 49152;
const TokenizerId kTokenizer = {.hash = 1, .n_vocab = kVocab};

// Every third passage is a copy of an earlier one, with a token changed here and there.
std::vector<Token> made_up_text(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  std::vector<Token> text;
  while (text.size() < n) {
    const std::size_t length = 10 + random() % 60;
    const bool copy = text.size() > 1000 && random() % 3 != 0;
    const std::size_t from = copy ? random() % (text.size() - length) : 0;
    for (std::size_t i = 0; i < length; ++i) {
      const Token fresh =
          static_cast<Token>(std::pow(static_cast<double>(kVocab), uniform(random))) - 1;
      text.push_back(copy && random() % 20 != 0 ? text[from + i] : fresh);
    }
  }
  text.resize(n);
  return text;
}

// A store file that is built once a process and removed at its end.
class BigStore {
 public:
  explicit BigStore(std::size_t n_tokens)
      : path_(std::filesystem::temp_directory_path() /
              ("suffix_bench." + std::to_string(::getpid()) + ".store")) {
    SuffixStoreBuilder builder(kTokenizer);
    if (!builder.add(made_up_text(n_tokens, 1)).ok() || !builder.write(path_).ok()) {
      std::fprintf(stderr, "cannot write %s\n", path_.c_str());
      std::abort();
    }
  }
  ~BigStore() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

const BigStore& big_store() {
  static const BigStore store(10'000'000);
  return store;
}

void draft_steps(benchmark::State& state, SuffixStores stores, std::span<const Token> text,
                 std::size_t n_before, SuffixMemory* memory = nullptr) {
  SuffixDrafter drafter(1, std::move(stores));
  drafter.use_memory(memory);
  DraftRequest request;
  request.name_space = "a";
  request.max_nodes = 15;
  request.shape.branches = 16;
  request.mask = 1;
  std::size_t at = n_before;
  std::int64_t nodes = 0;
  for (auto _ : state) {
    if (at == text.size() || at == n_before) {
      state.PauseTiming();  // the prompt is read once
      drafter.end(0);
      TokenTree tree(text[n_before - 1]);
      request.text = text.first(n_before);
      request.tree = &tree;
      (void)drafter.draft(std::span(&request, 1));
      at = n_before;
      state.ResumeTiming();
    }
    TokenTree tree(text[at]);
    request.text = text.first(++at);
    request.tree = &tree;
    benchmark::DoNotOptimize(drafter.draft(std::span(&request, 1)).ok());
    nodes += tree.drafted();
  }
  state.counters["nodes"] = static_cast<double>(nodes) / static_cast<double>(state.iterations());
  state.counters["MiB"] = static_cast<double>(drafter.memory_bytes()) / (1 << 20);
}

void BM_StepAt32768(benchmark::State& state) {
  const std::vector<Token> text = made_up_text(32768 + 4096, 7);
  draft_steps(state, {}, text, 32768);
}
BENCHMARK(BM_StepAt32768)->Unit(benchmark::kMicrosecond);

void BM_StepAt32768WithTenMillionTokens(benchmark::State& state) {
  // Half of the text comes out of the store, so that its places are found.
  std::vector<Token> text = made_up_text(32768 + 4096, 7);
  const std::vector<Token> stored = made_up_text(4'000'000, 1);
  for (std::size_t i = 32768; i + 64 < text.size(); i += 128) {
    const std::size_t from = (i * 977) % (stored.size() - 64);
    std::copy_n(stored.begin() + static_cast<long>(from), 64, text.begin() + static_cast<long>(i));
  }
  SuffixStores stores = {SuffixStore::open(big_store().path()).value()};
  draft_steps(state, std::move(stores), text, 32768);
}
BENCHMARK(BM_StepAt32768WithTenMillionTokens)->Unit(benchmark::kMicrosecond);
// With the first reading and checking of each block that is touched.
BENCHMARK(BM_StepAt32768WithTenMillionTokens)->Iterations(2000)->Unit(benchmark::kMicrosecond);

// A namespace that is full: a quarter of a million tokens in eight automatons.
void fill(SuffixMemory& memory, std::span<const Token> text) {
  SuffixMemory::Cursor cursor;
  for (std::size_t at = 0; at + 4096 <= text.size(); at += 4096) {
    memory.add("a", text.subspan(at, 4096));
    for (int i = 0; i < 2; ++i) memory.look_up("a", text.first(1), cursor);
  }
}

void BM_StepAt32768WithAMillionTokensRemembered(benchmark::State& state) {
  std::vector<Token> text = made_up_text(32768 + 4096, 7);
  const std::vector<Token> earlier = made_up_text(300'000, 1);
  for (std::size_t i = 32768; i + 64 < text.size(); i += 128) {
    const std::size_t from = 60'000 + (i * 977) % 200'000;
    std::copy_n(earlier.begin() + static_cast<long>(from), 64, text.begin() + static_cast<long>(i));
  }
  SuffixMemory memory(1 << 20);
  fill(memory, earlier);
  draft_steps(state, {}, text, 32768, &memory);
}
BENCHMARK(BM_StepAt32768WithAMillionTokensRemembered)->Unit(benchmark::kMicrosecond);

void BM_RememberATextOf4096(benchmark::State& state) {
  const std::vector<Token> text = made_up_text(1'000'000, 1);
  SuffixMemory memory(1 << 20);
  fill(memory, text);
  SuffixMemory::Cursor cursor;
  std::size_t at = 0;
  for (auto _ : state) {
    at = at + 4096 <= text.size() - 4096 ? at + 4096 : 0;
    benchmark::DoNotOptimize(memory.add("a", std::span(text).subspan(at, 4096)));
    state.PauseTiming();
    for (int i = 0; i < 2; ++i) memory.look_up("a", std::span(text).first(1), cursor);
    state.ResumeTiming();
  }
}
BENCHMARK(BM_RememberATextOf4096)->Unit(benchmark::kMicrosecond);

void BM_ReadTwoThousandRememberedTokens(benchmark::State& state) {
  const std::vector<Token> text = made_up_text(1'000'000, 1);
  SuffixMemory memory(1 << 20);
  fill(memory, text);
  SuffixMemory::Cursor cursor;
  std::size_t at = 0;
  for (auto _ : state) {
    state.PauseTiming();
    at = at + 4096 <= text.size() ? at + 2048 : 0;
    memory.add("a", std::span(text).subspan(at, 2047));  // and the mark
    state.ResumeTiming();
    memory.look_up("a", std::span(text).first(1), cursor);
  }
}
BENCHMARK(BM_ReadTwoThousandRememberedTokens)->Unit(benchmark::kMillisecond);

void BM_OpenTenMillionTokens(benchmark::State& state) {
  const std::string path = big_store().path();
  for (auto _ : state) benchmark::DoNotOptimize(SuffixStore::open(path).ok());
}
BENCHMARK(BM_OpenTenMillionTokens)->Unit(benchmark::kMillisecond);

void BM_ReadPromptOf32768(benchmark::State& state) {
  const std::vector<Token> text = made_up_text(32768, 7);
  for (auto _ : state) {
    SuffixIndex index;
    for (const Token token : text) index.append(token);
    benchmark::DoNotOptimize(index.longest_match());
  }
}
BENCHMARK(BM_ReadPromptOf32768)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace outrider

BENCHMARK_MAIN();
