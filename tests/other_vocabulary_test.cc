// A draft model with another vocabulary, on real files: the text stays plain decoding's, token for
// token, whatever the two tokenizers are, and drafts are of use.
#include <gtest/gtest.h>

#include "backend/vocabulary_side.h"
#include "base/random.h"
#include "draft/translated/translated_model.h"
#include "testing/chi_square.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_pair.h"
#include "tests/long_short.h"
#include "tests/pair.h"
#include "tests/step_widths.h"

namespace outrider {
namespace {

using testing::OpenModel;
using testing::RunOptions;
using testing::TinyTokenizer;

constexpr std::int32_t kTokens = 40;

struct Case {
  const char* name;
  testing::TinyVocabularyOptions target;
  testing::TinyVocabularyOptions draft;
  double least_acceptance;  // at temperature 0, of what was drafted
};

// Ids of bytes and control tokens agree in both kinds, and so do their weights; ids of pieces do
// not. Where a text is cut otherwise a random model has seen another text, so agreement is low:
// 0.07 to 0.14 when recorded, against 0.003 where all ids are other ones.
std::vector<Case> cases() {
  const testing::TinyVocabularyOptions spm;
  testing::TinyVocabularyOptions bpe;
  bpe.tokenizer = TinyTokenizer::kBpe;
  bpe.add_bos = false;
  bpe.pieces = {"the", " and", "in", "ing", " th", "é", "日", "END", "###", "\n\n"};
  testing::TinyVocabularyOptions bare = spm;
  bare.pieces = {"and"};
  testing::TinyVocabularyOptions rotated = spm;
  rotated.rotate_bytes = 7;
  return {{"SentencePiece drafted by BPE", spm, bpe, 0.04},
          {"BPE drafted by SentencePiece", bpe, spm, 0.04},
          {"with pieces drafted by one without", spm, bare, 0.04},
          {"the same tokens at other ids", spm, rotated, 0.0}};
}

class OtherVocabulary : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    testing::TinyPairOptions pair;
    pair.target.eos_bias = -4.0f;
    pair.target.odd_byte_bias = -2.0f;  // parts of characters now and then
    pair.target.vocabulary = GetParam().target;
    pair.noise = 0.02f;
    pair.other_vocabulary = true;
    pair.draft_vocabulary = GetParam().draft;
    const Status written =
        testing::write_tiny_pair(dir_.file("target.gguf"), dir_.file("draft.gguf"), pair);
    ASSERT_TRUE(written.ok()) << written.message();
    ModelOptions options;
    options.n_ctx = 256;
    options.n_batch = 64;
    options.n_threads = 1;
    target_ = std::make_unique<OpenModel>(dir_.file("target.gguf"), options,
                                          llama::ContextSettings{}, true);
    draft_ = std::make_unique<OpenModel>(dir_.file("draft.gguf"), options, llama::ContextSettings{},
                                         true);
    Result<VocabularyMap> map =
        VocabularyMap::create(side_of(vocabulary()), side_of(draft_->file->vocabulary()), {});
    ASSERT_TRUE(map.ok()) << map.status().message();
    map_.emplace(std::move(*map));
    translated_ = std::make_unique<TranslatedModel>(*draft_->model, *map_);
  }

  const llama::LlamaVocabulary& vocabulary() const { return target_->file->vocabulary(); }

  Completion run(DraftModelDrafter* drafter, const RunOptions& options) {
    std::vector<Drafter*> drafters;
    if (drafter != nullptr) drafters.push_back(drafter);
    return testing::run_checked(*target_->model, vocabulary(), drafters, options,
                                [=, this] { return check(drafter); });
  }

  // `drafter` may be null.
  std::string check(const DraftModelDrafter* drafter) const {
    std::string problem = target_->model->check_integrity();
    if (problem.empty() && drafter != nullptr) problem = drafter->check_integrity();
    if (problem.empty()) problem = translated_->check_integrity();
    return problem.empty() ? draft_->model->check_integrity() : problem;
  }

  testing::TempDir dir_;
  std::unique_ptr<OpenModel> target_;
  std::unique_ptr<OpenModel> draft_;
  std::optional<VocabularyMap> map_;
  std::unique_ptr<TranslatedModel> translated_;
};

TEST_P(OtherVocabulary, EveryWidthTreeAndTemperatureGivesThePlainText) {
  std::printf("%s: %s\n", GetParam().name, map_->share().text().c_str());
  const std::uint64_t seed = testing::test_seed(20261121);
  const std::vector<std::vector<Token>> prompts =
      testing::seeded_prompts(vocabulary(), seed, 8, 60);
  DraftModelDrafter drafter(*translated_, vocabulary().size(),
                            [this](Token t) { return vocabulary().is_end_of_generation(t); });
  const std::vector<std::int32_t> some = {2, 4, 9};
  testing::SeenWidths seen;
  std::int64_t accepted = 0;
  std::int64_t drafted = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    for (const float temperature : {0.0f, 0.7f, 1.0f}) {
      RunOptions options;
      options.prompt = prompts[i];
      options.seed = 300 + i;
      options.max_tokens = kTokens;
      options.sampling.temperature = temperature;
      if (i % 2 == 0) options.sampling.top_k = 0;
      if (i % 3 == 0) options.sampling.repeat_penalty = 1.2f;
      const Completion plain = run(nullptr, options);
      const bool all = temperature == 0.0f && i % 2 == 0;
      for (const std::int32_t width : all ? testing::every_width() : some) {
        options.width = width;
        options.shape.branches = width >= 9 ? 4 : 1;
        const Completion got = run(&drafter, options);
        ASSERT_EQ(got.tokens, plain.tokens)
            << "prompt " << i << ", T " << temperature << ", width " << width;
        if (all) seen.add(width, got.speculation);
        if (temperature > 0.0f || (width != 2 && width != 4)) continue;
        accepted += got.speculation.accepted;
        drafted += got.speculation.drafted;
      }
    }
  }
  std::printf("accepted %lld of %lld drafted at temperature 0\n", static_cast<long long>(accepted),
              static_cast<long long>(drafted));
  EXPECT_GE(static_cast<double>(accepted),
            GetParam().least_acceptance * static_cast<double>(drafted));
  EXPECT_GT(drafted, 0);
  EXPECT_EQ(seen.missing(), "");
}

TEST_P(OtherVocabulary, ALongTextThenAShortOneGiveThePlainTextsInSteadyMemory) {
  DraftModelDrafter drafter(*translated_, vocabulary().size(),
                            [this](Token t) { return vocabulary().is_end_of_generation(t); });
  testing::expect_long_and_short(*target_->model, vocabulary(), drafter,
                                 [&] { return check(&drafter); });
}

INSTANTIATE_TEST_SUITE_P(Pairs, OtherVocabulary, ::testing::ValuesIn(cases()),
                         [](const ::testing::TestParamInfo<Case>& instance) {
                           std::string name = instance.param.name;
                           for (char& c : name) c = c == ' ' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace outrider
