// Same output on a real pair: SmolLM2-135M-Instruct requantised to Q4_0 as the target, Q3_K_S as
// the draft. Needs the files of `./dev models`, named by OUTRIDER_MODELS_DIR. Recorded runs of 600
// tokens, on the 1.8B stand-in as well, are in docs/benchmarks-counts.md.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "llama/open_target.h"
#include "tests/pair.h"

namespace outrider {
namespace {

using testing::RunOptions;

constexpr std::int32_t kTokens = 64;

const char* kPrompts[] = {
    "<|im_start|>user\nTell a short story about a fox and a clock.<|im_end|>\n"
    "<|im_start|>assistant\n",
    "<|im_start|>user\nWrite a Python function that reverses a list.<|im_end|>\n"
    "<|im_start|>assistant\n",
    "The three laws of motion say that",
};

class RealModelPair : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("OUTRIDER_MODELS_DIR");
    if (folder == nullptr) GTEST_SKIP() << "OUTRIDER_MODELS_DIR does not name the models";
    target_path_ = std::filesystem::path(folder) / "smollm2-q4_0.gguf";
    draft_path_ = std::filesystem::path(folder) / "draft-q3_k_s.gguf";
    ASSERT_TRUE(std::filesystem::exists(target_path_)) << target_path_ << ": run ./dev models";
  }

  ModelOptions options(const std::string& path) const {
    ModelOptions o;
    o.path = path;
    o.n_ctx = 1024;
    return o;
  }

  std::string target_path_;
  std::string draft_path_;
};

RunOptions run_options(const Vocabulary& vocabulary, const char* prompt, float temperature) {
  RunOptions o;
  o.prompt = *vocabulary.tokenize(prompt, /*add_special=*/true, /*parse_special=*/true);
  o.sampling.temperature = temperature;
  o.seed = 11;
  o.max_tokens = kTokens;
  return o;
}

TEST_F(RealModelPair, GivesThePlainTextAtEveryTemperatureAndWidthWithExactOn) {
  ModelOptions target_options = options(target_path_);
  target_options.exact = ExactMode::kOn;
  Result<llama::OpenedTarget> target = llama::open_target(target_options, {}, {.widest = 8});
  ASSERT_TRUE(target.ok()) << target.status().message();
  EXPECT_EQ(target->exactness.verdict(), "exact") << target->exactness.reason;
  std::printf("probe: %s\n", target->exactness.coverage.c_str());
  Result<std::unique_ptr<llama::LlamaModel>> draft = llama::open_draft(options(draft_path_), {});
  ASSERT_TRUE(draft.ok()) << draft.status().message();
  const Vocabulary& vocabulary = target->file->text_vocabulary();
  DraftModelDrafter drafter(**draft, vocabulary.size(),
                            [&](Token t) { return vocabulary.is_end_of_generation(t); });
  const auto check = [&] {
    const std::string problem = drafter.check_integrity();
    return problem.empty() ? target->model->check_integrity() : problem;
  };
  std::int64_t accepted = 0, drafted = 0;
  for (const char* prompt : kPrompts) {
    for (const float temperature : {0.0f, 0.7f, 1.0f}) {
      RunOptions o = run_options(vocabulary, prompt, temperature);
      const Completion plain = testing::run_checked(*target->model, vocabulary, {}, o, check);
      for (const std::int32_t width : {2, 4, 8}) {
        o.width = width;
        const Completion got =
            testing::run_checked(*target->model, vocabulary, {&drafter}, o, check);
        ASSERT_EQ(got.tokens, plain.tokens) << "T " << temperature << ", width " << width << "\n"
                                            << plain.text << "\n---\n"
                                            << got.text;
        ASSERT_EQ(got.text, plain.text);
        accepted += got.speculation.accepted;
        drafted += got.speculation.drafted;
      }
    }
  }
  std::printf("accepted %lld of %lld drafted\n", static_cast<long long>(accepted),
              static_cast<long long>(drafted));
  EXPECT_GT(3 * accepted, drafted);  // a useful draft: widths 2 to 8 gave 0.5 to 0.7 when recorded
}

TEST_F(RealModelPair, TheTargetAsItsOwnDraftIsAcceptedWhole) {
  Result<llama::OpenedTarget> target = llama::open_target(options(target_path_), {}, {.widest = 4});
  ASSERT_TRUE(target.ok()) << target.status().message();
  Result<llama::OpenedTarget> draft = llama::open_target(options(target_path_), {}, {.widest = 4});
  ASSERT_TRUE(draft.ok()) << draft.status().message();
  const Vocabulary& vocabulary = target->file->text_vocabulary();
  DraftModelDrafter itself(*draft->model, vocabulary.size(),
                           [&](Token t) { return vocabulary.is_end_of_generation(t); });
  for (const float temperature : {0.0f, 1.0f}) {
    RunOptions o = run_options(vocabulary, kPrompts[0], temperature);
    o.width = 4;
    const Completion got = testing::run_checked(*target->model, vocabulary, {&itself}, o, {});
    EXPECT_EQ(got.speculation.accepted, got.speculation.drafted);
  }
}

}  // namespace
}  // namespace outrider
