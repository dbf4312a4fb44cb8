// Prediction layers (MTP) of tiny models: the text is that of plain decoding whatever they guess,
// an equal block is right throughout, one of noise next to never, and the guesses are llama.cpp's
// own.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "draft/model/draft_model.h"
#include "draft/model/head_chain.h"
#include "testing/tiny_gguf_lag.h"
#include "tests/head_pair.h"
#include "tests/long_short.h"

namespace outrider {
namespace {

using testing::TinyHead;
using testing::TinyLagArchitecture;
using testing::TinyLagOptions;

struct Opened : testing::HeadPair {
  explicit Opened(const TinyLagOptions& lag, std::int32_t n_sequences = 1,
                  bool as_llama_cpp = false)
      : HeadPair(n_sequences, as_llama_cpp) {
    const Status written = testing::write_tiny_lag(options.path, lag);
    EXPECT_TRUE(written.ok()) << written.message();
    target = open(options);
    if (target.prediction.empty()) return;
    std::vector<LanguageModel*> layers;
    for (const std::unique_ptr<llama::LlamaModel>& layer : target.prediction) {
      layers.push_back(layer.get());
    }
    if (layers.size() > 1) chain.emplace(layers);
    LanguageModel& head = chain ? static_cast<LanguageModel&>(*chain) : *layers[0];
    guess_with(
        std::make_unique<DraftModelDrafter>(head, vocabulary().size(), is_end(),
                                            /*learns=*/true, HeadOptions{.name = kMtpKind.name}),
        [this] { return check_layers(); });
  }

  ~Opened() { drafter.reset(); }  // it guesses with the chain

  std::string check_layers() const {
    std::string wrong = chain ? chain->check_integrity() : "";
    for (const std::unique_ptr<llama::LlamaModel>& layer : target.prediction) {
      if (wrong.empty()) wrong = layer->check_integrity();
    }
    return wrong;
  }

  std::optional<HeadChain> chain;
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

TEST_P(MtpOutput, TheTextIsPlainDecodingsAtEveryTemperatureAndWidth) {
  for (const float noise : {0.0f, 0.2f}) {
    SCOPED_TRACE(noise);
    Opened opened(lag(TinyHead::kEqual, noise));
    ASSERT_TRUE(opened.drafter) << opened.target.no_prediction_reason;
    const bool trees = opened.target.model->capabilities().max_leaves > 1;
    testing::expect_plain_text(opened, {.branches = trees ? 4 : 1});
  }
}

TEST_P(MtpOutput, ABlockThatEqualsTheTargetIsAcceptedAndOneOfNoiseNextToNever) {
  Opened equal(lag(TinyHead::kEqual));
  Opened noise(lag(TinyHead::kNoise));
  ASSERT_TRUE(equal.drafter && noise.drafter) << equal.target.no_prediction_reason;
  const testing::HeadCounts of_equal = testing::head_counts(equal, 3, 4);
  EXPECT_GT(of_equal.accepted * 100, of_equal.drafted * 97);
  const testing::HeadCounts of_noise = testing::head_counts(noise, 3, 4);
  EXPECT_LT(of_noise.accepted * 100, of_noise.drafted * 15);
}

TEST_P(MtpOutput, ALongTextThenAShortOneGiveThePlainTextsInSteadyMemory) {
  Opened opened(lag(TinyHead::kEqual, 0.2f));
  ASSERT_TRUE(opened.drafter) << opened.target.no_prediction_reason;
  testing::expect_long_and_short(*opened.target.model, opened.vocabulary(), *opened.drafter,
                                 [&opened] { return opened.check(); });
}

// Of several layers llama.cpp makes no more guesses than there are layers. The third is not the
// head's: it hands the third layer the state of the root for that of the first guess
// (docs/bugs.md).
TEST_P(MtpOutput, TheGuessesAreLlamaCppsPositionByPosition) {
  for (const float noise : {0.0f, 0.3f}) {
    SCOPED_TRACE(noise);
    Opened opened(lag(TinyHead::kEqual, noise), 1, /*as_llama_cpp=*/true);
    ASSERT_TRUE(opened.drafter) << opened.target.no_prediction_reason;
    testing::expect_llama_cpps_guesses(opened, {.kind = testing::LlamaHeadKind::kMtp},
                                       GetParam().layers > 1 ? 2 : 4, noise > 0.0f);
  }
}

TEST(MtpSlots, TextsOfSeveralSlotsAreThoseThatTheyHaveAlone) {
  Opened opened(lag_of(TinyLagArchitecture::kHyV3, TinyHead::kEqual, 0.2f), /*n_sequences=*/3);
  ASSERT_TRUE(opened.drafter) << opened.target.no_prediction_reason;
  testing::expect_slots_as_alone(opened, {4, 4, 4});
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
