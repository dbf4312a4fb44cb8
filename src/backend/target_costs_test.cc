// What was measured and what was read are found again only for the same model, build, machine and
// settings.
#include "backend/target_costs.h"

#include <gtest/gtest.h>

#include <string>

#include "llama/base/backend.h"
#include "llama/exactness/exactness_key.h"
#include "llama/kernels/own_kernels.h"
#include "testing/gguf_file.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider {
namespace {

// Cells of another build or machine would be taken for this one's.
TEST(TimesKey, NamesTheBuildAndTheMachine) {
  const testing::TempDir dir;
  ModelOptions options;
  options.path = dir.file("model.gguf");
  ASSERT_TRUE(testing::write_tiny_gguf(options.path, {}).ok());
  const std::string key = times_key({}, options);
  EXPECT_NE(
      key.find(" | " + llama::build_identity() + " | " + llama::machine_identity(false) + " | "),
      std::string::npos)
      << key;
}

TEST(TimesKey, TellsFrequencyBasesApartThatDifferInTheLastDigit) {
  const testing::TempDir dir;
  ModelOptions options;
  options.path = dir.file("model.gguf");
  ASSERT_TRUE(testing::write_tiny_gguf(options.path, {}).ok());
  options.rope_freq_base = 1000000.0F;
  const std::string key = times_key({}, options);
  options.rope_freq_base = 1000001.0F;
  EXPECT_NE(times_key({}, options), key);
}

// How many threads they are, whoever chose them: times of as many hold for both.
TEST(TimesKey, HasAsManyThreadsAsAreTaken) {
  const testing::TempDir dir;
  ModelOptions options;
  options.path = dir.file("model.gguf");
  ASSERT_TRUE(testing::write_tiny_gguf(options.path, {}).ok());
  options.n_threads = 0;
  const std::string by_itself = times_key({}, options);
  options.n_threads = llama::physical_cores();
  EXPECT_EQ(times_key({}, options), by_itself);
  ++options.n_threads;
  EXPECT_NE(times_key({}, options), by_itself);
}

TEST(StateKey, ChangesWithEachThingThatAStateDependsOn) {
  const testing::TempDir dir;
  ModelOptions options;
  options.path = dir.file("model.gguf");
  options.n_threads = 1;
  ASSERT_TRUE(testing::write_tiny_gguf(options.path, {}).ok());
  const std::string adapter = dir.file("adapter.gguf");
  testing::write_bytes(adapter, "nothing here looks into it");
  const auto state_with = [&options](auto change, const Capabilities& capabilities = {}) {
    ModelOptions changed = options;
    change(changed);
    return state_key(times_key(capabilities, changed), changed);
  };
  const std::string state = state_with([](ModelOptions&) {});
  EXPECT_NE(state, "");
  EXPECT_EQ(state, state_with([](ModelOptions& o) { o.use_mmap = false; }));
  if (!llama::own_kernels().instruction_set.empty()) {
    EXPECT_NE(state, state_with([](ModelOptions& o) { o.kernels = KernelChoice::kStock; }));
  }
  EXPECT_NE(state, state_with([](ModelOptions& o) { o.cache_type_k = "q8_0"; }));
  EXPECT_NE(state, state_with([](ModelOptions& o) { o.cache_type_v = "q8_0"; }));
  EXPECT_NE(state, state_with([](ModelOptions& o) { o.flash_attention = FlashAttention::kOn; }));
  EXPECT_NE(state, state_with([](ModelOptions& o) { o.exact = ExactMode::kOff; }));
  EXPECT_NE(state, state_with([](ModelOptions& o) { o.n_threads = 2; }));
  EXPECT_NE(state, state_with([](ModelOptions& o) { o.n_gpu_layers = 1; }));
  EXPECT_NE(state, state_with([](ModelOptions& o) { o.rope_freq_base = 5000.0f; }));
  EXPECT_NE(state, state_with([](ModelOptions& o) { o.rope_freq_scale = 0.5f; }));
  EXPECT_NE(state, state_with([](ModelOptions& o) { o.tensor_split = {0.5f}; }));
  EXPECT_NE(state, state_with([](ModelOptions& o) { o.workers = {"127.0.0.1:50052"}; }));
  EXPECT_NE(state, state_with([](ModelOptions& o) { o.isolate = true; }));
  EXPECT_NE(state, state_with([&](ModelOptions& o) { o.lora = {adapter}; }));
  const auto same = [](ModelOptions&) {};
  EXPECT_NE(state, state_with(same, {.n_batch = 64}));
  EXPECT_NE(state, state_with(same, {.max_width = 4}));
  EXPECT_NE(state, state_with(same, {.n_hidden = 128}));

  // An adapter counts by what it holds, not only by its size and time.
  options.lora = {adapter};
  const std::string key = times_key({}, options);
  testing::write_bytes(adapter, "nothing here looks into IT");
  EXPECT_NE(times_key({}, options), key);
}

}  // namespace
}  // namespace outrider
