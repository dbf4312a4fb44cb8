// Penalties and DRY over windows shorter and longer than the text: against llama.cpp's samplers,
// which look at every token of the row.
#include "llama/sampling/row_edits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "llama/vocabulary/vocabulary.h"
#include "testing/chi_square.h"
#include "testing/llama_fixture.h"

namespace outrider::llama {
namespace {

constexpr std::size_t kPromptTokens = 60;
constexpr int kSteps = 80;

struct Windows {
  std::int32_t penalties;
  std::int32_t dry;  // 0: off; likewise penalties
};

// 60 to 140 tokens of text: in front of, within and behind it; one that is left by hundreds.
const std::vector<Windows> kWindows = {{1, 0},    {7, 0},    {60, 0},  {61, 0},           {1000, 0},
                                       {0, 5},    {0, 90},   {7, 50},  {50, 7},           {64, 64},
                                       {1, 1000}, {1000, 1}, {139, 2}, {100'000, 100'000}};

class RowEditsTest : public testing::TinyModelTest {
 protected:
  const LlamaVocabulary& vocabulary() const { return file().vocabulary(); }

  static SamplingOptions options_of(const Windows& windows) {
    SamplingOptions o;
    o.repeat_last_n = windows.penalties;
    o.repeat_penalty = 1.3f;
    o.frequency_penalty = 0.37f;
    o.presence_penalty = -0.11f;
    o.dry_multiplier = windows.dry > 0 ? 0.8f : 0.0f;
    o.dry_penalty_last_n = windows.dry;
    return o;
  }

  // Few, so that they come back and go again.
  Token random_token() {
    return testing::kTinyFirstByte + 'a' + static_cast<Token>(random_() % (random_() % 3 ? 4 : 20));
  }

  std::vector<Token> random_text(std::size_t n) {
    std::vector<Token> text(n);
    for (Token& token : text) token = random_token();
    return text;
  }

  std::vector<float> random_row() {
    std::normal_distribution<float> normal(0.0f, 3.0f);
    std::vector<float> row(static_cast<std::size_t>(vocabulary().size()));
    for (float& value : row) value = normal(random_);
    return row;
  }

  std::mt19937 random_{static_cast<unsigned>(testing::test_seed(20261129))};
};

// llama.cpp's samplers, told every token from the first on, on all of the row.
class LlamaEdits {
 public:
  LlamaEdits(const SamplingOptions& o, const LlamaVocabulary& vocabulary)
      : penalties_(llama_sampler_init_penalties(vocabulary.size(), o.repeat_last_n,
                                                o.repeat_penalty, o.frequency_penalty,
                                                o.presence_penalty)) {
    std::vector<const char*> breakers;
    for (const std::string& breaker : o.dry_sequence_breakers) breakers.push_back(breaker.c_str());
    dry_.reset(llama_sampler_init_dry(vocabulary.handle(), o.dry_multiplier, o.dry_base,
                                      o.dry_allowed_length, o.dry_penalty_last_n, breakers.data(),
                                      breakers.size()));
  }

  void accept(Token token) {
    llama_sampler_accept(penalties_.get(), token);
    llama_sampler_accept(dry_.get(), token);
  }

  std::vector<float> apply(const std::vector<float>& row) {
    std::vector<llama_token_data> data;
    for (std::size_t i = 0; i < row.size(); ++i) {
      data.push_back({.id = static_cast<llama_token>(i), .logit = row[i], .p = 0.0f});
    }
    llama_token_data_array array{
        .data = data.data(), .size = data.size(), .selected = -1, .sorted = false};
    llama_sampler_apply(penalties_.get(), &array);
    llama_sampler_apply(dry_.get(), &array);
    std::vector<float> edited(row.size());
    for (std::size_t i = 0; i < array.size; ++i) {
      edited[static_cast<std::size_t>(array.data[i].id)] = array.data[i].logit;
    }
    return edited;
  }

 private:
  SamplerHandle penalties_;
  SamplerHandle dry_;
};

bool same_bits(std::span<const float> a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), b.size() * sizeof(float)) == 0;
}

TEST_F(RowEditsTest, EveryWindowLeavesWhatLlamaLeavesAndSoDoItsCopies) {
  for (const Windows& windows : kWindows) {
    const SamplingOptions options = options_of(windows);
    RowEdits edits = RowEdits::create(options, vocabulary().size(), {}, &vocabulary()).value();
    LlamaEdits llama(options, vocabulary());
    const std::vector<Token> prompt = random_text(kPromptTokens);
    edits.accept(prompt);
    for (const Token token : prompt) llama.accept(token);
    const std::string which =
        "windows " + std::to_string(windows.penalties) + ", " + std::to_string(windows.dry);
    int n_changed = 0;
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<float> row = random_row();
      const std::vector<float> wanted = llama.apply(row);
      n_changed += wanted != row ? 1 : 0;
      ASSERT_TRUE(same_bits(edits.apply(row), wanted)) << which << ", step " << step;
      // A draft goes elsewhere from here. Now and then it is the text that goes on.
      RowEdits copy = edits.clone();
      ASSERT_TRUE(same_bits(copy.apply(row), wanted)) << which << ", the copy of step " << step;
      const Token token = random_token();
      if (random_() % 3 == 0) {
        edits.accept(random_token());
        edits = std::move(copy);
      } else {
        copy.accept(random_token());
      }
      edits.accept(token);
      llama.accept(token);
    }
    EXPECT_GT(n_changed, 0) << which;
  }
}

// They begin and end in the middle of tokens, hold each other, and are single letters.
TEST_F(RowEditsTest, BreakersAcrossTokensEndRepetitionsAsLlamasDo) {
  const std::vector<Token> words =
      vocabulary().tokenize("the topstop!ing theerEND\nND\n", false, false).value();
  int n_broken = 0;
  for (const std::vector<std::string>& breakers :
       std::vector<std::vector<std::string>>{{},
                                             {"er", "ND", "!i"},
                                             {"D\nN", "topstop!", "p!ing the", "heer"},
                                             {"t", "e"},
                                             {std::string(50, 'e'), "\xc3\xa9s", "ss"}}) {
    SamplingOptions options = options_of({0, 40});
    options.dry_allowed_length = 1;
    options.dry_sequence_breakers = breakers;
    RowEdits edits = RowEdits::create(options, vocabulary().size(), {}, &vocabulary()).value();
    LlamaEdits llama(options, vocabulary());
    options.dry_sequence_breakers.clear();
    RowEdits unbroken = RowEdits::create(options, vocabulary().size(), {}, &vocabulary()).value();
    for (int step = 0; step < 4 * kSteps; ++step) {
      const std::vector<float> row = random_row();
      const std::vector<float> wanted = llama.apply(row);
      ASSERT_TRUE(same_bits(edits.apply(row), wanted))
          << breakers.size() << " breakers, step " << step;
      n_broken += same_bits(unbroken.apply(row), wanted) ? 0 : 1;
      const Token token = words[random_() % words.size()];
      edits.accept(token);
      unbroken.accept(token);
      llama.accept(token);
    }
  }
  EXPECT_GT(n_broken, 0);
}

// A draft makes a copy for each of its nodes, and a request may have several answers.
TEST_F(RowEditsTest, SamplersAndTheirCopiesShareTheBreakers) {
  const SamplingOptions options = options_of({64, 64});
  const std::shared_ptr<const DryBreakers> breakers =
      vocabulary().dry_breakers(options.dry_sequence_breakers);
  std::vector<RowEdits> all;
  all.push_back(RowEdits::create(options, vocabulary().size(), {}, &vocabulary()).value());
  all.push_back(RowEdits::create(options, vocabulary().size(), {}, &vocabulary()).value());
  EXPECT_EQ(breakers.use_count(), 4) << "the cache, this test and two samplers";
  for (int i = 0; i < 100; ++i) all.push_back(all.front().clone());
  EXPECT_EQ(breakers.use_count(), 4) << "what never changes, copies share as a whole";
}

TEST_F(RowEditsTest, AnEmptyPromptLeavesTheRow) {
  RowEdits edits =
      RowEdits::create(options_of({7, 7}), vocabulary().size(), {}, &vocabulary()).value();
  edits.accept(std::span<const Token>());
  const std::vector<float> row = random_row();
  EXPECT_EQ(edits.apply(row).data(), row.data());
  EXPECT_TRUE(edits.clone().in_window().empty());
}

// So no row asks for a sort, and a copy holds no more than what is looked at.
TEST_F(RowEditsTest, TheListOfAWindowIsThatOfItsLastTokensAfterEachOfThem) {
  for (const std::size_t window : {1, 2, 7, 60, 61, 300}) {
    const Windows windows{.penalties = static_cast<std::int32_t>(window), .dry = 0};
    RowEdits edits =
        RowEdits::create(options_of(windows), vocabulary().size(), {}, &vocabulary()).value();
    std::vector<Token> text = random_text(kPromptTokens);
    edits.accept(text);
    EXPECT_EQ(edits.n_kept(), std::min(window, text.size())) << "of the prompt";
    for (int step = 0; step < 4 * kSteps; ++step) {
      const std::size_t n = std::min(window, text.size());
      std::map<Token, std::int32_t> wanted;
      for (std::size_t i = text.size() - n; i < text.size(); ++i) ++wanted[text[i]];
      const RowEdits copy = edits.clone();
      EXPECT_EQ(copy.n_kept(), n);
      for (const RowEdits* of : {static_cast<const RowEdits*>(&edits), &copy}) {
        std::vector<std::pair<const Token, std::int32_t>> got;
        for (const TokenCount& in : of->in_window()) got.emplace_back(in.token, in.count);
        ASSERT_TRUE(std::equal(got.begin(), got.end(), wanted.begin(), wanted.end()))
            << "window " << window << ", step " << step;
      }
      text.push_back(random_token());
      edits.accept(text.back());
    }
  }
}

}  // namespace
}  // namespace outrider::llama
