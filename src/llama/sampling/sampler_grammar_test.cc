// A grammar at the head of the chain: asking it about the best candidates only gives what masking
// the whole row gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "dist/gumbel.h"
#include "llama/grammar/grammar_mask.h"
#include "llama/sampling/sampler_chain.h"
#include "llama/schema/json_schema.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/chi_square.h"
#include "testing/llama_fixture.h"
#include "testing/llama_reference_chain.h"

namespace outrider::llama {
namespace {

// A vocabulary of 9,000 tokens, so that scans of the row pay.
class SamplerGrammarTest : public testing::TinyModelTest {
 protected:
  void SetUp() override {
    testing::TinyModelOptions options;
    options.vocabulary.pieces.clear();
    const std::string letters = "abcdefghijklmnopqrst";
    for (const char a : letters) {
      for (const char b : letters) {
        for (const char c : letters) options.vocabulary.pieces.push_back({a, b, c});
      }
    }
    for (const char* piece : {"{\"", "\":", "\",\"", "\"}", "[1", "0,", " \""}) {
      options.vocabulary.pieces.emplace_back(piece);
    }
    options.weight_type = testing::WeightType::kQ4_0;
    load(options);
  }

  const LlamaVocabulary& vocabulary() const { return file().vocabulary(); }

  std::vector<float> random_row(int shape) {
    std::normal_distribution<float> normal(0.0f, shape == 0 ? 0.02f : 2.5f);
    std::vector<float> row(static_cast<std::size_t>(vocabulary().size()));
    for (float& value : row) {
      value = normal(random_);
      if (shape == 2) value = std::round(value * 8.0f) / 8.0f;  // many ties
    }
    if (shape == 3) {  // the best are what the grammar never wants
      for (std::size_t i = testing::kTinyFirstPiece; i < row.size(); i += 3) row[i] += 12.0f;
    }
    return row;
  }

  std::mt19937 random_{static_cast<unsigned>(testing::test_seed(31))};
};

TEST_F(SamplerGrammarTest, EveryChainLeavesWhatMaskingTheWholeRowLeaves) {
  const std::vector<std::string> grammars = {
      "root ::= [a-t ]+ \"!\"",                                       // nearly all letters
      "root ::= \"{\\\"\" [a-t]+ \"\\\":\" ([0-9]+ | \"[1\") \"}\"",  // few, then many, then few
      "root ::= ([a-c] [^a-c])+",                                     // some
      "root ::= (\"abc\" | \"tst\" | \"a\" | \"ts\") [0-9] .*"};      // very few
  const std::vector<SamplingOptions> chains = {
      {},
      {.temperature = 0.0f},
      {.temperature = 0.7f, .top_k = 3, .top_p = 1.0f, .min_p = 0.0f},
      {.top_k = 0, .top_p = 1.0f, .min_p = 0.1f},
      {.top_k = 0, .top_p = 1.0f, .min_p = 0.9f, .repeat_penalty = 1.3f},
      {.top_k = 0, .top_p = 0.9f, .min_p = 0.0f},
      {.temperature = 0.5f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f},
      {.top_k = 20, .top_n_sigma = 2.0f}};
  std::size_t n_compared = 0;
  for (const std::string& grammar : grammars) {
    for (SamplingOptions options : chains) {
      options.grammar = grammar;
      const bool greedy = options.temperature == 0.0f;
      std::unique_ptr<Sampler> sampler = make_sampler(options, vocabulary()).value();
      SamplingOptions behind = options;  // a greedy reference is the masked row's best
      if (greedy) behind = {.top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .grammar = grammar};
      testing::LlamaReferenceChain reference(behind, vocabulary().handle(), {});
      for (int step = 0; step < 24; ++step) {
        const std::vector<float> row = random_row(step % 4);
        const Distribution q = sampler->apply(row);
        const std::vector<llama_token_data> wanted = reference.apply(row, false);
        if (greedy) {
          const llama_token_data* best = &wanted.front();
          for (const llama_token_data& c : wanted) best = c.logit > best->logit ? &c : best;
          ASSERT_EQ(q.size(), 1u);
          ASSERT_EQ(q.token(0), best->id);
        } else if (q.tokens.empty()) {
          ASSERT_EQ(q.size(), wanted.size());
          for (std::size_t i = 0; i < q.size(); ++i) {
            ASSERT_EQ(std::isinf(q.logits[i]), std::isinf(wanted[i].logit)) << i;
          }
        } else {
          ASSERT_EQ(q.size(), wanted.size()) << grammar << ", step " << step;
          for (std::size_t i = 0; i < q.size(); ++i) {
            ASSERT_EQ(std::memcmp(&q.logits[i], &wanted[i].logit, sizeof(float)), 0) << i;
            // llama.cpp's order of impossible candidates is its own.
            if (std::isinf(q.logits[i])) continue;
            ASSERT_EQ(q.token(i), wanted[i].id) << i;
          }
        }
        ++n_compared;
        const Token token = perturbed_argmax(q, noise_key(5, static_cast<std::uint64_t>(step)));
        ASSERT_NE(token, kNoToken);
        if (vocabulary().is_end_of_generation(token)) break;
        sampler->accept(token);
        reference.accept(token, /*said=*/true);
        ASSERT_TRUE(sampler->status().ok()) << sampler->status().message();
      }
    }
  }
  EXPECT_GT(n_compared, 300u);
}

// While a trigger is awaited, and afterwards: each chain leaves what it leaves, without a grammar,
// of the masked row. The rows are such that the best token mostly runs wrongly past a trigger.
TEST_F(SamplerGrammarTest, EveryChainHeedsALazyGrammarAndNeverRunsIntoAnError) {
  const std::string grammar = "root ::= \"s\" [a-d]+ \"\\\"\" .*";
  const std::vector<SamplingOptions> chains = {
      {},
      {.temperature = 0.0f},
      {.top_k = 0, .top_p = 1.0f, .min_p = 0.1f},
      {.temperature = 0.5f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f},
      {.top_k = 0, .top_p = 0.9f, .min_p = 0.0f}};
  std::size_t n_waiting = 0;
  std::size_t n_forbidden = 0;  // were the best of their rows
  for (const SamplingOptions& free : chains) {
    SamplingOptions options = free;
    options.grammar = grammar;
    options.grammar_triggers = {"s"};
    for (std::uint64_t round = 0; round < 4; ++round) {
      std::unique_ptr<Sampler> lazy = make_sampler(options, vocabulary()).value();
      std::unique_ptr<Sampler> plain = make_sampler(free, vocabulary()).value();
      std::unique_ptr<GrammarMask> mask = GrammarMask::create(grammar, {"s"}, vocabulary()).value();
      for (std::uint64_t step = 0; step < 12; ++step) {
        std::vector<float> row = random_row(1);
        row[testing::kTinyFirstPiece + random_() % 8000] += 20.0f;
        const std::ptrdiff_t best = std::max_element(row.begin(), row.end()) - row.begin();
        std::vector<float> masked = row;
        mask->mask_row(masked);
        n_waiting += mask->binds() ? 0 : 1;
        n_forbidden += !mask->binds() && std::isinf(masked[static_cast<std::size_t>(best)]) ? 1 : 0;
        const Distribution q = lazy->apply(row);
        const Distribution wanted = plain->apply(masked);
        ASSERT_EQ(q.size(), wanted.size()) << "step " << step;
        for (std::size_t i = 0; i < q.size(); ++i) {
          ASSERT_EQ(q.logits[i], wanted.logits[i]);
          if (std::isinf(q.logits[i])) continue;
          ASSERT_EQ(q.token(i), wanted.token(i));
        }
        const Token token = perturbed_argmax(q, noise_key(round, step));
        ASSERT_NE(token, kNoToken);
        if (vocabulary().is_end_of_generation(token)) break;
        lazy->accept(token);
        plain->accept(token);
        mask->accept(token);
        ASSERT_TRUE(lazy->status().ok()) << lazy->status().message();
      }
    }
  }
  EXPECT_GT(n_waiting, 30u);
  EXPECT_GT(n_forbidden, 3u);
}

TEST_F(SamplerGrammarTest, TextThatLeavesTheGrammarEndsTheSampler) {
  std::unique_ptr<Sampler> sampler =
      make_sampler({.grammar = "root ::= \"a\" \"b\""}, vocabulary()).value();
  const std::vector<float> row = random_row(1);
  EXPECT_GT(sampler->apply(row).size(), 0u);
  sampler->accept(testing::kTinyFirstByte + 'x');
  EXPECT_FALSE(sampler->status().ok());
  EXPECT_EQ(sampler->apply(row).size(), 0u) << "never unconstrained";
  EXPECT_FALSE(sampler->clone()->status().ok());
}

TEST_F(SamplerGrammarTest, ASchemaWorksAsItsGrammar) {
  const SamplingOptions options{.json_schema = R"({"type":"array","items":{"type":"boolean"}})"};
  std::unique_ptr<Sampler> sampler = make_sampler(options, vocabulary()).value();
  std::string text;
  for (std::uint64_t position = 0; position < 400; ++position) {
    const Token token = perturbed_argmax(sampler->apply(random_row(1)), noise_key(8, position));
    ASSERT_NE(token, kNoToken);
    if (vocabulary().is_end_of_generation(token)) break;
    sampler->accept(token);
    text += vocabulary().piece(token);
  }
  EXPECT_EQ(text.front(), '[') << text;
}

// Of `n` texts with 200 letters each.
std::string schema_of_texts(int n) {
  std::string schema = R"({"enum":[)";
  for (int i = 0; i < n; ++i) {
    const std::string number = std::to_string(i);
    schema += (i == 0 ? "\"" : ",\"") + number + std::string(200 - number.size(), 'a') + "\"";
  }
  return schema + "]}";
}

TEST_F(SamplerGrammarTest, ASchemasGrammarMayBeLargerThanOneThatSomebodyWrote) {
  const std::string large = schema_of_texts(300);
  const Status made = make_sampler({.json_schema = large}, vocabulary()).status();
  EXPECT_TRUE(made.ok()) << made.message();
  const std::string grammar = grammar_from_json_schema(large).value();
  const Status written = make_sampler({.grammar = grammar}, vocabulary()).status();
  EXPECT_NE(written.message().find("more than 50000 elements"), std::string::npos)
      << written.message();
  const Status refused =
      make_sampler({.json_schema = schema_of_texts(1100)}, vocabulary()).status();
  EXPECT_EQ(refused.field(), "json_schema");
  for (const char* part : {"the grammar that is made of the schemas", "200000 elements"}) {
    EXPECT_NE(refused.message().find(part), std::string::npos) << refused.message();
  }
}

}  // namespace
}  // namespace outrider::llama
