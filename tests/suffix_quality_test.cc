// How good the suffix drafter's guesses are, next to the simplest drafter of its kind. Needs
// OUTRIDER_MODELS_DIR (SmolLM2's tokenizer) and OUTRIDER_DATA_DIR, a folder with texts: *.jsonl
// (input/corpus.h) and *.txt. Each file's texts are joined by newlines and replayed as one. Figures
// of recorded runs are in docs/benchmarks-counts.md.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "draft/suffix/suffix_drafter.h"
#include "input/corpus.h"
#include "lab/text_replay.h"
#include "llama/files/model_file.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/naive_drafter.h"

namespace outrider {
namespace {

// `text` as if it were being generated, in steps of `width` tokens with up to `branches` leaves.
ReplayStats replay_text(Drafter& drafter, std::span<const Token> text, std::int32_t width,
                        std::int32_t branches) {
  DraftShape shape;
  shape.branches = branches;
  TextReplay replay(drafter, {.width = width, .shape = shape});
  EXPECT_TRUE(replay.run(text, /*given=*/1, /*keep=*/false, nullptr).ok());
  return replay.stats();
}

std::string figures(const char* name, const ReplayStats& r) {
  char text[160];
  std::snprintf(text, sizeof(text),
                "  %-22s %5.3f tokens a step (%lld accepted of %lld drafted), %.1f us a step", name,
                r.tokens_per_step(), static_cast<long long>(r.accepted),
                static_cast<long long>(r.drafted),
                1000.0 * r.draft_ms / static_cast<double>(r.steps));
  return text;
}

TEST(RealModelSuffix, GivesMoreTokensAStepThanTheNaiveLongestMatchOnEveryText) {
  const char* models = std::getenv("OUTRIDER_MODELS_DIR");
  const char* data = std::getenv("OUTRIDER_DATA_DIR");
  if (models == nullptr) GTEST_SKIP() << "OUTRIDER_MODELS_DIR does not name the models";
  if (data == nullptr) GTEST_SKIP() << "OUTRIDER_DATA_DIR does not name a folder with texts";
  Result<std::shared_ptr<llama::ModelFile>> model = llama::ModelFile::load(
      std::filesystem::path(models) / "SmolLM2-135M-Instruct-Q4_1.gguf", 0, false, {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  int n_texts = 0;
  for (const std::filesystem::directory_entry& file : std::filesystem::directory_iterator(data)) {
    if (file.path().extension() != ".jsonl" && file.path().extension() != ".txt") continue;
    Result<std::vector<std::string>> texts = read_corpus(file.path().string());
    ASSERT_TRUE(texts.ok()) << texts.status().message();
    std::string joined;
    for (const std::string& text : *texts) joined += (joined.empty() ? "" : "\n") + text;
    Result<std::vector<Token>> tokens = (*model)->vocabulary().tokenize(joined, false, false);
    ASSERT_TRUE(tokens.ok()) << tokens.status().message();
    ++n_texts;
    std::printf("%s: %zu tokens\n", file.path().filename().c_str(), tokens->size());
    for (const std::int32_t width : {4, 9, 16, 32}) {
      testing::NaiveLongestMatch naive;
      SuffixDrafter tree(1);
      SuffixDrafter chain(1);
      const ReplayStats n = replay_text(naive, *tokens, width, 1);
      const ReplayStats t = replay_text(tree, *tokens, width, width);
      const ReplayStats c = replay_text(chain, *tokens, width, 1);
      std::printf(" width %d\n%s\n%s\n%s\n", width, figures("naive", n).c_str(),
                  figures("suffix", t).c_str(), figures("suffix, chains", c).c_str());
      std::printf("  suffix / naive: %.3f\n", t.tokens_per_step() / n.tokens_per_step());
      EXPECT_GT(t.tokens_per_step(), n.tokens_per_step());
      if (width == 16) {
        EXPECT_GE(t.tokens_per_step(), 1.08 * n.tokens_per_step());
      }
    }
  }
  EXPECT_GT(n_texts, 0) << "no *.jsonl or *.txt in " << data;
}

}  // namespace
}  // namespace outrider
