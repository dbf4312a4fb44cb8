// Same output with the suffix drafter, on real files: the text with it equals plain decoding's,
// token for token, as chains and as trees, with stores and without, at every temperature.
#include <gtest/gtest.h>

#include "draft/suffix/suffix_drafter.h"
#include "testing/chi_square.h"
#include "tests/pair.h"
#include "tests/step_widths.h"

namespace outrider {
namespace {

using testing::OpenModel;
using testing::RunOptions;

TEST(SuffixOutput, ChainsTreesAndStoresGiveThePlainText) {
  const testing::TinyTarget tiny;
  const OpenModel& target = tiny.open;
  const Vocabulary& vocabulary = target.file->text_vocabulary();
  std::vector<std::vector<Token>> prompts =
      testing::seeded_prompts(vocabulary, testing::test_seed(20261121), testing::kTinyPrompts, 30);
  // In a batch of 64 tokens there is room for a step of 16 behind this one.
  prompts.front() = testing::seeded_prompt(vocabulary, 1, 12);
  // A text that repeats itself has something to guess from.
  for (std::vector<Token>& prompt : prompts) {
    const std::vector<Token> once = prompt;
    for (int i = 0; i < 2; ++i) prompt.insert(prompt.end(), once.begin(), once.end());
  }
  const std::function<std::string()> sound = [&target] { return target.model->check_integrity(); };
  const std::vector<std::int32_t> some = {2, 4, 16};
  testing::SeenWidths of_chains;
  testing::SeenWidths of_trees;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    for (const float temperature : {0.0f, 0.7f, 1.0f}) {
      RunOptions run{.prompt = prompts[i], .seed = 100 + i, .max_tokens = 24};
      run.sampling.temperature = temperature;
      const Completion plain = testing::run_checked(*target.model, vocabulary, {}, run, sound);
      // What this very request will say: a store that is always right, and one that never is.
      SuffixStoreBuilder right(tokenizer_id(vocabulary));
      SuffixStoreBuilder wrong(tokenizer_id(vocabulary));
      std::vector<Token> whole = prompts[i];
      whole.insert(whole.end(), plain.tokens.begin(), plain.tokens.end());
      ASSERT_TRUE(right.add(whole).ok());
      for (Token& token : whole) token = (token * 7 + 3) % vocabulary.size();
      ASSERT_TRUE(wrong.add(whole).ok());
      ASSERT_TRUE(right.write(tiny.dir.file("right")).ok());
      ASSERT_TRUE(wrong.write(tiny.dir.file("wrong")).ok());
      const bool all = temperature == 0.0f && i % 3 == 0;
      for (const std::int32_t width : all ? testing::every_width() : some) {
        for (const std::int32_t branches : {1, 8}) {
          for (const char* store : {"", "right", "wrong"}) {
            SuffixStores stores;
            if (*store != '\0') stores.push_back(SuffixStore::open(tiny.dir.file(store)).value());
            SuffixDrafter drafter(target.model->capabilities().n_sequences, std::move(stores));
            run.width = width;
            run.shape.branches = branches;
            const std::function<std::string()> all_sound = [&] {
              const std::string problem = target.model->check_integrity();
              return problem.empty() ? drafter.check_integrity() : problem;
            };
            const Completion got =
                testing::run_checked(*target.model, vocabulary, {&drafter}, run, all_sound);
            ASSERT_EQ(got.tokens, plain.tokens)
                << "prompt " << i << ", T " << temperature << ", width " << width << ", branches "
                << branches << ", store '" << store << "'";
            ASSERT_EQ(got.text, plain.text);
            if (all) (branches == 1 ? of_chains : of_trees).add(width, got.speculation);
            drafted += got.speculation.drafted;
            accepted += got.speculation.accepted;
          }
        }
      }
    }
  }
  std::printf("%lld drafted, %lld accepted\n", static_cast<long long>(drafted),
              static_cast<long long>(accepted));
  EXPECT_EQ(of_chains.missing(), "");
  EXPECT_EQ(of_trees.missing(), "");
  EXPECT_GT(accepted, 0);
  EXPECT_GT(drafted, accepted);  // wrong guesses were among them
}

}  // namespace
}  // namespace outrider
