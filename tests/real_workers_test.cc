// A real pair with the target on two workers: the text of one process, with speculation and
// without. Needs the files of `./dev models` (OUTRIDER_MODELS_DIR).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "backend/llama_loader.h"
#include "tests/pair.h"
#include "tests/worker_process.h"

namespace outrider {
namespace {

const char* kPrompts[] = {
    "<|im_start|>user\nTell a short story about a fox and a clock.<|im_end|>\n"
    "<|im_start|>assistant\n",
    "The three laws of motion say that",
};

struct Pair {
  const char* target;
  const char* draft;
};

// Q4_K_M's matrices take more room packed than the client gave them: a worker keeps them apart.
class RealModelWorkers : public ::testing::TestWithParam<Pair> {};

TEST_P(RealModelWorkers, TheTextIsThatOfOneProcess) {
  const char* folder = std::getenv("OUTRIDER_MODELS_DIR");
  if (folder == nullptr) GTEST_SKIP() << "OUTRIDER_MODELS_DIR does not name the models";
  const testing::HostProgram host;
  const testing::WorkerProcess one;
  const testing::WorkerProcess two;
  ModelOptions options;
  options.path = std::filesystem::path(folder) / GetParam().target;
  options.n_ctx = 512;
  options.exact = ExactMode::kOn;
  options.widest = 4;
  testing::OpenModel near(options.path, options, {.type_k = "q8_0", .type_v = "q8_0"},
                          /*extra_bufts=*/true);
  testing::OpenModel drafts(std::filesystem::path(folder) / GetParam().draft, options,
                            llama::ContextSettings{}, /*extra_bufts=*/true);
  options.workers = {one.address(), two.address()};
  LlamaLoader loader;
  const Result<std::unique_ptr<Target>> far = loader.load_target(options, {});
  ASSERT_TRUE(far.ok()) << far.status().message();
  EXPECT_EQ((*far)->exactness().verdict(), "exact") << (*far)->exactness().reason;
  const Vocabulary& vocabulary = (*far)->vocabulary();
  DraftModelDrafter drafter(*drafts.model, vocabulary.size(), {});
  for (const char* prompt : kPrompts) {
    for (const float temperature : {0.0f, 0.8f}) {
      testing::RunOptions run;
      run.prompt = *vocabulary.tokenize(prompt, /*add_special=*/true, /*parse_special=*/true);
      run.sampling.temperature = temperature;
      run.seed = 11;
      run.max_tokens = 48;
      const Completion wanted = testing::run_checked(*near.model, vocabulary, {}, run, {});
      EXPECT_EQ(testing::run_checked((*far)->model(), vocabulary, {}, run, {}).tokens,
                wanted.tokens);
      run.width = 4;
      const Completion speculative =
          testing::run_checked((*far)->model(), vocabulary, {&drafter}, run, {});
      EXPECT_EQ(speculative.tokens, wanted.tokens);
      EXPECT_GT(speculative.speculation.accepted, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Targets, RealModelWorkers,
    ::testing::Values(Pair{"SmolLM2-135M-Instruct-Q4_1.gguf", "draft-q3_k_s.gguf"},
                      Pair{"gemma-3-270m-q4_k_m.gguf", "gemma-3-270m-q4_k_m.gguf"}),
    [](const auto& test) { return test.index == 0 ? "SmolLM2Q4_1" : "Gemma3Q4_K_M"; });

}  // namespace
}  // namespace outrider
