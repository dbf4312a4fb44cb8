// Same output, on real files: with the same seed, the text with speculation equals plain
// decoding's, token for token, whatever drafts, however wide, at every temperature.
//
// Tiny models with quantised weights and a Q8_0 cache, for which a batch gives the bits of single
// steps. F32 weights do not (docs/decisions.md), which is why they are not used here.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/random.h"
#include "llama/exactness/exactness_rule.h"
#include "testing/chi_square.h"
#include "testing/fake_drafter.h"
#include "testing/sanitized.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_pair.h"
#include "tests/long_short.h"
#include "tests/pair.h"
#include "tests/perturbed_model.h"
#include "tests/step_widths.h"

namespace outrider {
namespace {

using testing::add_chain;
using testing::OpenModel;
using testing::RunOptions;
using testing::ScriptedDrafter;

// Sanitizers make a step ten times dearer; there a tenth of the prompts is enough.
constexpr std::size_t kPrompts = testing::kSanitized ? 12 : 200;
constexpr std::int32_t kTokens = 16;

ModelOptions model_options(std::int32_t n_ctx = 256) {
  ModelOptions options;
  options.n_ctx = n_ctx;
  options.n_batch = 64;
  options.n_threads = 1;
  return options;
}

struct Weights {
  const char* name;
  testing::WeightType type;
  int n_expert = 0;
};

class SameOutput : public ::testing::TestWithParam<Weights> {
 protected:
  void SetUp() override {
    testing::TinyPairOptions pair;
    pair.target.weight_type = GetParam().type;
    pair.target.n_expert = GetParam().n_expert;
    pair.target.eos_bias = -4.0f;  // an end token now and then
    pair.noise = 0.05f;
    const Status written =
        testing::write_tiny_pair(dir_.file("target.gguf"), dir_.file("draft.gguf"), pair);
    ASSERT_TRUE(written.ok()) << written.message();
    target_ = std::make_unique<OpenModel>(dir_.file("target.gguf"), model_options(),
                                          llama::ContextSettings{}, true);
    draft_ = std::make_unique<OpenModel>(dir_.file("draft.gguf"), model_options(),
                                         llama::ContextSettings{}, true);
    same_ = std::make_unique<OpenModel>(dir_.file("target.gguf"), model_options(),
                                        llama::ContextSettings{}, true);
  }

  // The whole list with one kind of weights; a quarter with the others takes the same path again.
  static std::size_t n_prompts() {
    return GetParam().type == testing::WeightType::kQ8_0 ? kPrompts : kPrompts / 4;
  }
  const Vocabulary& vocabulary() const { return target_->file->text_vocabulary(); }
  std::function<bool(Token)> is_end() const {
    return [this](Token t) { return vocabulary().is_end_of_generation(t); };
  }

  Completion run(std::vector<Drafter*> drafters, const RunOptions& options,
                 const DraftModelDrafter* draft = nullptr) {
    return testing::run_checked(*target_->model, vocabulary(), std::move(drafters), options,
                                [=, this] {
                                  std::string problem = target_->model->check_integrity();
                                  if (problem.empty() && draft != nullptr)
                                    problem = draft->check_integrity();
                                  if (problem.empty() && draft != nullptr)
                                    problem = draft_->model->check_integrity();
                                  return problem;
                                });
  }

  testing::TempDir dir_;
  std::unique_ptr<OpenModel> target_;
  std::unique_ptr<OpenModel> draft_;
  std::unique_ptr<OpenModel> same_;  // the target's weights in a context of their own
};

RunOptions options_for(std::size_t i, const std::vector<Token>& prompt, float temperature) {
  RunOptions options;
  options.prompt = prompt;
  options.seed = 1000 + i;
  options.max_tokens = kTokens;
  options.sampling.temperature = temperature;
  if (i % 2 == 0) {  // every other prompt without filters
    options.sampling.top_k = 0;
    options.sampling.top_p = 1.0f;
    options.sampling.min_p = 0.0f;
  }
  return options;
}

// Name and script of every kind of drafter that needs no model.
std::vector<std::pair<std::string, testing::Script>> scripts(const std::vector<Token>& whole,
                                                             std::int32_t n_vocab) {
  return {
      {"always right", testing::prophet(whole, 100, 0, n_vocab)},
      {"always wrong", testing::prophet(whole, 100, 1, n_vocab)},
      {"random",
       [n_vocab](DraftRequest& r) {
         std::vector<Token> chain;
         for (std::uint32_t k = 0; k < 20; ++k) {
           chain.push_back(static_cast<Token>(noise_bits(noise_key(r.text.size(), 1), k) %
                                              static_cast<std::uint32_t>(n_vocab)));
         }
         add_chain(r, chain);
         return Status();
       }},
      {"empty", [](DraftRequest&) { return Status(); }},
      {"too long",
       [](DraftRequest& r) {
         add_chain(r, std::vector<Token>(300, 40));
         return Status();
       }},
      {"out of range",
       [n_vocab](DraftRequest& r) {
         add_chain(r, std::vector<Token>{40, n_vocab, 1 << 30, -5});
         return Status();
       }},
  };
}

TEST_P(SameOutput, EveryDrafterWidthAndTemperatureGivesThePlainText) {
  const std::uint64_t seed = testing::test_seed(20261121);
  const std::vector<std::vector<Token>> prompts =
      testing::seeded_prompts(vocabulary(), seed, n_prompts(), 60);
  DraftModelDrafter good(*draft_->model, vocabulary().size(), is_end());
  const std::vector<std::int32_t> some = {2, 3, 4, 8, 16};
  testing::SeenWidths seen;
  std::int64_t runs = 0;
  std::int64_t accepted = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    for (const float temperature : {0.0f, 0.7f, 1.0f}) {
      RunOptions options = options_for(i, prompts[i], temperature);
      const Completion plain = run({}, options);
      std::vector<Token> whole = prompts[i];
      whole.insert(whole.end(), plain.tokens.begin(), plain.tokens.end());
      const bool all = temperature == 0.0f && i % 8 == 0;
      for (const std::int32_t width : all ? testing::every_width() : some) {
        options.width = width;
        const Completion drafted = run({&good}, options, &good);
        ASSERT_EQ(drafted.tokens, plain.tokens)
            << "draft model, prompt " << i << ", T " << temperature << ", width " << width;
        ASSERT_EQ(drafted.text, plain.text);
        ASSERT_EQ(drafted.finish, plain.finish);
        accepted += drafted.speculation.accepted;
        for (const auto& [name, script] : scripts(whole, vocabulary().size())) {
          ScriptedDrafter drafter(script);
          const Completion got = run({&drafter}, options);
          ASSERT_EQ(got.tokens, plain.tokens)
              << name << ", prompt " << i << ", T " << temperature << ", width " << width;
          if (all) seen.add(width, got.speculation);
          ++runs;
        }
        ++runs;
      }
    }
  }
  std::printf("%lld speculative runs equal plain decoding; the draft model had %lld accepted\n",
              static_cast<long long>(runs), static_cast<long long>(accepted));
  EXPECT_GT(accepted, runs / 7);  // the draft is a draft: it is right often enough to matter
  EXPECT_EQ(seen.missing(), "");
}

// What exactness depends on beside the weights.
struct Setting {
  bool own;  // our kernels; else llama.cpp's, on plain weight buffers
  const char* type_k;
  const char* type_v;
  std::int32_t n_threads;
};

// Those that are exact on a processor by the rule (llama/exactness/exactness_rule.h).
constexpr Setting kExactSettings[] = {{true, "f16", "f16", 2},   {true, "bf16", "f16", 1},
                                      {true, "q8_0", "q8_0", 1}, {true, "f32", "f32", 1},
                                      {false, "bf16", "f16", 2}, {false, "q8_0", "q8_0", 1}};

// The text goes past 256 cells, up to which more caches are exact (docs/decisions.md).
TEST_P(SameOutput, EveryExactSettingGivesThePlainTextAtEveryWidth) {
  constexpr std::int32_t kContext = 320;
  RunOptions options;
  options.prompt = testing::seeded_prompt(vocabulary(), testing::test_seed(9), 240);
  options.max_tokens = 40;
  options.sampling.temperature = 0.0f;
  OpenModel draft(dir_.file("draft.gguf"), model_options(kContext), {}, true);
  DraftModelDrafter good(*draft.model, vocabulary().size(), is_end());
  for (const Setting& setting : kExactSettings) {
    SCOPED_TRACE(::testing::Message() << (setting.own ? "own " : "stock ") << setting.type_k << ' '
                                      << setting.type_v << ' ' << setting.n_threads);
    ModelOptions model = model_options(kContext);
    model.path = dir_.file("target.gguf");
    model.n_threads = setting.n_threads;
    const Result<llama::RuleFacts> facts = llama::read_rule_facts(model);
    ASSERT_TRUE(facts.ok()) << facts.status().message();
    if (setting.own && !facts->own_attention) continue;
    // Of llama.cpp's kernels for experts the rule says nothing.
    if (!setting.own && GetParam().n_expert > 0) continue;
    llama::ContextSettings context;
    context.type_k = setting.type_k;
    context.type_v = setting.type_v;
    OpenModel target(model.path, model, context, /*extra_bufts=*/setting.own);
    ASSERT_EQ(target.file->facts().kernels.own, setting.own);
    const auto run_on = [&](std::vector<Drafter*> drafters) {
      return testing::run_checked(*target.model, vocabulary(), std::move(drafters), options,
                                  [&target] { return target.model->check_integrity(); });
    };
    options.width = 1;
    const Completion plain = run_on({});
    std::vector<Token> whole = options.prompt;
    whole.insert(whole.end(), plain.tokens.begin(), plain.tokens.end());
    ScriptedDrafter mostly_right(testing::prophet(whole, 100, 5, vocabulary().size()));
    testing::SeenWidths of_draft;
    testing::SeenWidths of_script;
    for (const std::int32_t width : testing::every_width()) {
      options.width = width;
      const Completion drafted = run_on({&good});
      ASSERT_EQ(drafted.tokens, plain.tokens) << "draft model, width " << width;
      of_draft.add(width, drafted.speculation);
      const Completion scripted = run_on({&mostly_right});
      ASSERT_EQ(scripted.tokens, plain.tokens) << "mostly right, width " << width;
      of_script.add(width, scripted.speculation);
    }
    EXPECT_EQ(of_draft.missing(), "");
    EXPECT_EQ(of_script.missing(), "");
  }
}

TEST_P(SameOutput, TheTargetAsItsOwnDraftIsAcceptedWhole) {
  const std::vector<std::vector<Token>> prompts =
      testing::seeded_prompts(vocabulary(), testing::test_seed(5), 12, 40);
  DraftModelDrafter itself(*same_->model, vocabulary().size(), is_end());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    for (const float temperature : {0.0f, 1.0f}) {
      RunOptions options = options_for(i, prompts[i], temperature);
      options.width = 4;
      const Completion got = run({&itself}, options);
      EXPECT_EQ(got.speculation.accepted, got.speculation.drafted);
      EXPECT_GT(got.speculation.drafted, 0);
    }
  }
}

// What a chain remembers goes down the draft: the tokens drafted so far, the place in the text, and
// what was learned of the text before. A draft without it would guess what the target never says.
TEST_P(SameOutput, TheTargetAsItsOwnDraftIsAcceptedWholeByChainsThatRemember) {
  const std::vector<std::vector<Token>> prompts =
      testing::seeded_prompts(vocabulary(), testing::test_seed(8), 8, 40);
  DraftModelDrafter itself(*same_->model, vocabulary().size(), is_end());
  const SamplingOptions chains[] = {
      {.temperature = 1.0f, .repeat_penalty = 1.5f},
      {.temperature = 1.0f, .grammar = "root ::= ([0-9] [a-f])+"},
      {.temperature = 1.0f, .xtc_probability = 0.5f, .xtc_threshold = 0.05f},
      {.temperature = 1.0f, .mirostat = 2, .mirostat_tau = 2.0f, .mirostat_eta = 0.5f}};
  for (const SamplingOptions& chain : chains) {
    std::int64_t drafted = 0;
    int differ = 0;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      RunOptions options = options_for(i, prompts[i], 1.0f);
      options.sampling = {.temperature = 1.0f};
      const Completion without = run({}, options);
      options.sampling = chain;
      options.width = 4;
      const Completion got = run({&itself}, options);
      EXPECT_EQ(got.speculation.accepted, got.speculation.drafted)
          << "chain " << &chain - chains << ", prompt " << i;
      drafted += got.speculation.drafted;
      differ += got.tokens != without.tokens ? 1 : 0;
    }
    EXPECT_GT(drafted, 0);
    EXPECT_GT(differ, 0) << "chain " << &chain - chains << " changed nothing";
  }
}

TEST_P(SameOutput, ALongTextThenAShortOneGiveThePlainTextsInSteadyMemory) {
  DraftModelDrafter drafter(*draft_->model, vocabulary().size(), is_end());
  testing::expect_long_and_short(*target_->model, vocabulary(), drafter, [&] {
    const std::string problem = drafter.check_integrity();
    return problem.empty() ? draft_->model->check_integrity() : problem;
  });
}

TEST_P(SameOutput, EveryAcceptanceCountKeepsBothCachesInStep) {
  const std::vector<std::vector<Token>> prompts =
      testing::seeded_prompts(vocabulary(), testing::test_seed(6), 3, 30);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    RunOptions options = options_for(i, prompts[i], 1.0f);
    const Completion plain = run({}, options);
    std::vector<Token> whole = prompts[i];
    whole.insert(whole.end(), plain.tokens.begin(), plain.tokens.end());
    for (std::int32_t width = 2; width <= 9; ++width) {
      for (std::int32_t right = 0; right < width; ++right) {
        // `right` tokens as the target will say them, the rest wrong.
        ScriptedDrafter drafter([&](DraftRequest& r) {
          std::vector<Token> chain;
          for (std::int32_t k = 0; k < r.max_nodes; ++k) {
            const std::size_t at = r.text.size() + static_cast<std::size_t>(k);
            const Token good = at < whole.size() ? whole[at] : 40;
            chain.push_back(k < right ? good : (good + 1) % vocabulary().size());
          }
          add_chain(r, chain);
          return Status();
        });
        options.width = width;
        const Completion got = run({&drafter}, options);
        ASSERT_EQ(got.tokens, plain.tokens) << "width " << width << ", right " << right;
      }
    }
  }
}

TEST_P(SameOutput, StopStringsCutTheSameTextAtEveryWidth) {
  const std::vector<std::vector<Token>> prompts =
      testing::seeded_prompts(vocabulary(), testing::test_seed(7), 6, 30);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    RunOptions options = options_for(i, prompts[i], 1.0f);
    const Completion plain = run({}, options);
    for (std::size_t at = 0; at + 3 < plain.text.size(); at += 2) {
      options.stop = {plain.text.substr(at, 3)};
      options.width = 1;
      const Completion stopped = run({}, options);
      ASSERT_EQ(stopped.finish, FinishReason::kStop);
      std::vector<Token> whole = prompts[i];
      whole.insert(whole.end(), plain.tokens.begin(), plain.tokens.end());
      for (const std::int32_t width : {2, 5, 16}) {
        ScriptedDrafter drafter(testing::prophet(whole, 100, 0, vocabulary().size()));
        options.width = width;
        const Completion got = run({&drafter}, options);
        ASSERT_EQ(got.text, stopped.text);
        ASSERT_EQ(got.tokens, stopped.tokens);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Weights, SameOutput,
    ::testing::Values(Weights{"Q8_0", testing::WeightType::kQ8_0},
                      Weights{"Q4_0", testing::WeightType::kQ4_0},
                      Weights{"Q4_0_of_6_experts", testing::WeightType::kQ4_0, 6}),
    [](const ::testing::TestParamInfo<Weights>& tested) { return std::string(tested.param.name); });

TEST(SameOutputControl, LogitsThatDifferInABatchAreNoticed) {
  testing::TempDir dir;
  testing::TinyModelOptions model;
  ASSERT_TRUE(testing::write_tiny_gguf(dir.file("target.gguf"), model).ok());
  OpenModel target(dir.file("target.gguf"), model_options(), {}, true);
  const Vocabulary& vocabulary = target.file->text_vocabulary();
  const std::vector<std::vector<Token>> prompts = testing::seeded_prompts(vocabulary, 8, 20, 30);
  int differ = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    RunOptions options = options_for(i, prompts[i], 1.0f);
    const Completion plain = testing::run_checked(*target.model, vocabulary, {}, options, nullptr);
    std::vector<Token> whole = prompts[i];
    whole.insert(whole.end(), plain.tokens.begin(), plain.tokens.end());
    ScriptedDrafter drafter(testing::prophet(whole, 100, 0, vocabulary.size()));
    testing::PerturbedModel perturbed(*target.model, 0.2f);
    options.width = 4;
    const Completion got =
        testing::run_checked(perturbed, vocabulary, {&drafter}, options, nullptr);
    differ += got.tokens != plain.tokens ? 1 : 0;
  }
  EXPECT_GT(differ, 0) << "a comparison that cannot fail shows nothing";
}

}  // namespace
}  // namespace outrider
