// Same output with token recycling, on a real file: the text with it equals plain decoding's, token
// for token, as chains and as trees, whatever it has learned, at every temperature.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "draft/recycle/recycle.h"
#include "testing/chi_square.h"
#include "tests/pair.h"
#include "tests/step_widths.h"

namespace outrider {
namespace {

using testing::OpenModel;
using testing::RunOptions;

// One that knows successors of every token from a text's beginning on, so that it proposes as much
// as it is asked for. By itself it learns them token by token.
class TaughtRecycle : public RecycleDrafter {
 public:
  // [n_vocab] `next`: what it finds likeliest behind each token.
  TaughtRecycle(std::int32_t n_sequences, std::vector<Token> next)
      : RecycleDrafter(static_cast<std::int32_t>(next.size()), n_sequences),
        next_(std::move(next)) {}

  // What was learned is void where a text begins.
  Status begin(SeqId seq, std::size_t kept) override {
    OUTRIDER_RETURN_IF_ERROR(RecycleDrafter::begin(seq, kept));
    std::vector<float> row(next_.size());
    for (std::size_t token = 0; token < next_.size(); ++token) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] = -static_cast<float>((i + 17 * token) % row.size());
      }
      row[static_cast<std::size_t>(next_[token])] = 1.0f;
      observe(seq, static_cast<Token>(token), row);
    }
    return Status();
  }

 private:
  std::vector<Token> next_;
};

// What follows each token of `text`, the last time; `off` ids further.
std::vector<Token> successors(const std::vector<Token>& text, std::int32_t n_vocab, Token off) {
  std::vector<Token> next(static_cast<std::size_t>(n_vocab), 0);
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    next[static_cast<std::size_t>(text[i])] = (text[i + 1] + off) % n_vocab;
  }
  return next;
}

TEST(RecycleOutput, NothingRightAndWrongSuccessorsGiveThePlainText) {
  const testing::TinyTarget tiny;
  const OpenModel& target = tiny.open;
  const Vocabulary& vocabulary = target.file->text_vocabulary();
  const std::size_t n_prompts = testing::kSanitized ? 4 : 12;
  const std::vector<std::vector<Token>> prompts =
      testing::seeded_prompts(vocabulary, testing::test_seed(20261128), n_prompts, 30);
  const std::function<std::string()> sound = [&target] { return target.model->check_integrity(); };
  const std::int32_t n_sequences = target.model->capabilities().n_sequences;
  const std::vector<std::int32_t> some = {2, 4, 16};
  testing::SeenWidths of_chains;
  testing::SeenWidths of_trees;
  std::int64_t accepted[3] = {};
  std::int64_t drafted[3] = {};
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    for (const float temperature : {0.0f, 0.7f, 1.0f}) {
      RunOptions run{.prompt = prompts[i], .seed = 100 + i, .max_tokens = 24};
      run.sampling.temperature = temperature;
      const Completion plain = testing::run_checked(*target.model, vocabulary, {}, run, sound);
      std::vector<Token> whole = prompts[i];
      whole.insert(whole.end(), plain.tokens.begin(), plain.tokens.end());
      RecycleDrafter untaught(vocabulary.size(), n_sequences);
      TaughtRecycle right(n_sequences, successors(whole, vocabulary.size(), 0));
      TaughtRecycle wrong(n_sequences, successors(whole, vocabulary.size(), 1));
      RecycleDrafter* const drafters[3] = {&untaught, &right, &wrong};
      const bool all = temperature == 0.0f && i % 3 == 0;
      for (const std::int32_t width : all ? testing::every_width() : some) {
        for (const std::int32_t branches : {1, 8}) {
          for (int kind = 0; kind < 3; ++kind) {
            run.width = width;
            run.shape.branches = branches;
            const std::function<std::string()> all_sound = [&] {
              const std::string problem = target.model->check_integrity();
              return problem.empty() ? drafters[kind]->check_integrity() : problem;
            };
            const Completion got =
                testing::run_checked(*target.model, vocabulary, {drafters[kind]}, run, all_sound);
            ASSERT_EQ(got.tokens, plain.tokens)
                << "prompt " << i << ", T " << temperature << ", width " << width << ", branches "
                << branches << ", successors " << kind;
            ASSERT_EQ(got.text, plain.text);
            if (all && kind > 0) {
              (branches == 1 ? of_chains : of_trees).add(width, got.speculation);
            }
            drafted[kind] += got.speculation.drafted;
            accepted[kind] += got.speculation.accepted;
          }
        }
      }
    }
  }
  EXPECT_EQ(of_chains.missing(), "");
  EXPECT_EQ(of_trees.missing(), "");
  EXPECT_GT(drafted[0], 0) << "it learns by itself";
  EXPECT_GT(accepted[1], accepted[2]) << "right successors help";
  EXPECT_GT(drafted[2], 2 * accepted[2]) << "wrong guesses were among them";
}

}  // namespace
}  // namespace outrider
