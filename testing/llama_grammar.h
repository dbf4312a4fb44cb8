// What the tests of grammars share: a mask over a tiny vocabulary, and what may follow by it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "llama/grammar/grammar_mask.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/chi_square.h"
#include "testing/llama_fixture.h"

namespace outrider::testing {

class GrammarTest : public TinyModelTest {
 protected:
  static constexpr float kNever = -std::numeric_limits<float>::infinity();

  const llama::LlamaVocabulary& vocabulary() const { return file().vocabulary(); }

  std::unique_ptr<llama::GrammarMask> make_mask(const std::string& grammar,
                                                const std::vector<std::string>& triggers = {}) {
    Result<std::unique_ptr<llama::GrammarMask>> mask =
        llama::GrammarMask::create(grammar, triggers, vocabulary());
    EXPECT_TRUE(mask.ok()) << mask.status().message();
    return std::move(*mask);
  }

  std::vector<Token> tokens(const std::string& text) {
    return vocabulary().tokenize(text, false, false).value();
  }

  // The bytes of a text as byte tokens: no merging.
  static std::vector<Token> bytes(const std::string& text) {
    std::vector<Token> tokens;
    for (const char c : text) tokens.push_back(kTinyFirstByte + static_cast<unsigned char>(c));
    return tokens;
  }

  // What llama.cpp's sampler allows, asked about every token at once.
  std::vector<bool> llama_allows(llama_sampler* sampler) const {
    std::vector<llama_token_data> data;
    for (Token t = 0; t < vocabulary().size(); ++t) {
      data.push_back({.id = t, .logit = 0.0f, .p = 0.0f});
    }
    llama_token_data_array array{
        .data = data.data(), .size = data.size(), .selected = -1, .sorted = false};
    llama_sampler_apply(sampler, &array);
    std::vector<bool> allowed;
    for (const llama_token_data& c : data) allowed.push_back(c.logit != kNever);
    return allowed;
  }

  std::vector<bool> mask_allows(const llama::GrammarMask& mask) const {
    std::vector<float> row(static_cast<std::size_t>(vocabulary().size()), 0.0f);
    mask.mask_row(row);
    std::vector<bool> allowed;
    for (const float value : row) allowed.push_back(value != kNever);
    return allowed;
  }

  static std::vector<Token> possible(const std::vector<bool>& allowed) {
    std::vector<Token> tokens;
    for (std::size_t i = 0; i < allowed.size(); ++i) {
      if (allowed[i]) tokens.push_back(static_cast<Token>(i));
    }
    return tokens;
  }

  std::mt19937 random_{static_cast<unsigned>(testing::test_seed(99))};
};

}  // namespace outrider::testing
