// Prediction layers (MTP) of tiny models: the text is that of plain decoding whatever they guess,
// an equal block is right throughout, one of noise next to never, and the guesses are llama.cpp's
// own.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "draft/model/head_chain.h"
#include "llama/open_target.h"
#include "llama/sampling/sampler_chain.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/fake_model.h"
#include "testing/llama_heads.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf_lag.h"
#include "tests/pair.h"

namespace outrider {
namespace {

using testing::RunOptions;
using testing::TinyHead;
using testing::TinyLagArchitecture;
using testing::TinyLagOptions;

struct Opened {
  // `as_llama_cpp`: with its kernels and its types of cache, so that numbers are its own.
  explicit Opened(const TinyLagOptions& lag, std::int32_t n_sequences = 1,
                  bool as_llama_cpp = false) {
    const Status written = testing::write_tiny_lag(dir.file("target.gguf"), lag);
    EXPECT_TRUE(written.ok()) << written.message();
    ModelOptions options;
    options.path = dir.file("target.gguf");
    options.n_ctx = 256;
    options.n_batch = 64;
    options.n_threads = 1;
    options.n_sequences = n_sequences;
    if (as_llama_cpp) {
      options.kernels = KernelChoice::kStock;
      options.cache_type_k = options.cache_type_v = "f16";
    }
    llama::TargetOptions how;
    how.widest = 8;
    how.cache_folder = std::filesystem::path();
    how.probe_budget_ms = 300.0;
    Result<llama::OpenedTarget> result = llama::open_target(options, {}, how);
    EXPECT_TRUE(result.ok()) << result.status().message();
    target = std::move(*result);
    if (target.prediction.empty()) return;
    std::vector<LanguageModel*> layers;
    for (const std::unique_ptr<llama::LlamaModel>& layer : target.prediction) {
      layers.push_back(layer.get());
    }
    if (layers.size() > 1) chain.emplace(layers);
    LanguageModel& head = chain ? static_cast<LanguageModel&>(*chain) : *layers[0];
    drafter.emplace(
        head, vocabulary().size(), [this](Token t) { return vocabulary().is_end_of_generation(t); },
        /*learns=*/true, HeadOptions{.name = kMtpName});
  }

  const Vocabulary& vocabulary() const { return target.file->text_vocabulary(); }
  std::string check() const {
    std::string wrong = target.model->check_integrity();
    for (const std::unique_ptr<llama::LlamaModel>& layer : target.prediction) {
      if (wrong.empty()) wrong = layer->check_integrity();
    }
    if (wrong.empty() && chain) wrong = chain->check_integrity();
    return wrong.empty() ? drafter->check_integrity() : wrong;
  }
  Completion run(const RunOptions& options, bool speculative) {
    std::vector<Drafter*> drafters;
    if (speculative) drafters.push_back(&*drafter);
    return testing::run_checked(*target.model, vocabulary(), drafters, options,
                                [this] { return check(); });
  }

  testing::TempDir dir;
  llama::OpenedTarget target;
  std::optional<HeadChain> chain;
  std::optional<DraftModelDrafter> drafter;
};

TinyLagOptions lag_of(TinyLagArchitecture architecture, TinyHead head, float noise = 0.0f) {
  TinyLagOptions lag;
  lag.architecture = architecture;
  lag.mtp = {head};
  lag.mtp_noise = noise;
  lag.weight_type = testing::WeightType::kQ8_0;
  return lag;
}

struct Kind {
  TinyLagArchitecture architecture;
  std::size_t layers = 1;
};

class MtpOutput : public ::testing::TestWithParam<Kind> {
 protected:
  static TinyLagOptions lag(TinyHead head, float noise = 0.0f) {
    TinyLagOptions options = lag_of(GetParam().architecture, head, noise);
    options.mtp.assign(GetParam().layers, head);
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Architectures, MtpOutput,
                         ::testing::Values(Kind{TinyLagArchitecture::kHyV3},
                                           Kind{TinyLagArchitecture::kHyV3, 3},
                                           Kind{TinyLagArchitecture::kQwen35}),
                         [](const ::testing::TestParamInfo<Kind>& kind) {
                           return testing::tiny_lag_architecture_name(kind.param.architecture) +
                                  std::to_string(kind.param.layers);
                         });

RunOptions options_for(const std::vector<Token>& prompt, float temperature, std::int32_t width) {
  RunOptions options;
  options.prompt = prompt;
  options.seed = 7;
  options.max_tokens = 24;
  options.width = width;
  options.sampling.temperature = temperature;
  options.shape.branches = 1;
  return options;
}

TEST_P(MtpOutput, TheTextIsPlainDecodingsAtEveryTemperatureAndWidth) {
  for (const float noise : {0.0f, 0.2f}) {
    Opened opened(lag(TinyHead::kEqual, noise));
    ASSERT_TRUE(opened.drafter) << opened.target.no_prediction_reason;
    const bool trees = opened.target.model->capabilities().max_leaves > 1;
    for (const std::vector<Token>& prompt :
         testing::seeded_prompts(opened.vocabulary(), 3, 4, 20)) {
      for (const float temperature : {0.0f, 0.7f, 1.0f}) {
        const Completion plain = opened.run(options_for(prompt, temperature, 1), false);
        for (const std::int32_t width : {2, 4, 8}) {
          RunOptions options = options_for(prompt, temperature, width);
          options.shape.branches = trees && width > 4 ? 4 : 1;
          const Completion got = opened.run(options, true);
          EXPECT_EQ(got.tokens, plain.tokens) << noise << ' ' << temperature << ' ' << width;
          EXPECT_GT(got.speculation.drafted, 0);
        }
      }
    }
  }
}

TEST_P(MtpOutput, ABlockThatEqualsTheTargetIsAcceptedAndOneOfNoiseNextToNever) {
  for (const TinyHead head : {TinyHead::kEqual, TinyHead::kNoise}) {
    Opened opened(lag(head));
    ASSERT_TRUE(opened.drafter) << opened.target.no_prediction_reason;
    std::int64_t drafted = 0;
    std::int64_t accepted = 0;
    for (const std::vector<Token>& prompt :
         testing::seeded_prompts(opened.vocabulary(), 3, 5, 20)) {
      if (prompt.size() < 3) continue;
      const Completion got = opened.run(options_for(prompt, 1.0f, 4), true);
      drafted += got.speculation.drafted;
      accepted += got.speculation.accepted;
    }
    ASSERT_GT(drafted, 40);
    if (head == TinyHead::kEqual) {
      EXPECT_GT(accepted * 100, drafted * 97);
    }
    if (head == TinyHead::kNoise) {
      EXPECT_LT(accepted * 100, drafted * 15);
    }
  }
}

// One token after the other as the target reads them; behind each the drafter guesses greedily.
std::vector<std::vector<Token>> our_guesses(Opened& opened, const std::vector<Token>& text,
                                            std::size_t first, std::int32_t n) {
  LanguageModel& target = *opened.target.model;
  testing::FakeSampler greedy(0.0f);
  std::vector<std::vector<Token>> guesses;
  EXPECT_TRUE(opened.drafter->begin(0, 0).ok());
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    if (at >= first) {
      TokenTree tree(text[at]);
      DraftRequest request[] = {{.seq = 0,
                                 .text = std::span(text).first(at + 1),
                                 .sampler = &greedy,
                                 .max_nodes = n,
                                 .shape = {.branches = 1},
                                 .mask = 1,
                                 .tree = &tree}};
      EXPECT_TRUE(opened.drafter->draft(request).ok());
      std::vector<Token>& said = guesses.emplace_back();
      for (NodeId id = 1; id < tree.size(); ++id) said.push_back(tree.token(id));
    }
    const TokenTree root(text[at]);
    const EvalItem item{.seq = 0, .tree = &root};
    EXPECT_TRUE(target.evaluate({&item, 1}).ok());
    opened.drafter->see_hidden(0, at, text[at], target.hidden(0, 0));
    const NodeId path[] = {kRoot};
    EXPECT_TRUE(target.commit(0, path).ok());
  }
  return guesses;
}

TEST_P(MtpOutput, TheGuessesAreLlamaCppsPositionByPosition) {
  for (const float noise : {0.0f, 0.3f}) {
    Opened opened(lag(TinyHead::kEqual, noise), 1, /*as_llama_cpp=*/true);
    ASSERT_TRUE(opened.drafter) << opened.target.no_prediction_reason;
    std::vector<Token> text = testing::seeded_prompts(opened.vocabulary(), 5, 1, 1).front();
    RunOptions options = options_for(text, 1.0f, 1);
    options.max_tokens = 40;
    const Completion said = opened.run(options, false);
    ASSERT_EQ(said.tokens.size(), 40U) << said.error.message();
    text.insert(text.end(), said.tokens.begin(), said.tokens.end());
    ASSERT_TRUE(opened.target.model->truncate(0, 0).ok());

    Result<testing::LlamaHeads> theirs = testing::LlamaHeads::load(
        {.kind = testing::LlamaHeadKind::kMtp, .target_path = opened.dir.file("target.gguf")});
    ASSERT_TRUE(theirs.ok()) << theirs.status().message();
    const Result<std::vector<std::vector<Token>>> wanted = theirs->guesses(text, 1);
    ASSERT_TRUE(wanted.ok()) << wanted.status().message();
    std::vector<std::vector<Token>> got = our_guesses(opened, text, 1, 4);
    const std::size_t n = std::min(got.size(), wanted->size());
    ASSERT_GT(n, 30U);
    std::size_t right = 0;
    for (std::size_t i = 0; i < n; ++i) {
      // Of several layers llama.cpp makes no more guesses than there are layers. The third is not
      // the head's: it hands the third layer the state of the root for that of the first guess
      // (docs/bugs.md).
      std::vector<Token> theirs_now = (*wanted)[i];
      if (GetParam().layers > 1) theirs_now.resize(std::min<std::size_t>(theirs_now.size(), 2));
      got[i].resize(std::min(got[i].size(), theirs_now.size()));
      EXPECT_EQ(got[i], theirs_now) << "behind token " << i + 1 << ", noise " << noise;
      right += !got[i].empty() && i + 2 < text.size() && got[i][0] == text[i + 2] ? 1 : 0;
    }
    if (noise > 0.0f) {
      EXPECT_LT(right, n) << "nothing was compared but right guesses";
    }
  }
}

TEST(MtpSlots, TextsOfSeveralSlotsAreThoseThatTheyHaveAlone) {
  Opened opened(lag_of(TinyLagArchitecture::kHyV3, TinyHead::kEqual, 0.2f), /*n_sequences=*/3);
  ASSERT_TRUE(opened.drafter) << opened.target.no_prediction_reason;
  const std::vector<std::vector<Token>> prompts =
      testing::seeded_prompts(opened.vocabulary(), 9, 3, 20);
  std::vector<std::vector<Token>> alone;
  for (const std::vector<Token>& prompt : prompts) {
    alone.push_back(opened.run(options_for(prompt, 1.0f, 1), false).tokens);
  }
  for (SeqId seq = 0; seq < 3; ++seq) ASSERT_TRUE(opened.target.model->truncate(seq, 0).ok());
  Engine engine(*opened.target.model, opened.vocabulary(), {&*opened.drafter},
                {.prompt_chunk = 4, .reuse_prefix = true});
  for (int round = 0; round < 2; ++round) {  // the second begins with what the first has read
    std::vector<RequestId> ids;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const RunOptions options = options_for(prompts[i], 1.0f, 4);
      Request request;
      request.prompt = options.prompt;
      request.sampler = *llama::make_sampler(options.sampling, opened.target.file->vocabulary());
      request.seed = options.seed;
      request.max_tokens = options.max_tokens;
      request.width = options.width;
      request.draft = options.shape;
      request.draft.branches = i == 0 ? 1 : 3;
      request.draft.model_branches = request.draft.branches;
      ids.push_back(*engine.add(std::move(request)));
    }
    while (engine.busy()) {
      engine.step();
      ASSERT_EQ(opened.check(), "");
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const Completion got = *engine.take(ids[i]);
      EXPECT_EQ(got.tokens, alone[i]) << i;
      EXPECT_GT(got.speculation.accepted, 0) << i;
    }
  }
}

TEST(MtpReasons, WithRecurrentLayersAndSeveralSequencesItSaysWhyThereIsNoHead) {
  Opened opened(lag_of(TinyLagArchitecture::kQwen35, TinyHead::kEqual), /*n_sequences=*/2);
  EXPECT_FALSE(opened.drafter);
  EXPECT_NE(opened.target.no_prediction_reason.find("one sequence at a time"), std::string::npos);
  bool noted = false;
  for (const std::string& note : opened.target.notes) {
    noted |= note.find("one sequence at a time") != std::string::npos;
  }
  EXPECT_TRUE(noted);
}

}  // namespace
}  // namespace outrider
