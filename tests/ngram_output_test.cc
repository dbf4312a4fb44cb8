// Same output with n-gram caches, on real files: the text with them equals plain decoding's, token
// for token, whatever the caches hold, at every temperature.
#include <gtest/gtest.h>

#include "draft/ngram/ngram_drafter.h"
#include "testing/chi_square.h"
#include "tests/pair.h"
#include "tests/step_widths.h"

namespace outrider {
namespace {

using testing::OpenModel;
using testing::RunOptions;

std::shared_ptr<NgramCache> cache_of(const std::vector<Token>& text, std::int32_t min_order,
                                     std::int32_t max_order) {
  std::shared_ptr<NgramCache> cache = std::make_shared<NgramCache>();
  // Four times, so that it is sure enough for the strict thresholds.
  for (int i = 0; i < 4; ++i) cache->count(text, 0, min_order, max_order);
  return cache;
}

TEST(NgramOutput, EmptyRightAndWrongCachesGiveThePlainText) {
  const testing::TinyTarget tiny;
  const OpenModel& target = tiny.open;
  const Vocabulary& vocabulary = target.file->text_vocabulary();
  std::vector<std::vector<Token>> prompts =
      testing::seeded_prompts(vocabulary, testing::test_seed(20261122), testing::kTinyPrompts, 30);
  // In a batch of 64 tokens there is room for a step of 16 behind this one.
  prompts.front() = testing::seeded_prompt(vocabulary, 1, 12);
  for (std::vector<Token>& prompt : prompts) {
    const std::vector<Token> once = prompt;
    prompt.insert(prompt.end(), once.begin(), once.end());
  }
  const std::vector<std::int32_t> some = {2, 4, 16};
  testing::SeenWidths seen[3];
  const std::function<std::string()> sound = [&target] { return target.model->check_integrity(); };
  std::int64_t accepted[3] = {};
  std::int64_t drafted[3] = {};
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    for (const float temperature : {0.0f, 0.7f, 1.0f}) {
      RunOptions run{.prompt = prompts[i], .seed = 100 + i, .max_tokens = 24};
      run.sampling.temperature = temperature;
      const Completion plain = testing::run_checked(*target.model, vocabulary, {}, run, sound);
      std::vector<Token> right = prompts[i];
      right.insert(right.end(), plain.tokens.begin(), plain.tokens.end());
      // The same beginnings, other ends.
      std::vector<Token> wrong = right;
      for (std::size_t k = 2; k < wrong.size(); k += 3)
        wrong[k] = (wrong[k] + 1) % vocabulary.size();
      const std::shared_ptr<NgramCache> caches[3][2] = {
          {nullptr, nullptr},
          {cache_of(right, kStaticNgram, kStaticNgram), cache_of(right, 1, kMaxNgram)},
          {cache_of(wrong, kStaticNgram, kStaticNgram), cache_of(wrong, 1, kMaxNgram)}};
      const bool all = temperature == 0.0f && i % 3 == 0;
      for (const std::int32_t width : all ? testing::every_width() : some) {
        for (int kind = 0; kind < 3; ++kind) {
          NgramDrafter drafter(caches[kind][0], caches[kind][1]);
          run.width = width;
          const std::function<std::string()> all_sound = [&] {
            const std::string problem = target.model->check_integrity();
            return problem.empty() ? drafter.check_integrity() : problem;
          };
          const Completion got =
              testing::run_checked(*target.model, vocabulary, {&drafter}, run, all_sound);
          ASSERT_EQ(got.tokens, plain.tokens) << "prompt " << i << ", T " << temperature
                                              << ", width " << width << ", caches " << kind;
          ASSERT_EQ(got.text, plain.text);
          if (all) seen[kind].add(width, got.speculation);
          drafted[kind] += got.speculation.drafted;
          accepted[kind] += got.speculation.accepted;
        }
      }
    }
  }
  for (const testing::SeenWidths& widths : seen) EXPECT_EQ(widths.missing(), "");
  EXPECT_GT(accepted[1], accepted[0]) << "right caches help";
  EXPECT_GT(drafted[2], 2 * accepted[2]) << "wrong guesses were among them";
}

}  // namespace
}  // namespace outrider
