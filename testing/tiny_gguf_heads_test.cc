// The trained heads of tiny_gguf_lag.h, tiny_gguf_eagle3.h and tiny_gguf_dflash.h in llama.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "testing/llama_heads.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf_dflash.h"
#include "testing/tiny_gguf_eagle3.h"
#include "testing/tiny_gguf_lag.h"
#include "testing/tiny_runner.h"

namespace outrider::testing {
namespace {

const std::vector<Token> kPrompt = {kTinyBos, 90, 91, 290, 92, 80, 81};
constexpr int kTokens = 120;

class TinyHeadsTest : public ::testing::Test {
 protected:
  std::string target_path() const { return dir_.file("target.gguf"); }
  std::string head_path() const { return dir_.file("head.gguf"); }

  void write_target(const TinyLagOptions& target) {
    const Status status = write_tiny_lag(target_path(), target);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  Result<LlamaHeads> load(LlamaHeadKind kind, int n_draft, int n_prompt_batch = 0) const {
    LlamaHeadsOptions options;
    options.kind = kind;
    options.target_path = target_path();
    if (kind != LlamaHeadKind::kMtp) options.head_path = head_path();
    options.n_draft = n_draft;
    options.n_prompt_batch = n_prompt_batch;
    return LlamaHeads::load(options);
  }

  // Greedy text of the target without a head.
  std::vector<Token> plain_text() const {
    TinyRunnerOptions options;
    options.kv_type = GGML_TYPE_F16;
    Result<TinyRunner> runner = TinyRunner::load(target_path(), options);
    EXPECT_TRUE(runner.ok());
    return runner->greedy(kPrompt, kTokens).value();
  }

  // Decodes with the head; the text must be the target's. Returns the share of guesses accepted.
  double acceptance(LlamaHeadKind kind, int n_draft, int n_expected) {
    Result<LlamaHeads> heads = load(kind, n_draft);
    EXPECT_TRUE(heads.ok()) << heads.status().message();
    if (!heads.ok()) return -1.0;
    Result<LlamaHeadsRun> run = heads->run(kPrompt, kTokens);
    EXPECT_TRUE(run.ok()) << run.status().message();
    if (!run.ok()) return -1.0;
    run->text.resize(kTokens);
    EXPECT_EQ(run->text, plain_text());
    int n_guesses = 0;
    int n_accepted = 0;
    for (const LlamaHeadsStep& step : run->steps) {
      EXPECT_EQ(static_cast<int>(step.guesses.size()), n_expected);
      n_guesses += static_cast<int>(step.guesses.size());
      n_accepted += step.n_accepted;
    }
    return static_cast<double>(n_accepted) / std::max(1, n_guesses);
  }

  TempDir dir_;
};

TinyLagOptions mtp_options(TinyLagArchitecture architecture, std::vector<TinyHead> mtp) {
  TinyLagOptions options;
  options.architecture = architecture;
  options.mtp = std::move(mtp);
  return options;
}

TEST_F(TinyHeadsTest, AnEqualMtpBlockAcceptsEverything) {
  for (const TinyLagArchitecture architecture :
       {TinyLagArchitecture::kHyV3, TinyLagArchitecture::kQwen35}) {
    SCOPED_TRACE(tiny_lag_architecture_name(architecture));
    write_target(mtp_options(architecture, {TinyHead::kEqual}));
    EXPECT_EQ(acceptance(LlamaHeadKind::kMtp, 4, 4), 1.0);
  }
}

TEST_F(TinyHeadsTest, AnMtpBlockOfNoiseAcceptsNextToNothing) {
  for (const TinyLagArchitecture architecture :
       {TinyLagArchitecture::kHyV3, TinyLagArchitecture::kQwen35}) {
    SCOPED_TRACE(tiny_lag_architecture_name(architecture));
    write_target(mtp_options(architecture, {TinyHead::kNoise}));
    EXPECT_LT(acceptance(LlamaHeadKind::kMtp, 4, 4), 0.03);
  }
}

TEST_F(TinyHeadsTest, NoiseInAnMtpBlockTakesSomeGuesses) {
  TinyLagOptions options = mtp_options(TinyLagArchitecture::kHyV3, {TinyHead::kEqual});
  options.mtp_noise = 0.5F;
  write_target(options);
  const double share = acceptance(LlamaHeadKind::kMtp, 4, 4);
  EXPECT_GT(share, 0.1);
  EXPECT_LT(share, 0.9);
}

TEST_F(TinyHeadsTest, TwoMtpBlocksGuessOneTokenEach) {
  write_target(mtp_options(TinyLagArchitecture::kHyV3, {TinyHead::kEqual, TinyHead::kEqual}));
  EXPECT_EQ(acceptance(LlamaHeadKind::kMtp, 4, 2), 1.0);
  // The second is wrong: half the guesses are right, always the first.
  write_target(mtp_options(TinyLagArchitecture::kHyV3, {TinyHead::kEqual, TinyHead::kNoise}));
  EXPECT_NEAR(acceptance(LlamaHeadKind::kMtp, 4, 2), 0.5, 0.03);
  // The first is wrong: what the second makes of it does not matter.
  write_target(mtp_options(TinyLagArchitecture::kHyV3, {TinyHead::kNoise, TinyHead::kEqual}));
  EXPECT_LT(acceptance(LlamaHeadKind::kMtp, 4, 2), 0.03);
}

TEST_F(TinyHeadsTest, AnEqualEagle3HeadAcceptsEverything) {
  const TinyLagOptions target;
  write_target(target);
  TinyEagle3Options options;
  for (const bool own : {true, false}) {
    options.own_output = own;
    options.own_embedding = own;
    ASSERT_TRUE(write_tiny_eagle3(head_path(), target, options).ok());
    EXPECT_EQ(acceptance(LlamaHeadKind::kEagle3, 4, 4), 1.0) << "own: " << own;
  }
}

TEST_F(TinyHeadsTest, AnEagle3HeadOfNoiseAcceptsNextToNothing) {
  const TinyLagOptions target;
  write_target(target);
  TinyEagle3Options options;
  options.head = TinyHead::kNoise;
  ASSERT_TRUE(write_tiny_eagle3(head_path(), target, options).ok());
  EXPECT_LT(acceptance(LlamaHeadKind::kEagle3, 4, 4), 0.03);
}

TEST_F(TinyHeadsTest, NoiseInAnEagle3HeadTakesSomeGuesses) {
  const TinyLagOptions target;
  write_target(target);
  TinyEagle3Options options;
  double previous = 1.0;
  for (const float noise : {0.03F, 0.06F, 0.12F}) {
    options.noise = noise;
    ASSERT_TRUE(write_tiny_eagle3(head_path(), target, options).ok());
    const double share = acceptance(LlamaHeadKind::kEagle3, 4, 4);
    EXPECT_LT(share, previous - 0.05) << "noise " << noise;
    previous = share;
  }
  EXPECT_GT(previous, 0.05);
}

// With half the vocabulary: right where the token is known, and a token that is known elsewhere.
TEST_F(TinyHeadsTest, AReducedEagle3VocabularyGuessesKnownTokensOnly) {
  const TinyLagOptions target;
  write_target(target);
  const int n_vocab = make_tiny_vocabulary(target.vocabulary).value().size();
  TinyEagle3Options options;
  for (Token token = 1; token < n_vocab; token += 2) options.tokens.push_back(token);
  std::reverse(options.tokens.begin(), options.tokens.end());  // d2t is no ascending list
  ASSERT_TRUE(write_tiny_eagle3(head_path(), target, options).ok());
  Result<LlamaHeads> heads = load(LlamaHeadKind::kEagle3, 1);
  ASSERT_TRUE(heads.ok()) << heads.status().message();
  std::vector<Token> text = kPrompt;
  for (const Token token : plain_text()) text.push_back(token);
  const int first = static_cast<int>(kPrompt.size()) - 1;
  const std::vector<std::vector<Token>> guesses = heads->guesses(text, first).value();
  int n_known = 0;
  for (std::size_t i = 0; i + 1 < guesses.size(); ++i) {
    const Token next = text[static_cast<std::size_t>(first) + i + 1];
    ASSERT_EQ(guesses[i].size(), 1U);
    EXPECT_EQ(guesses[i][0] % 2, 1);
    EXPECT_EQ(guesses[i][0] == next, next % 2 == 1);
    n_known += next % 2;
  }
  EXPECT_GT(n_known, 20);
  EXPECT_LT(n_known, 100);
}

TEST_F(TinyHeadsTest, AnEagle3HeadOfNoiseLoadsForAnOrdinaryTinyModel) {
  TinyModelOptions target;
  target.n_layer = 3;
  ASSERT_TRUE(write_tiny_gguf(target_path(), target).ok());
  TinyEagle3Options options;
  options.head = TinyHead::kNoise;
  ASSERT_TRUE(write_tiny_eagle3(head_path(), target, options).ok());
  EXPECT_LT(acceptance(LlamaHeadKind::kEagle3, 3, 3), 0.05);
}

TinyLagOptions dflash_target() {
  TinyLagOptions target;
  target.lags = {3, 4};
  target.reads_current = false;
  return target;
}

TEST_F(TinyHeadsTest, AnEqualDflashHeadAcceptsEverything) {
  const TinyLagOptions target = dflash_target();
  write_target(target);
  ASSERT_TRUE(write_tiny_dflash(head_path(), target).ok());
  EXPECT_EQ(acceptance(LlamaHeadKind::kDflash, 4, 4), 1.0);
  // More than the block holds: llama.cpp guesses a block.
  EXPECT_EQ(acceptance(LlamaHeadKind::kDflash, 9, 4), 1.0);
}

TEST_F(TinyHeadsTest, ADflashHeadOfNoiseAcceptsNextToNothing) {
  const TinyLagOptions target = dflash_target();
  write_target(target);
  TinyDflashOptions options;
  options.head = TinyHead::kNoise;
  ASSERT_TRUE(write_tiny_dflash(head_path(), target, options).ok());
  EXPECT_LT(acceptance(LlamaHeadKind::kDflash, 4, 4), 0.03);
}

TEST_F(TinyHeadsTest, NoiseInADflashHeadTakesSomeGuesses) {
  const TinyLagOptions target = dflash_target();
  write_target(target);
  TinyDflashOptions options;
  options.noise = 0.1F;
  ASSERT_TRUE(write_tiny_dflash(head_path(), target, options).ok());
  const double share = acceptance(LlamaHeadKind::kDflash, 4, 4);
  EXPECT_GT(share, 0.05);
  EXPECT_LT(share, 0.9);
}

// So it accepts everything at every temperature, where target and draft share their noise.
TEST_F(TinyHeadsTest, AnEqualHeadHasTheTargetsLogits) {
  struct Case {
    LlamaHeadKind kind;
    TinyLagOptions target;
  };
  const Case cases[] = {
      {LlamaHeadKind::kMtp, mtp_options(TinyLagArchitecture::kHyV3, {TinyHead::kEqual})},
      {LlamaHeadKind::kMtp, mtp_options(TinyLagArchitecture::kQwen35, {TinyHead::kEqual})},
      {LlamaHeadKind::kEagle3, TinyLagOptions()},
      {LlamaHeadKind::kDflash, dflash_target()},
  };
  // Any text: control tokens, and tokens that the target would not say.
  std::vector<Token> text = kPrompt;
  for (Token token = 0; token < 60; ++token) text.push_back((token * 37) % 280);
  const int first = 5;
  for (const Case& one : cases) {
    SCOPED_TRACE(tiny_lag_architecture_name(one.target.architecture));
    write_target(one.target);
    if (one.kind == LlamaHeadKind::kEagle3) {
      ASSERT_TRUE(write_tiny_eagle3(head_path(), one.target).ok());
    }
    if (one.kind == LlamaHeadKind::kDflash) {
      ASSERT_TRUE(write_tiny_dflash(head_path(), one.target).ok());
    }
    Result<LlamaHeads> heads = load(one.kind, 1);
    ASSERT_TRUE(heads.ok()) << heads.status().message();
    std::vector<std::vector<float>> of_head;
    ASSERT_TRUE(heads->guesses(text, first, &of_head).ok());
    TinyRunnerOptions options;
    options.kv_type = GGML_TYPE_F16;
    Result<TinyRunner> runner = TinyRunner::load(target_path(), options);
    const std::vector<std::vector<float>> of_target = runner->logits(text).value();
    ASSERT_EQ(of_head.size() + first, of_target.size());
    for (std::size_t i = 0; i < of_head.size(); ++i) {
      for (std::size_t token = 0; token < of_head[i].size(); ++token) {
        ASSERT_NEAR(of_head[i][token], of_target[first + i][token], 2e-3)
            << "position " << i << ", token " << token;
      }
    }
  }
}

// The harness: its guesses do not depend on how the prompt was cut, and are those of its own runs.
TEST_F(TinyHeadsTest, GuessesArePositionByPositionThoseOfARun) {
  TinyLagOptions target = mtp_options(TinyLagArchitecture::kHyV3, {TinyHead::kEqual});
  target.mtp_noise = 0.5F;
  write_target(target);
  Result<LlamaHeads> heads = load(LlamaHeadKind::kMtp, 3);
  ASSERT_TRUE(heads.ok()) << heads.status().message();
  const LlamaHeadsRun run = heads->run(kPrompt, kTokens).value();
  std::vector<Token> text = kPrompt;
  text.insert(text.end(), run.text.begin(), run.text.end());
  const std::size_t first = kPrompt.size();
  const std::vector<std::vector<Token>> guesses =
      heads->guesses(text, static_cast<int>(first)).value();
  std::size_t at = 0;
  int n_wrong = 0;
  for (const LlamaHeadsStep& step : run.steps) {
    EXPECT_EQ(guesses[at], step.guesses) << "position " << at;
    n_wrong += static_cast<int>(step.guesses.size()) - step.n_accepted;
    at += static_cast<std::size_t>(step.n_accepted) + 1;
  }
  EXPECT_GT(n_wrong, 10);

  Result<LlamaHeads> in_parts = load(LlamaHeadKind::kMtp, 3, /*n_prompt_batch=*/2);
  ASSERT_TRUE(in_parts.ok());
  EXPECT_EQ(in_parts->guesses(text, 50).value(), heads->guesses(text, 50).value());
}

}  // namespace
}  // namespace outrider::testing
