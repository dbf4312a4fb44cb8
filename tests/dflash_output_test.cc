// DFlash heads of tiny models, in files of their own: the text is that of plain decoding whatever
// they guess, a head that equals the target is right throughout, one of noise next to never, and
// the guesses are llama.cpp's own.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "draft/model/block_drafter.h"
#include "llama/open_head.h"
#include "testing/gguf_damage.h"
#include "testing/tiny_gguf_dflash.h"
#include "testing/tiny_gguf_lag.h"
#include "tests/head_pair.h"
#include "tests/long_short.h"

namespace outrider {
namespace {

using testing::TinyDflashOptions;
using testing::TinyHead;
using testing::TinyLagOptions;

constexpr std::int32_t kGuesses = 4;  // of a block

TinyDflashOptions head_of(TinyHead head, float noise = 0.0f) {
  TinyDflashOptions options;
  options.head = head;
  options.noise = noise;
  options.weight_type = testing::WeightType::kQ8_0;
  return options;
}

struct How {
  std::int32_t n_sequences = 1;
  bool as_llama_cpp = false;  // with its kernels and its types of cache: numbers are its own
  std::string cache_type = "";
  bool many_positions = false;  // the head has sections of positions, as for M-RoPE targets
};

struct Opened : testing::HeadPair {
  explicit Opened(const TinyDflashOptions& with, const How& how = {})
      : HeadPair(how.n_sequences, how.as_llama_cpp) {
    TinyLagOptions lag;
    lag.weight_type = testing::WeightType::kQ8_0;
    lag.lags = {3, 4};
    lag.reads_current = false;
    options.head = dir.file("head.gguf");
    EXPECT_TRUE(testing::write_tiny_lag(options.path, lag).ok());
    write_head(lag, with, how.many_positions);
    if (!how.cache_type.empty()) options.cache_type_k = options.cache_type_v = how.cache_type;
    target = open(options);
    head = open_head(&llama::open_dflash);
    if (!head) return;
    guess_with(std::make_unique<BlockDrafter>(*head, vocabulary().size(), is_end()),
               [this] { return head->check_integrity(); });
  }

  void write_head(const TinyLagOptions& lag, const TinyDflashOptions& with, bool many_positions) {
    const std::string plain = dir.file("plain.gguf");
    ASSERT_TRUE(testing::write_tiny_dflash(plain, lag, with).ok());
    const auto change = [&](gguf_context* gguf) {
      const std::int64_t half = gguf_find_key(gguf, "dflash.rope.dimension_count");
      ASSERT_GE(half, 0);
      const std::int32_t n = static_cast<std::int32_t>(gguf_get_val_u32(gguf, half)) / 2;
      const std::int32_t sections[4] = {n, 0, 0, 0};
      if (!many_positions) return;
      gguf_set_arr_data(gguf, "dflash.rope.dimension_sections", GGUF_TYPE_INT32, sections, 4);
    };
    ASSERT_TRUE(testing::copy_changed(plain, dir.file("head.gguf"), change, "").ok());
  }

  ~Opened() { drafter.reset(); }  // it guesses with the head

  std::unique_ptr<llama::LlamaBlockModel> head;
};

// Also that of a target that hands out nothing. A block has 4 guesses: a step of 16 tokens needs
// branches.
TEST(DflashOutput, TheTextIsPlainDecodingsAtEveryTemperatureAndWidth) {
  Opened opened(head_of(TinyHead::kEqual, 0.05f));
  ASSERT_TRUE(opened.drafter);
  ModelOptions untapped = opened.options;
  untapped.head.clear();
  const llama::OpenedTarget without = Opened::open(untapped);
  EXPECT_EQ(without.model->capabilities().n_hidden, 0);
  const auto as_without = [&](const testing::RunOptions& run, const Completion& plain) {
    EXPECT_EQ(testing::run_checked(*without.model, opened.vocabulary(), {}, run, {}).tokens,
              plain.tokens);
  };
  testing::expect_plain_text(opened, {.branches = 16, .split_p = 0.0f}, as_without);
}

TEST(DflashOutput, ALongTextThenAShortOneGiveThePlainTextsInSteadyMemory) {
  Opened opened(head_of(TinyHead::kEqual, 0.05f));
  ASSERT_TRUE(opened.drafter);
  testing::expect_long_and_short(*opened.target.model, opened.vocabulary(), *opened.drafter,
                                 [&opened] { return opened.check(); });
}

// Whatever cache the target has: the head's is f16.
TEST(DflashOutput, AHeadThatEqualsTheTargetIsAcceptedAndOneOfNoiseNextToNever) {
  for (const TinyHead kind : {TinyHead::kEqual, TinyHead::kNoise}) {
    for (const How& how : {How{}, How{.cache_type = "q8_0"}, How{.many_positions = true}}) {
      Opened opened(head_of(kind), how);
      ASSERT_TRUE(opened.drafter);
      const testing::HeadCounts counts = testing::head_counts(opened, 6, 1 + kGuesses);
      EXPECT_EQ(counts.deepest, static_cast<std::size_t>(kGuesses));
      if (kind == TinyHead::kEqual) {
        EXPECT_GT(counts.accepted * 100, counts.drafted * 97)
            << how.cache_type << how.many_positions;
      } else {
        EXPECT_LT(counts.accepted * 100, counts.drafted * 15)
            << how.cache_type << how.many_positions;
      }
    }
  }
}

// Of whole blocks and of shorter ones: what a block's tokens see depends on how many there are.
// (Not of a head of noise alone, for which control tokens are equally likely.)
TEST(DflashOutput, TheGuessesAreLlamaCppsPositionByPosition) {
  for (const float noise : {0.1f, 0.5f}) {
    for (const std::int32_t n_draft : {1, 2, kGuesses}) {
      SCOPED_TRACE(::testing::Message() << "noise " << noise << ", guesses " << n_draft);
      Opened opened(head_of(TinyHead::kEqual, noise), {.as_llama_cpp = true});
      ASSERT_TRUE(opened.drafter);
      testing::expect_llama_cpps_guesses(opened,
                                         {.kind = testing::LlamaHeadKind::kDflash,
                                          .head_path = opened.options.head,
                                          .n_draft = n_draft},
                                         kGuesses, /*noisy=*/true);
    }
  }
}

TEST(DflashSlots, TextsOfSeveralSlotsAreThoseThatTheyHaveAlone) {
  Opened opened(head_of(TinyHead::kEqual, 0.03f), {.n_sequences = 3});
  ASSERT_TRUE(opened.drafter);
  testing::expect_slots_as_alone(opened, {3, 4, 5});
}

TEST(DflashOutput, AnyEndAndAnyBeginningLeaveTheTextAndTheState) {
  Opened opened(head_of(TinyHead::kEqual, 0.03f));
  ASSERT_TRUE(opened.drafter);
  testing::expect_any_end_and_beginning(opened, 16, /*to_the_end=*/true);
}

// The model by itself: what is refused, and what is interrupted, leaves its texts as they were.
TEST(DflashModel, APassThatFailsLeavesTheTexts) {
  Opened opened(head_of(TinyHead::kEqual), {.n_sequences = 2});
  ASSERT_TRUE(opened.drafter);
  llama::LlamaBlockModel& head = *opened.head;
  const std::size_t width = static_cast<std::size_t>(head.capabilities().n_states);
  const std::vector<float> states(3 * width, 0.5f);
  const BlockText texts[] = {{.seq = 0, .states = states},
                             {.seq = 1, .states = std::span(states).first(width)}};
  const BlockRoot roots[] = {{.seq = 0, .root = 90, .n_guesses = kGuesses},
                             {.seq = 1, .root = 91, .n_guesses = 2}};
  ASSERT_TRUE(head.read(texts).ok());
  ASSERT_TRUE(head.guess(roots).ok());
  const std::span<const float> row = head.logits(1, 2);
  const std::vector<float> before(row.begin(), row.end());

  const std::atomic<bool> raised{true};
  head.set_interrupt(&raised);
  EXPECT_EQ(head.read(texts).code(), StatusCode::kCancelled);
  EXPECT_EQ(head.guess(roots).code(), StatusCode::kCancelled);
  head.set_interrupt(nullptr);
  for (const BlockRoot& bad : {BlockRoot{.seq = 0, .root = -1, .n_guesses = 1},
                               BlockRoot{.seq = 0, .root = 1 << 20, .n_guesses = 1},
                               BlockRoot{.seq = 0, .root = 90, .n_guesses = 0},
                               BlockRoot{.seq = 0, .root = 90, .n_guesses = kGuesses + 1}}) {
    EXPECT_EQ(head.guess({&bad, 1}).code(), StatusCode::kInvalidArgument);
  }
  const std::vector<float> many(static_cast<std::size_t>(head.capabilities().n_batch + 1) * width,
                                0.5f);
  const BlockText too_many{.seq = 0, .states = many};
  EXPECT_EQ(head.read({&too_many, 1}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(head.length(0), 3);
  EXPECT_EQ(head.length(1), 1);
  EXPECT_EQ(head.check_integrity(), "");
  ASSERT_TRUE(head.guess(roots).ok());
  const std::span<const float> again = head.logits(1, 2);
  EXPECT_EQ(std::vector<float>(again.begin(), again.end()), before);

  // As far as the context goes, and not further.
  while (head.read({texts, 1}).ok()) ASSERT_LT(head.length(0), 1000);
  EXPECT_EQ(head.read({texts, 1}).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(head.guess({roots, 1}).code(), StatusCode::kResourceExhausted);
  EXPECT_GE(head.length(0), opened.options.n_ctx);
  EXPECT_EQ(head.check_integrity(), "");
}

}  // namespace
}  // namespace outrider
