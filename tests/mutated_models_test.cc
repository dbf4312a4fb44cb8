// Model files with random damage, opened in a process of their own and given to `outrider inspect`:
// each is an error, or a model, and this process and the command go on. What llama.cpp aborts on is
// an error too. Of each kind of model; quick here, 10,000 files with OUTRIDER_SOAK (./dev soak).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "backend/llama_loader.h"
#include "testing/chi_square.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"
#include "tests/cli_process.h"
#include "tests/worker_process.h"

namespace outrider {
namespace {

// Most of the damage is where a file says what it is: its header, which is the first 8 KiB or so of
// a tiny model, far less than its weights.
void damage(std::string& bytes, std::mt19937_64& random) {
  const std::size_t header = std::min<std::size_t>(bytes.size(), 8192);
  for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
    const std::size_t at = random() % (random() % 8 == 0 ? bytes.size() : header);
    switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:  // a number that is far too large
        for (std::size_t i = at; i < std::min(at + 4, bytes.size()); ++i) bytes[i] = '\xff';
        break;
      default:
        if (random() % 4 == 0) bytes.resize(bytes.size() - random() % (bytes.size() / 2));
    }
    if (bytes.size() < 100) return;
  }
}

// A model of each architecture that llama.cpp reads in its own way, one with experts, one
// quantised.
std::vector<testing::TinyModelOptions> kinds() {
  using testing::TinyArchitecture;
  std::vector<testing::TinyModelOptions> all;
  for (const TinyArchitecture architecture :
       {TinyArchitecture::kLlama, TinyArchitecture::kSlidingWindow, TinyArchitecture::kShortConv,
        TinyArchitecture::kMamba}) {
    all.push_back({.architecture = architecture});
  }
  all.push_back({.n_expert = 4});
  all.push_back({.weight_type = testing::WeightType::kQ4_0});
  return all;
}

// `outrider inspect` of it: an answer or an error that names the file, and no signal. `which`: of
// the damaged files, for messages.
void expect_inspected(const testing::CliFolder& folder, const std::string& path,
                      const std::string& which) {
  const testing::CliResult result = testing::run_cli(folder.call({"inspect", path}));
  EXPECT_EQ(result.signal, 0) << which << ": " << result.err;
  if (result.exit_code == 0) return;
  EXPECT_EQ(result.exit_code, 1) << which << ": " << result.err;
  EXPECT_NE(result.err.find(path), std::string::npos) << which << ": " << result.err;
}

TEST(MutatedModels, AreErrorsOrModelsAndEndNobodyElse) {
  const testing::HostProgram host;
  const testing::TempDir dir;
  const testing::CliFolder folder;
  std::vector<std::string> good;
  for (const testing::TinyModelOptions& kind : kinds()) {
    ASSERT_TRUE(testing::write_tiny_gguf(dir.file("good.gguf"), kind).ok());
    good.push_back(testing::read_bytes(dir.file("good.gguf")));
  }
  LlamaLoaderOptions how;
  how.probe_budget_ms = 0.0;
  how.cache_folder = dir.file("cache");
  LlamaLoader loader(how);
  ModelOptions options;
  options.n_ctx = 64;
  options.n_threads = 1;
  options.isolate = true;
  const std::uint64_t seed = testing::test_seed(31);
  std::mt19937_64 random(seed);
  const int n = std::getenv("OUTRIDER_SOAK") != nullptr ? 10'000 : 30;
  int loaded = 0;
  int refused = 0;
  for (int i = 0; i < n; ++i) {
    std::string bytes = good[static_cast<std::size_t>(i) % good.size()];
    damage(bytes, random);
    options.path = dir.file("damaged.gguf");
    testing::write_bytes(options.path, bytes);
    expect_inspected(folder, options.path,
                     "seed " + std::to_string(seed) + ", file " + std::to_string(i));
    const Result<std::unique_ptr<Target>> target = loader.load_target(options, {});
    (target.ok() ? loaded : refused) += 1;
    if (target.ok()) continue;
    EXPECT_NE(target.status().message().find("damaged.gguf"), std::string::npos)
        << target.status().message() << ", seed " << seed << ", file " << i;
  }
  std::printf("  %d damaged files: %d refused, %d loaded\n", n, refused, loaded);
  EXPECT_GT(refused, n / 10) << "or nothing was damaged";
  options.path = dir.file("good.gguf");
  EXPECT_TRUE(loader.load_target(options, {}).ok());
}

}  // namespace
}  // namespace outrider
