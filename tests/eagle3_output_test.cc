// EAGLE-3 heads of tiny models, in files of their own: the text is that of plain decoding whatever
// they guess, a head that equals the target is right throughout, one of noise next to never, and
// the guesses are llama.cpp's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "draft/model/draft_model.h"
#include "llama/open_head.h"
#include "llama/open_target.h"
#include "llama/sampling/sampler_chain.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/fake_model.h"
#include "testing/llama_heads.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf_eagle3.h"
#include "testing/tiny_gguf_lag.h"
#include "tests/pair.h"

namespace outrider {
namespace {

using testing::RunOptions;
using testing::TinyEagle3Options;
using testing::TinyHead;
using testing::TinyLagOptions;

struct Opened {
  // `as_llama_cpp`: with its kernels and its types of cache, so that numbers are its own.
  explicit Opened(const TinyEagle3Options& with, std::int32_t n_sequences = 1,
                  bool as_llama_cpp = false) {
    TinyLagOptions lag;
    lag.weight_type = testing::WeightType::kQ8_0;
    EXPECT_TRUE(testing::write_tiny_lag(dir.file("target.gguf"), lag).ok());
    EXPECT_TRUE(testing::write_tiny_eagle3(dir.file("head.gguf"), lag, with).ok());
    options.path = dir.file("target.gguf");
    options.head = dir.file("head.gguf");
    options.n_ctx = 256;
    options.n_batch = 64;
    options.n_threads = 1;
    options.n_sequences = n_sequences;
    if (as_llama_cpp) {
      options.kernels = KernelChoice::kStock;
      options.cache_type_k = options.cache_type_v = "f16";
    }
    target = open(options);
    open_head();
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
    Result<std::unique_ptr<llama::LlamaModel>> opened =
        llama::open_eagle3(*file, of_head, *target.model, {});
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    head = std::move(*opened);
    EXPECT_EQ(head->capabilities().rollback, Rollback::kAny)
        << head->capabilities().rollback_reason;
    drafter.emplace(
        *head, vocabulary().size(),
        [this](Token t) { return vocabulary().is_end_of_generation(t); },
        /*learns=*/true, HeadOptions{.name = kEagle3Name, .window = 512, .reads_first = false});
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
  std::unique_ptr<llama::LlamaModel> head;
  std::optional<DraftModelDrafter> drafter;
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

// Also that of a target that hands out nothing, on the processor.
TEST(Eagle3Output, TheTextIsPlainDecodingsAtEveryTemperatureAndWidth) {
  for (const bool reduced : {false, true}) {
    TinyEagle3Options with = head_of(TinyHead::kEqual, 0.05f);
    if (reduced) with.tokens = odd_tokens();
    Opened opened(with);
    ASSERT_TRUE(opened.drafter);
    ModelOptions untapped = opened.options;
    untapped.head.clear();
    const llama::OpenedTarget without = Opened::open(untapped);
    EXPECT_EQ(without.model->capabilities().n_hidden, 0);
    for (const std::vector<Token>& prompt :
         testing::seeded_prompts(opened.vocabulary(), 3, 4, 20)) {
      for (const float temperature : {0.0f, 0.7f, 1.0f}) {
        const RunOptions single = options_for(prompt, temperature, 1);
        const Completion plain = opened.run(single, false);
        EXPECT_EQ(testing::run_checked(*without.model, opened.vocabulary(), {}, single, {}).tokens,
                  plain.tokens);
        for (const std::int32_t width : {2, 4, 8}) {
          RunOptions options = options_for(prompt, temperature, width);
          options.shape.branches = width > 4 ? 4 : 1;
          const Completion got = opened.run(options, true);
          EXPECT_EQ(got.tokens, plain.tokens) << reduced << ' ' << temperature << ' ' << width;
          EXPECT_GT(got.speculation.drafted, 0) << got.speculation.reason;
        }
      }
    }
  }
}

TEST(Eagle3Output, AHeadThatEqualsTheTargetIsAcceptedAndOneOfNoiseNextToNever) {
  for (const TinyHead kind : {TinyHead::kEqual, TinyHead::kNoise}) {
    for (const bool own : {true, false}) {
      TinyEagle3Options with = head_of(kind);
      with.own_output = with.own_embedding = own;
      Opened opened(with);
      ASSERT_TRUE(opened.drafter);
      std::int64_t drafted = 0;
      std::int64_t accepted = 0;
      for (const std::vector<Token>& prompt :
           testing::seeded_prompts(opened.vocabulary(), 3, 5, 20)) {
        if (prompt.size() < 3) continue;
        const Completion got = opened.run(options_for(prompt, 1.0f, 4), true);
        EXPECT_EQ(got.speculation.reason, "") << own;
        EXPECT_EQ(got.error.message(), "") << got.tokens.size();
        drafted += got.speculation.drafted;
        accepted += got.speculation.accepted;
      }
      ASSERT_GT(drafted, 40);
      if (kind == TinyHead::kEqual) {
        // Its sums have other lengths than the target's, so close decisions differ now and then.
        EXPECT_GT(accepted * 100, drafted * 95) << own;
      } else {
        EXPECT_LT(accepted * 100, drafted * 15) << own;
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
    const Completion got = opened.run(options_for(prompt, 1.0f, 2), true);
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
      const Status drafted = opened.drafter->draft(request);
      EXPECT_TRUE(drafted.ok()) << drafted.message();
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

TEST(Eagle3Output, TheGuessesAreLlamaCppsPositionByPosition) {
  struct Case {
    float noise;
    bool own;
    bool reduced;
  };
  for (const Case& one : {Case{0.0f, true, false}, Case{0.12f, true, false},
                          Case{0.12f, false, false}, Case{0.12f, true, true}}) {
    TinyEagle3Options with = head_of(TinyHead::kEqual, one.noise);
    with.own_output = with.own_embedding = one.own;
    if (one.reduced) with.tokens = odd_tokens();
    Opened opened(with, 1, /*as_llama_cpp=*/true);
    ASSERT_TRUE(opened.drafter);
    std::vector<Token> text = testing::seeded_prompts(opened.vocabulary(), 5, 1, 1).front();
    RunOptions options = options_for(text, 1.0f, 1);
    options.max_tokens = 60;
    const Completion said = opened.run(options, false);
    ASSERT_GT(said.tokens.size(), 30U) << said.error.message();
    text.insert(text.end(), said.tokens.begin(), said.tokens.end());
    ASSERT_TRUE(opened.target.model->truncate(0, 0).ok());

    Result<testing::LlamaHeads> theirs =
        testing::LlamaHeads::load({.kind = testing::LlamaHeadKind::kEagle3,
                                   .target_path = opened.options.path,
                                   .head_path = opened.options.head});
    ASSERT_TRUE(theirs.ok()) << theirs.status().message();
    const Result<std::vector<std::vector<Token>>> wanted = theirs->guesses(text, 1);
    ASSERT_TRUE(wanted.ok()) << wanted.status().message();
    const std::vector<std::vector<Token>> got = our_guesses(opened, text, 1, 4);
    const std::size_t n = std::min(got.size(), wanted->size());
    ASSERT_GT(n, 30U);
    std::size_t right = 0;
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(got[i], (*wanted)[i]) << "behind token " << i + 1 << ", noise " << one.noise;
      right += !got[i].empty() && i + 2 < text.size() && got[i][0] == text[i + 2] ? 1 : 0;
    }
    if (one.noise > 0.0f) {
      EXPECT_LT(right, n) << "nothing was compared but right guesses";
    }
  }
}

TEST(Eagle3Slots, TextsOfSeveralSlotsAreThoseThatTheyHaveAlone) {
  Opened opened(head_of(TinyHead::kEqual, 0.03f), /*n_sequences=*/3);
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
      const RunOptions options = options_for(prompts[i], 1.0f, 4);
      Request request;
      request.prompt = options.prompt;
      request.sampler = *llama::make_sampler(options.sampling, opened.target.file->vocabulary());
      request.seed = options.seed;
      request.max_tokens = options.max_tokens;
      request.width = options.width;
      request.draft = options.shape;
      request.draft.branches = i == 0 ? 1 : 3;
      request.draft.model_branches = request.draft.branches;
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

// A text longer than the window and the batches, cancelled, stopped and gone on with at any length.
TEST(Eagle3Output, AnyEndAndAnyBeginningLeaveTheTextAndTheBooks) {
  Opened opened(head_of(TinyHead::kEqual, 0.03f));
  ASSERT_TRUE(opened.drafter);
  const std::vector<Token> prompt = testing::seeded_prompts(opened.vocabulary(), 11, 1, 12).front();
  const std::vector<Token> said = opened.run(options_for(prompt, 1.0f, 1), false).tokens;
  for (std::size_t n = 1; n <= said.size(); ++n) {
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
      request.draft.model_branches = 2;
      const RequestId id = *engine.add(std::move(request));
      while (engine.busy()) {
        engine.step();
        EXPECT_EQ(opened.check(), "");
      }
      return *engine.take(id);
    };
    const std::vector<Token> begun(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_EQ(complete(prompt, static_cast<std::int32_t>(n)).tokens, begun);
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

}  // namespace
}  // namespace outrider
