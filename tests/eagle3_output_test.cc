// EAGLE-3 heads of tiny models, in files of their own: the text is that of plain decoding whatever
// they guess, a head that equals the target is right throughout, one of noise next to never, and
// the guesses are llama.cpp's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "draft/model/draft_model.h"
#include "llama/open_head.h"
#include "testing/tiny_gguf_eagle3.h"
#include "testing/tiny_gguf_lag.h"
#include "tests/head_pair.h"
#include "tests/long_short.h"

namespace outrider {
namespace {

using testing::RunOptions;
using testing::TinyEagle3Options;
using testing::TinyHead;
using testing::TinyLagOptions;

struct Opened : testing::HeadPair {
  explicit Opened(const TinyEagle3Options& with, std::int32_t n_sequences = 1,
                  bool as_llama_cpp = false)
      : HeadPair(n_sequences, as_llama_cpp) {
    TinyLagOptions lag;
    lag.weight_type = testing::WeightType::kQ8_0;
    options.head = dir.file("head.gguf");
    EXPECT_TRUE(testing::write_tiny_lag(options.path, lag).ok());
    EXPECT_TRUE(testing::write_tiny_eagle3(options.head, lag, with).ok());
    target = open(options);
    head = open_head(&llama::open_eagle3);
    if (!head) return;
    EXPECT_EQ(head->capabilities().rollback, Rollback::kAny)
        << head->capabilities().rollback_reason;
    const HeadOptions how{.name = kEagle3Kind.name, .window = 512, .reads_first = false};
    guess_with(std::make_unique<DraftModelDrafter>(*head, vocabulary().size(), is_end(),
                                                   /*learns=*/true, how),
               [this] { return head->check_integrity(); });
  }

  ~Opened() { drafter.reset(); }  // it guesses with the head

  std::unique_ptr<llama::LlamaModel> head;
};

// Half of the tokens, not in their order.
std::vector<Token> odd_tokens() {
  const int n = testing::make_tiny_vocabulary(TinyLagOptions().vocabulary).value().size();
  std::vector<Token> tokens;
  for (Token token = 1; token < n; token += 2) tokens.push_back(token);
  std::reverse(tokens.begin(), tokens.end());
  return tokens;
}

TinyEagle3Options head_of(TinyHead head, float noise = 0.0f) {
  TinyEagle3Options options;
  options.head = head;
  options.noise = noise;
  options.weight_type = testing::WeightType::kQ8_0;
  return options;
}

// Also that of a target that hands out nothing, on the processor.
TEST(Eagle3Output, TheTextIsPlainDecodingsAtEveryTemperatureAndWidth) {
  for (const bool reduced : {false, true}) {
    SCOPED_TRACE(reduced);
    TinyEagle3Options with = head_of(TinyHead::kEqual, 0.05f);
    if (reduced) with.tokens = odd_tokens();
    Opened opened(with);
    ASSERT_TRUE(opened.drafter);
    ModelOptions untapped = opened.options;
    untapped.head.clear();
    const llama::OpenedTarget without = Opened::open(untapped);
    EXPECT_EQ(without.model->capabilities().n_hidden, 0);
    const auto as_without = [&](const RunOptions& run, const Completion& plain) {
      EXPECT_EQ(testing::run_checked(*without.model, opened.vocabulary(), {}, run, {}).tokens,
                plain.tokens);
    };
    testing::expect_plain_text(opened, {.branches = 4}, as_without);
  }
}

TEST(Eagle3Output, ALongTextThenAShortOneGiveThePlainTextsInSteadyMemory) {
  Opened opened(head_of(TinyHead::kEqual, 0.05f));
  ASSERT_TRUE(opened.drafter);
  testing::expect_long_and_short(*opened.target.model, opened.vocabulary(), *opened.drafter,
                                 [&opened] { return opened.check(); });
}

TEST(Eagle3Output, AHeadThatEqualsTheTargetIsAcceptedAndOneOfNoiseNextToNever) {
  for (const TinyHead kind : {TinyHead::kEqual, TinyHead::kNoise}) {
    for (const bool own : {true, false}) {
      TinyEagle3Options with = head_of(kind);
      with.own_output = with.own_embedding = own;
      Opened opened(with);
      ASSERT_TRUE(opened.drafter);
      const testing::HeadCounts counts = testing::head_counts(opened, 3, 4);
      if (kind == TinyHead::kEqual) {
        // Its sums have other lengths than the target's, so close decisions differ now and then.
        EXPECT_GT(counts.accepted * 100, counts.drafted * 95) << own;
      } else {
        EXPECT_LT(counts.accepted * 100, counts.drafted * 15) << own;
      }
    }
  }
}

// Keyed by the target's id: with the position in the head's own list the guesses would be those of
// other noise. Tokens that it does not know it cannot guess.
TEST(Eagle3Output, AHeadOfFewerTokensGuessesWithTheTargetsNoise) {
  TinyEagle3Options with = head_of(TinyHead::kEqual);
  with.tokens = odd_tokens();
  Opened opened(with);
  ASSERT_TRUE(opened.drafter);
  std::int64_t known = 0;
  std::int64_t accepted = 0;
  for (const std::vector<Token>& prompt : testing::seeded_prompts(opened.vocabulary(), 4, 6, 20)) {
    if (prompt.size() < 3) continue;
    const Completion got = opened.run(testing::head_run(prompt, 1.0f, 2), true);
    accepted += got.speculation.accepted;
    // With one guess a step, each step whose guess is known is right, and skips the next.
    for (std::size_t i = 1; i < got.tokens.size();) {
      const bool is_known = got.tokens[i] % 2 == 1;
      known += is_known ? 1 : 0;
      i += is_known ? 2 : 1;
    }
  }
  ASSERT_GT(known, 20);
  EXPECT_GT(accepted * 100, known * 90);
}

TEST(Eagle3Output, TheGuessesAreLlamaCppsPositionByPosition) {
  struct Case {
    float noise;
    bool own;
    bool reduced;
  };
  for (const Case& one : {Case{0.0f, true, false}, Case{0.12f, true, false},
                          Case{0.12f, false, false}, Case{0.12f, true, true}}) {
    SCOPED_TRACE(one.noise);
    TinyEagle3Options with = head_of(TinyHead::kEqual, one.noise);
    with.own_output = with.own_embedding = one.own;
    if (one.reduced) with.tokens = odd_tokens();
    Opened opened(with, 1, /*as_llama_cpp=*/true);
    ASSERT_TRUE(opened.drafter);
    testing::expect_llama_cpps_guesses(
        opened, {.kind = testing::LlamaHeadKind::kEagle3, .head_path = opened.options.head}, 4,
        one.noise > 0.0f);
  }
}

TEST(Eagle3Slots, TextsOfSeveralSlotsAreThoseThatTheyHaveAlone) {
  Opened opened(head_of(TinyHead::kEqual, 0.03f), /*n_sequences=*/3);
  ASSERT_TRUE(opened.drafter);
  testing::expect_slots_as_alone(opened, {4, 4, 4});
}

TEST(Eagle3Output, AnyEndAndAnyBeginningLeaveTheTextAndTheState) {
  Opened opened(head_of(TinyHead::kEqual, 0.03f));
  ASSERT_TRUE(opened.drafter);
  testing::expect_any_end_and_beginning(opened, 24, /*to_the_end=*/false);
}

}  // namespace
}  // namespace outrider
