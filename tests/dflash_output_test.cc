// DFlash heads of tiny models, in files of their own: the text is that of plain decoding whatever
// they guess, a head that equals the target is right throughout, one of noise next to never, and
// the guesses are llama.cpp's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "draft/model/block_drafter.h"
#include "llama/open_head.h"
#include "llama/open_target.h"
#include "llama/sampling/sampler_chain.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/fake_model.h"
#include "testing/gguf_damage.h"
#include "testing/llama_heads.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf_dflash.h"
#include "testing/tiny_gguf_lag.h"
#include "tests/pair.h"

namespace outrider {
namespace {

using testing::RunOptions;
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

struct Opened {
  explicit Opened(const TinyDflashOptions& with, const How& how = {}) {
    TinyLagOptions lag;
    lag.weight_type = testing::WeightType::kQ8_0;
    lag.lags = {3, 4};
    lag.reads_current = false;
    EXPECT_TRUE(testing::write_tiny_lag(dir.file("target.gguf"), lag).ok());
    write_head(lag, with, how.many_positions);
    options.path = dir.file("target.gguf");
    options.head = dir.file("head.gguf");
    options.n_ctx = 256;
    options.n_batch = 64;
    options.n_threads = 1;
    options.n_sequences = how.n_sequences;
    if (!how.cache_type.empty()) options.cache_type_k = options.cache_type_v = how.cache_type;
    if (how.as_llama_cpp) {
      options.kernels = KernelChoice::kStock;
      options.cache_type_k = options.cache_type_v = "f16";
    }
    target = open(options);
    open_head();
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

  static llama::OpenedTarget open(const ModelOptions& options) {
    llama::TargetOptions how;
    how.widest = 8;
    how.cache_folder = std::filesystem::path();
    how.probe_budget_ms = 300.0;
    Result<llama::OpenedTarget> result = llama::open_target(options, {}, how);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return std::move(*result);
  }

  void open_head() {
    const Result<llama::HeadFile> file = llama::read_head_file(options.head);
    ASSERT_TRUE(file.ok()) << file.status().message();
    ModelOptions of_head = options;
    of_head.path = options.head;
    Result<std::unique_ptr<llama::LlamaBlockModel>> opened =
        llama::open_dflash(*file, of_head, *target.model, {});
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    head = std::move(*opened);
    drafter.emplace(*head, vocabulary().size(),
                    [this](Token t) { return vocabulary().is_end_of_generation(t); });
  }

  const Vocabulary& vocabulary() const { return target.file->text_vocabulary(); }
  std::string check() const {
    std::string wrong = target.model->check_integrity();
    if (wrong.empty()) wrong = head->check_integrity();
    return wrong.empty() ? drafter->check_integrity() : wrong;
  }
  Completion run(const RunOptions& run, bool speculative) {
    std::vector<Drafter*> drafters;
    if (speculative) drafters.push_back(&*drafter);
    return testing::run_checked(*target.model, vocabulary(), drafters, run,
                                [this] { return check(); });
  }

  testing::TempDir dir;
  ModelOptions options;
  llama::OpenedTarget target;
  std::unique_ptr<llama::LlamaBlockModel> head;
  std::optional<BlockDrafter> drafter;
};

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

// Also that of a target that hands out nothing.
TEST(DflashOutput, TheTextIsPlainDecodingsAtEveryTemperatureAndWidth) {
  Opened opened(head_of(TinyHead::kEqual, 0.05f));
  ASSERT_TRUE(opened.drafter);
  ModelOptions untapped = opened.options;
  untapped.head.clear();
  const llama::OpenedTarget without = Opened::open(untapped);
  EXPECT_EQ(without.model->capabilities().n_hidden, 0);
  for (const std::vector<Token>& prompt : testing::seeded_prompts(opened.vocabulary(), 3, 4, 20)) {
    for (const float temperature : {0.0f, 0.7f, 1.0f}) {
      const RunOptions single = options_for(prompt, temperature, 1);
      const Completion plain = opened.run(single, false);
      EXPECT_EQ(testing::run_checked(*without.model, opened.vocabulary(), {}, single, {}).tokens,
                plain.tokens);
      for (const std::int32_t width : {2, 4, 8}) {
        RunOptions options = options_for(prompt, temperature, width);
        options.shape.branches = width > 4 ? 4 : 1;
        options.shape.split_p = 0.0f;
        const Completion got = opened.run(options, true);
        EXPECT_EQ(got.tokens, plain.tokens) << temperature << ' ' << width;
        EXPECT_TRUE(plain.tokens.size() < 3 || got.speculation.drafted > 0);
      }
    }
  }
}

// Whatever cache the target has: the head's is f16.
TEST(DflashOutput, AHeadThatEqualsTheTargetIsAcceptedAndOneOfNoiseNextToNever) {
  for (const TinyHead kind : {TinyHead::kEqual, TinyHead::kNoise}) {
    for (const How& how : {How{}, How{.cache_type = "q8_0"}, How{.many_positions = true}}) {
      Opened opened(head_of(kind), how);
      ASSERT_TRUE(opened.drafter);
      std::int64_t drafted = 0;
      std::int64_t accepted = 0;
      std::int64_t deepest = 0;
      for (const std::vector<Token>& prompt :
           testing::seeded_prompts(opened.vocabulary(), 3, 5, 20)) {
        if (prompt.size() < 6) continue;
        const Completion got = opened.run(options_for(prompt, 1.0f, 1 + kGuesses), true);
        drafted += got.speculation.drafted;
        accepted += got.speculation.accepted;
        deepest = std::max(deepest, static_cast<std::int64_t>(got.speculation.by_depth.size()));
      }
      ASSERT_GT(drafted, 40);
      EXPECT_EQ(deepest, kGuesses);
      if (kind == TinyHead::kEqual) {
        EXPECT_GT(accepted * 100, drafted * 97) << how.cache_type << how.many_positions;
      } else {
        EXPECT_LT(accepted * 100, drafted * 15) << how.cache_type << how.many_positions;
      }
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

// Of whole blocks and of shorter ones: what a block's tokens see depends on how many there are.
// (Not of a head of noise alone, for which control tokens are equally likely.)
TEST(DflashOutput, TheGuessesAreLlamaCppsPositionByPosition) {
  for (const float noise : {0.1f, 0.5f}) {
    for (const std::int32_t n_draft : {1, 2, kGuesses}) {
      Opened opened(head_of(TinyHead::kEqual, noise), {.as_llama_cpp = true});
      ASSERT_TRUE(opened.drafter);
      std::vector<Token> text = testing::seeded_prompts(opened.vocabulary(), 5, 1, 1).front();
      RunOptions options = options_for(text, 1.0f, 1);
      options.max_tokens = 60;
      const Completion said = opened.run(options, false);
      ASSERT_GT(said.tokens.size(), 30U) << said.error.message();
      text.insert(text.end(), said.tokens.begin(), said.tokens.end());
      ASSERT_TRUE(opened.target.model->truncate(0, 0).ok());

      Result<testing::LlamaHeads> theirs =
          testing::LlamaHeads::load({.kind = testing::LlamaHeadKind::kDflash,
                                     .target_path = opened.options.path,
                                     .head_path = opened.options.head,
                                     .n_draft = n_draft});
      ASSERT_TRUE(theirs.ok()) << theirs.status().message();
      const Result<std::vector<std::vector<Token>>> wanted = theirs->guesses(text, 1);
      ASSERT_TRUE(wanted.ok()) << wanted.status().message();
      const std::vector<std::vector<Token>> got = our_guesses(opened, text, 1, n_draft);
      const std::size_t n = std::min(got.size(), wanted->size());
      ASSERT_GT(n, 30U);
      std::size_t right = 0;
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(got[i].size(), static_cast<std::size_t>(n_draft));
        EXPECT_EQ(got[i], (*wanted)[i]) << "behind token " << i + 1;
        right += i + 2 < text.size() && got[i][0] == text[i + 2] ? 1 : 0;
      }
      EXPECT_LT(right, n) << "nothing was compared but right guesses";
    }
  }
}

TEST(DflashSlots, TextsOfSeveralSlotsAreThoseThatTheyHaveAlone) {
  Opened opened(head_of(TinyHead::kEqual, 0.03f), {.n_sequences = 3});
  ASSERT_TRUE(opened.drafter);
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
      const RunOptions options = options_for(prompts[i], 1.0f, 3 + static_cast<std::int32_t>(i));
      Request request;
      request.prompt = options.prompt;
      request.sampler = *llama::make_sampler(options.sampling, opened.target.file->vocabulary());
      request.seed = options.seed;
      request.max_tokens = options.max_tokens;
      request.width = options.width;
      request.draft = options.shape;
      request.draft.branches = i == 0 ? 1 : 3;
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

// Stopped at any length, at the context's edge, and gone on with.
TEST(DflashOutput, AnyEndAndAnyBeginningLeaveTheTextAndTheBooks) {
  Opened opened(head_of(TinyHead::kEqual, 0.03f));
  ASSERT_TRUE(opened.drafter);
  const std::vector<Token> prompt = testing::seeded_prompts(opened.vocabulary(), 11, 1, 12).front();
  RunOptions all = options_for(prompt, 1.0f, 1);
  all.max_tokens = -1;
  const std::vector<Token> said = opened.run(all, false).tokens;
  std::vector<std::size_t> lengths;
  for (std::size_t n = 1; n <= std::min<std::size_t>(16, said.size()); ++n) lengths.push_back(n);
  lengths.push_back(said.size());
  for (const std::size_t n : lengths) {
    ASSERT_TRUE(opened.target.model->truncate(0, 0).ok());
    Engine engine(*opened.target.model, opened.vocabulary(), {&*opened.drafter},
                  {.reuse_prefix = true});
    const auto complete = [&](const std::vector<Token>& text, std::int32_t most) {
      Request request;
      request.prompt = text;
      request.sampler = *llama::make_sampler(options_for(text, 1.0f, 5).sampling,
                                             opened.target.file->vocabulary());
      request.seed = 7;
      request.max_tokens = most;
      request.width = 5;
      request.draft.branches = 2;
      const RequestId id = *engine.add(std::move(request));
      while (engine.busy()) {
        engine.step();
        EXPECT_EQ(opened.check(), "");
      }
      return *engine.take(id);
    };
    const std::vector<Token> begun(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(n));
    const bool to_the_end = n == said.size();
    EXPECT_EQ(complete(prompt, to_the_end ? -1 : static_cast<std::int32_t>(n)).tokens, begun);
    if (to_the_end) continue;
    std::vector<Token> next = prompt;
    next.insert(next.end(), begun.begin(), begun.end());
    const Completion again = complete(next, 8);
    EXPECT_TRUE(n < 2 || again.cached_tokens > 0);
    // The noise is of positions, so the text goes on as it would have.
    for (std::size_t i = 0; i < again.tokens.size() && n + i < said.size(); ++i) {
      EXPECT_EQ(again.tokens[i], said[n + i]) << n;
    }
  }
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
