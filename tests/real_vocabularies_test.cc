// Two real models with different vocabularies, SmolLM2-135M (49,152 tokens, BPE) and gemma-3-270m
// (262,144, SentencePiece), each as the other's draft. Needs the files of `./dev models`, named by
// OUTRIDER_MODELS_DIR.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "backend/llama_loader.h"
#include "backend/vocabulary_side.h"
#include "draft/translated/translated_text.h"
#include "llama/files/model_file.h"
#include "tests/pair.h"

namespace outrider {
namespace {

using testing::RunOptions;

const char* kSmol = "smollm2-q4_0.gguf";
const char* kGemma = "gemma-3-270m-q4_k_m.gguf";

const char* kPrompts[] = {
    "<|im_start|>user\nTell a short story about a fox and a clock.<|im_end|>\n"
    "<|im_start|>assistant\n",
    "The three laws of motion say that",
    "def reverse(values):\n    \"\"\"Return the list in reverse order.\"\"\"\n",
};

// What a tokenizer finds hard beside prose and code: runs of spaces, other scripts, characters of
// four bytes, a long word without a break.
std::string hard_text() {
  std::string text(vocabulary_sample());
  text += "    \n\n\n      x   =  1;\t\t// na\xC3\xAFve \xE2\x82\xAC 5\n";
  text += "\xE4\xBD\xA0\xE5\xA5\xBD\xEF\xBC\x8C\xE4\xB8\x96\xE7\x95\x8C \xF0\x9F\x98\x80\n";
  text += "\xD0\x9F\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82 3.14159265358979\n";
  for (int i = 0; i < 40; ++i) text += "antidisestablishmentarianism";
  return text + std::string(vocabulary_sample());
}

class RealModelVocabularies : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("OUTRIDER_MODELS_DIR");
    if (folder == nullptr) GTEST_SKIP() << "OUTRIDER_MODELS_DIR does not name the models";
    target_path_ = std::filesystem::path(folder) / (GetParam() ? kGemma : kSmol);
    draft_path_ = std::filesystem::path(folder) / (GetParam() ? kSmol : kGemma);
    ASSERT_TRUE(std::filesystem::exists(target_path_)) << target_path_ << ": run ./dev models";
    ASSERT_TRUE(std::filesystem::exists(draft_path_)) << draft_path_ << ": run ./dev models";
  }

  std::string target_path_;
  std::string draft_path_;
};

TEST_P(RealModelVocabularies, AGrowingTextIsCutAsTheDraftsTokenizerCutsTheWhole) {
  const auto load = [](const std::string& path) {
    return llama::ModelFile::load(path, /*n_gpu_layers=*/0, /*extra_bufts=*/false, {});
  };
  const Result<std::shared_ptr<llama::ModelFile>> target = load(target_path_);
  const Result<std::shared_ptr<llama::ModelFile>> draft = load(draft_path_);
  ASSERT_TRUE(target.ok() && draft.ok());
  const llama::LlamaVocabulary& vocabulary = (*target)->vocabulary();
  const Result<VocabularyMap> map =
      VocabularyMap::create(side_of(vocabulary), side_of((*draft)->vocabulary()), {});
  ASSERT_TRUE(map.ok()) << map.status().message();
  std::printf("shared: %s\n", map->share().text().c_str());
  EXPECT_GT(map->share().of_sample(), 0.8);

  const std::vector<Token> all = *vocabulary.tokenize(hard_text(), true, false);
  TranslatedText text(*map);
  std::string bytes;
  std::size_t otherwise = 0;
  std::vector<Token> before;  // the draft's, a token of the target ago
  std::size_t dropped = 0;    // of them
  for (std::size_t n = 0; n < all.size(); ++n) {
    ASSERT_TRUE(text.set(n, std::span<const Token>(all).subspan(n, 1)).ok());
    ASSERT_EQ(text.check_integrity(), "") << "token " << n;
    const std::span<const Token> got = text.tokens();
    dropped += static_cast<std::size_t>(
        before.end() - std::mismatch(before.begin(), before.end(), got.begin(), got.end()).first);
    before.assign(got.begin(), got.end());
    bytes += vocabulary.piece(all[n]);
    const Result<std::vector<Token>> fresh = (*draft)->vocabulary().tokenize(bytes, true, false);
    if (!fresh.ok()) continue;     // it ends in the middle of a character
    if (fresh->empty()) continue;  // BOS alone, for a draft without one: a token stands in
    if (std::equal(fresh->begin(), fresh->end(), got.begin(), got.end())) continue;
    ++otherwise;
    const std::size_t at = static_cast<std::size_t>(
        std::mismatch(fresh->begin(), fresh->end(), got.begin(), got.end()).first - fresh->begin());
    std::printf("token %zu of the target: %zu tokens, not %zu, other from %zu on, behind \"%s\"\n",
                n, got.size(), fresh->size(), at,
                bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), 40)).c_str());
  }
  std::printf("%zu of %zu texts cut otherwise\n", otherwise, all.size());
  std::printf("%zu tokens dropped as the text grew to %zu of the target's and %zu of the draft's\n",
              dropped, all.size(), before.size());
  EXPECT_EQ(otherwise, 0u);
}

TEST_P(RealModelVocabularies, GivesThePlainTextAtEveryTemperature) {
  LlamaLoader loader;
  ModelOptions options;
  options.path = target_path_;
  options.n_ctx = 512;
  options.widest = 4;
  options.exact = ExactMode::kOn;
  Result<std::unique_ptr<Target>> opened = loader.load_target(options, {});
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const std::shared_ptr<Target> target = std::move(*opened);
  options.path = draft_path_;
  options.exact = ExactMode::kAuto;
  const Result<std::unique_ptr<Draft>> draft = loader.load_draft(options, target, {});
  ASSERT_TRUE(draft.ok()) << draft.status().message();
  for (const std::string& note : (*draft)->notes) std::printf("draft: %s\n", note.c_str());
  for (const float temperature : {0.0f, 0.7f, 1.0f}) {
    std::int64_t accepted = 0;
    std::int64_t drafted = 0;
    for (const char* prompt : kPrompts) {
      RunOptions o;
      o.prompt = *target->vocabulary().tokenize(prompt, true, true);
      o.sampling.temperature = temperature;
      o.seed = 11;
      o.max_tokens = 48;
      const Completion plain =
          testing::run_checked(target->model(), target->vocabulary(), {}, o, {});
      o.width = 4;
      const Completion got = testing::run_checked(target->model(), target->vocabulary(),
                                                  {(*draft)->drafter.get()}, o, {});
      ASSERT_EQ(got.tokens, plain.tokens) << "T " << temperature << "\n"
                                          << plain.text << "\n---\n"
                                          << got.text;
      accepted += got.speculation.accepted;
      drafted += got.speculation.drafted;
    }
    std::printf("temperature %.1f: accepted %lld of %lld drafted\n",
                static_cast<double>(temperature), static_cast<long long>(accepted),
                static_cast<long long>(drafted));
    EXPECT_GT(10 * accepted, drafted);  // chance would be nothing at all
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, RealModelVocabularies, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& instance) {
                           return instance.param ? "GemmaDraftedBySmol" : "SmolDraftedByGemma";
                         });

}  // namespace
}  // namespace outrider
