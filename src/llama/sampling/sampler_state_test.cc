// Samplers that remember the text: against llama.cpp's own chain, step by step, and after drafts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/types.h"
#include "dist/gumbel.h"
#include "llama/sampling/mirostat.h"
#include "llama/sampling/sampler_chain.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/chi_square.h"
#include "testing/llama_fixture.h"
#include "testing/llama_reference_chain.h"
#include "testing/random_sampling.h"

namespace outrider::llama {
namespace {

using Copy = std::vector<std::pair<Token, float>>;  // of a distribution: token, scaled logit

Copy copy_of(const Distribution& q) {
  Copy copy;
  for (std::size_t i = 0; i < q.size(); ++i) copy.emplace_back(q.token(i), q.logits[i]);
  return copy;
}

class SamplerStateTest : public testing::TinyModelTest {
 protected:
  const LlamaVocabulary& vocabulary() const { return file().vocabulary(); }

  // Few tokens with high values, so that texts repeat themselves; rounded ones have ties.
  std::vector<float> random_row() { return random_row(random_() % 3 == 0 ? 0.5f : 3.0f); }
  std::vector<float> random_row(float spread) {
    std::normal_distribution<float> normal(0.0f, spread);
    std::vector<float> row(static_cast<std::size_t>(vocabulary().size()));
    for (float& value : row) value = normal(random_);
    for (int i = 0; i < 6; ++i) row[testing::kTinyFirstByte + 'a' + random_() % 6] += 6.0f;
    return row;
  }

  SamplingOptions random_options() { return testing::random_filters(random_, vocabulary().size()); }

  std::vector<Token> never(const SamplingOptions& o) const {
    std::vector<Token> tokens;
    for (Token t = 0; o.ignore_eos && t < vocabulary().size(); ++t) {
      if (vocabulary().is_end_of_generation(t)) tokens.push_back(t);
    }
    return tokens;
  }

  std::vector<Token> random_prompt() {
    std::vector<Token> prompt(1 + random_() % 40);
    for (Token& token : prompt) {
      token = testing::kTinyFirstByte + 'a' + static_cast<Token>(random_() % 4);
    }
    return prompt;
  }

  std::mt19937 random_{static_cast<unsigned>(testing::test_seed(20261121))};
};

// Bits and order; but a dense distribution (scale other than 1) is only compared to 1e-6.
void expect_same(const Distribution& got, const std::vector<llama_token_data>& wanted) {
  if (got.tokens.empty()) {
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].logit == kRuledOut) {
        ASSERT_EQ(got.logits[i], kRuledOut);
      } else {
        ASSERT_NEAR(got.scale * got.logits[i], wanted[i].logit,
                    1e-5 * (1.0 + std::fabs(wanted[i].logit)));
      }
    }
    return;
  }
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(got.token(i), wanted[i].id) << "candidate " << i;
    ASSERT_EQ(std::memcmp(&got.logits[i], &wanted[i].logit, sizeof(float)), 0)
        << "candidate " << i << ": " << got.logits[i] << " and " << wanted[i].logit;
  }
}

TEST_F(SamplerStateTest, EveryChainWithAHistoryLeavesWhatLlamaLeavesStepByStep) {
  int n_xtc = 0;
  for (int round = 0; round < 300; ++round) {
    const SamplingOptions options = random_options();
    const std::vector<Token> prompt = random_prompt();
    const std::uint64_t seed = random_();
    const Result<std::unique_ptr<Sampler>> made = make_sampler(options, vocabulary());
    ASSERT_TRUE(made.ok()) << made.status().message();
    Sampler& sampler = **made;
    testing::LlamaReferenceChain reference(options, vocabulary().handle(), never(options));
    sampler.begin(prompt, seed);
    for (const Token token : prompt) reference.accept(token, /*said=*/false);
    // XTC's draw is ours; a second sampler that always lets it take part tells the two apart.
    for (std::size_t position = prompt.size(); position < prompt.size() + 30; ++position) {
      const std::vector<float> row = random_row();
      const bool xtc = options.xtc_probability > 0.0f && options.xtc_threshold <= 0.5f &&
                       noise_uniform(noise_key(seed, position, 0x787463), 0) <=
                           static_cast<double>(options.xtc_probability);
      n_xtc += xtc ? 1 : 0;
      const Distribution q = sampler.apply(row);
      ASSERT_NO_FATAL_FAILURE(expect_same(q, reference.apply(row, xtc)))
          << "round " << round << ", position " << position;
      const Token token = perturbed_argmax(q, noise_key(seed, position));
      ASSERT_NE(token, kNoToken);
      sampler.accept(token);
      reference.accept(token, /*said=*/true);
    }
  }
  EXPECT_GT(n_xtc, 100);
}

// What a sampler with `options` makes of the rows when the text goes on with `tokens`.
std::vector<Copy> replay(Sampler& sampler, const std::vector<std::vector<float>>& rows,
                         const std::vector<Token>& tokens) {
  std::vector<Copy> all;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    all.push_back(copy_of(sampler.apply(rows[i])));
    sampler.accept(tokens[i]);
  }
  return all;
}

TEST_F(SamplerStateTest, AfterASpeculativeStepTheStateIsThatOfATokenByTokenReplay) {
  for (int round = 0; round < 200; ++round) {
    SamplingOptions options = random_options();
    if (round % 4 == 0) options = {.mirostat = 1 + round / 4 % 2};
    if (round % 5 == 0) options.grammar = "root ::= [a-f]* \"g\"? [a-f]* [^q]*";
    options.ignore_eos = options.ignore_eos && options.grammar.empty();
    const std::vector<Token> prompt = random_prompt();
    std::unique_ptr<Sampler> sampler = make_sampler(options, vocabulary()).value();
    sampler->begin(prompt, 7);
    std::vector<std::vector<float>> rows;
    std::vector<Token> said;
    std::vector<Copy> seen;
    for (int step = 0; step < 8; ++step) {
      // The draft: a copy says what it likes from rows of its own, shorter ones too.
      std::unique_ptr<Sampler> draft = sampler->clone();
      EXPECT_EQ(draft->has_state(), sampler->has_state());
      const std::vector<float> next = random_row();
      const Copy of_draft = copy_of(draft->apply(next));
      ASSERT_EQ(of_draft, copy_of(sampler->apply(next))) << "round " << round << ", step " << step;
      for (unsigned long k = random_() % 5; k > 0; --k) {
        std::vector<float> row = random_row();
        row.resize(row.size() - random_() % 40);
        const Token token = perturbed_argmax(draft->apply(row), noise_key(random_(), 1));
        if (token == kNoToken) break;
        draft->accept(token);
      }
      // The walk: the target's own tokens.
      for (unsigned long k = 1 + random_() % 4; k > 0; --k) {
        rows.push_back(random_row());
        const Distribution q = sampler->apply(rows.back());
        seen.push_back(copy_of(q));
        const Token token = perturbed_argmax(q, noise_key(7, prompt.size() + said.size()));
        if (token == kNoToken) break;
        sampler->accept(token);
        said.push_back(token);
      }
      if (seen.size() > said.size()) break;
    }
    seen.resize(said.size());
    std::unique_ptr<Sampler> fresh = make_sampler(options, vocabulary()).value();
    fresh->begin(prompt, 7);
    ASSERT_EQ(replay(*fresh, rows, said), seen) << "round " << round;
    ASSERT_TRUE(sampler->status().ok());
  }
}

TEST_F(SamplerStateTest, HasStateSaysWhetherAcceptingChangesAnything) {
  const std::vector<std::pair<SamplingOptions, bool>> cases = {
      {{}, false},
      {{.temperature = 0.0f}, false},
      {{.top_k = 0, .top_p = 1.0f, .min_p = 0.0f}, false},
      {{.dynatemp_range = 0.5f}, false},
      {{.top_n_sigma = 1.0f}, false},
      {{.logit_bias = {{5, 1.0f}}}, false},
      {{.ignore_eos = true}, false},
      {{.xtc_probability = 1.0f}, false},
      {{.xtc_probability = 0.5f, .xtc_threshold = 0.6f}, false},
      {{.repeat_last_n = 0, .repeat_penalty = 1.5f}, false},
      {{.xtc_probability = 0.5f}, true},
      {{.repeat_penalty = 1.5f}, true},
      {{.temperature = 0.0f, .frequency_penalty = 1.0f}, true},
      {{.presence_penalty = 1.0f}, true},
      {{.dry_multiplier = 1.0f}, true},
      {{.mirostat = 1}, true},
      {{.mirostat = 2}, true},
      {{.grammar = "root ::= [a-z]*"}, true},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(make_sampler(cases[i].first, vocabulary()).value()->has_state(), cases[i].second)
        << "case " << i;
  }
}

// llama.cpp's mirostat chooses; ours must have cut as it did, and learns the same from its choice.
TEST_F(SamplerStateTest, MirostatCutsAndLearnsAsLlamaDoes) {
  const std::int32_t n_vocab = vocabulary().size();
  for (const std::int32_t version : {1, 2}) {
    for (const float tau : {1.0f, 3.0f, 5.0f}) {
      const SamplerHandle reference(version == 1
                                        ? llama_sampler_init_mirostat(n_vocab, 5, tau, 0.2f, 100)
                                        : llama_sampler_init_mirostat_v2(5, tau, 0.2f));
      const SamplingOptions options{
          .temperature = 1.0f, .mirostat = version, .mirostat_tau = tau, .mirostat_eta = 0.2f};
      std::unique_ptr<Sampler> sampler = make_sampler(options, vocabulary()).value();
      std::size_t n_cut = 0;
      int n_undefined = 0;
      for (int step = 0; step < 200; ++step) {
        const std::vector<float> row = random_row(3.0f);
        std::vector<llama_token_data> data;
        for (std::size_t i = 0; i < row.size(); ++i) {
          data.push_back({.id = static_cast<llama_token>(i), .logit = row[i], .p = 0.0f});
        }
        llama_token_data_array array{
            .data = data.data(), .size = data.size(), .selected = -1, .sorted = false};
        llama_sampler_apply(reference.get(), &array);
        const Distribution q = sampler->apply(row);
        if (version == 1 && array.size == 1 && q.size() == row.size()) {
          // The count is beyond all integers, and llama.cpp's is undefined. Both begin anew.
          ++n_undefined;
          llama_sampler_reset(reference.get());
          sampler = make_sampler(options, vocabulary()).value();
          continue;
        }
        ASSERT_EQ(q.size(), array.size) << "version " << version << ", tau " << tau << ", " << step;
        n_cut += q.size() < row.size() ? 1 : 0;
        for (std::size_t i = 0; i < q.size(); ++i) ASSERT_EQ(q.token(i), array.data[i].id);
        sampler->accept(array.data[array.selected].id);
      }
      EXPECT_GT(n_cut, 20u);
      EXPECT_LT(n_undefined, 20);
    }
  }
}

TEST_F(SamplerStateTest, MirostatWorksWithFewPossibleTokens) {
  for (const std::int32_t version : {1, 2}) {
    std::unique_ptr<Sampler> sampler = make_sampler({.mirostat = version}, vocabulary()).value();
    std::vector<float> row(static_cast<std::size_t>(vocabulary().size()), kRuledOut);
    EXPECT_EQ(sampler->apply(row).size(), 0u);
    row[9] = 1.0f;
    const Distribution q = sampler->apply(row);
    ASSERT_EQ(q.size(), 1u);
    EXPECT_EQ(q.token(0), 9);
    sampler->accept(9);
    sampler->accept(300);  // never seen in a row: nothing to learn
    row[8] = 1.0f;
    EXPECT_GE(sampler->apply(row).size(), 1u);
  }
}

TEST_F(SamplerStateTest, XtcIsDrawnFromSeedAndPositionWithItsProbability) {
  const SamplingOptions options{.xtc_probability = 0.3f, .xtc_threshold = 0.1f};
  std::unique_ptr<Sampler> sampler = make_sampler(options, vocabulary()).value();
  std::vector<float> row(static_cast<std::size_t>(vocabulary().size()), -10.0f);
  row[40] = 5.0f;
  row[41] = 4.5f;
  int taken = 0;
  constexpr int kPositions = 3000;
  for (int i = 0; i < kPositions; ++i) {
    const Copy first = copy_of(sampler->apply(row));
    EXPECT_EQ(copy_of(sampler->apply(row)), first) << "apply draws nothing anew";
    taken += first.front().first == 41 ? 1 : 0;
    sampler->accept(40);
  }
  // Five standard deviations of a binomial.
  EXPECT_NEAR(taken, 0.3 * kPositions, 5.0 * std::sqrt(0.3 * 0.7 * kPositions));
}

TEST_F(SamplerStateTest, WhatCannotBeIsRefusedByName) {
  const Token n = vocabulary().size();
  const std::vector<std::pair<SamplingOptions, std::string>> bad = {
      {{.logit_bias = {{n, 1.0f}}}, "logit_bias"}, {{.logit_bias = {{-1, 1.0f}}}, "logit_bias"},
      {{.grammar = "root ::= x"}, "grammar"},      {{.grammar = " "}, "grammar"},
      {{.json_schema = "{"}, "json_schema"},       {{.top_k = 5, .mirostat = 1}, "top_k"}};
  for (const auto& [options, name] : bad) {
    const Status status = make_sampler(options, vocabulary()).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  }
  EXPECT_FALSE(make_sampler({.grammar = "root ::= \"a\""}, 10).ok()) << "needs a vocabulary";
  EXPECT_FALSE(make_sampler({.dry_multiplier = 1.0f}, 10).ok());
  EXPECT_FALSE(make_sampler({.ignore_eos = true}, 10).ok());
}

TEST_F(SamplerStateTest, PenaltiesLeaveTheEndOfALineAloneWhereAskedTo) {
  SamplingOptions o;
  o.top_k = 0;
  o.top_p = 1.0f;
  o.min_p = 0.0f;
  o.temperature = 1.0f;
  o.repeat_penalty = 2.0f;
  o.frequency_penalty = 0.5f;
  o.dry_multiplier = 0.0f;
  const Token newline = llama_vocab_nl(vocabulary().handle());
  ASSERT_NE(newline, kNoToken);
  const Token letter = testing::kTinyFirstByte + 'a';
  const std::vector<float> row(static_cast<std::size_t>(vocabulary().size()), 3.0f);
  for (const bool penalized : {true, false}) {
    o.penalize_newline = penalized;
    Result<std::unique_ptr<Sampler>> sampler = make_sampler(o, vocabulary());
    ASSERT_TRUE(sampler.ok()) << sampler.status().message();
    for (const Token token : {newline, letter, newline}) (*sampler)->accept(token);
    const std::unique_ptr<Sampler> clone = (*sampler)->clone();
    for (Sampler* s : {sampler->get(), clone.get()}) {
      for (const auto& [token, value] : copy_of(s->apply(row))) {
        const bool lower = token == letter || (penalized && token == newline);
        ASSERT_EQ(value < 3.0f, lower) << "token " << token;
      }
    }
  }
  EXPECT_FALSE(make_sampler(o, 10).ok()) << "which token is it, without a vocabulary?";
}

}  // namespace
}  // namespace outrider::llama
