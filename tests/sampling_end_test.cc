// Where texts end and what constrains them, at each place inside an accepted block: stop strings,
// end tokens, the token limit, grammars and triggers. On a tiny pair, against plain decoding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "testing/chi_square.h"
#include "testing/fake_drafter.h"
#include "testing/sanitized.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_pair.h"
#include "tests/pair.h"

namespace outrider {
namespace {

using testing::add_chain;
using testing::OpenModel;
using testing::RunOptions;
using testing::ScriptedDrafter;

class SamplingEnd : public ::testing::Test {
 protected:
  void SetUp() override {
    ModelOptions options;
    options.n_ctx = 128;
    options.n_batch = 64;
    options.n_threads = 1;
    testing::TinyModelOptions model;
    ASSERT_TRUE(testing::write_tiny_gguf(dir_.file("target.gguf"), model).ok());
    target_ = std::make_unique<OpenModel>(dir_.file("target.gguf"), options,
                                          llama::ContextSettings{}, true);
    prompts_ = testing::seeded_prompts(vocabulary(), testing::test_seed(12), 4, 20);
  }

  const Vocabulary& vocabulary() const { return target_->file->text_vocabulary(); }

  Completion run(const RunOptions& options, Drafter* drafter = nullptr) {
    std::vector<Drafter*> drafters;
    if (drafter != nullptr) drafters.push_back(drafter);
    return testing::run_checked(*target_->model, vocabulary(), drafters, options,
                                [this] { return target_->model->check_integrity(); });
  }

  RunOptions options_for(std::size_t prompt, SamplingOptions sampling = {.temperature = 1.0f}) {
    RunOptions options;
    options.prompt = prompts_[prompt % prompts_.size()];
    options.sampling = std::move(sampling);
    options.seed = 100 + prompt;
    options.max_tokens = 20;
    options.logprobs = 1;
    return options;
  }

  // Proposes `right` tokens of the text and then `wrong` ones.
  static ScriptedDrafter after(std::vector<Token> whole, std::int32_t right,
                               std::vector<Token> wrong) {
    return ScriptedDrafter([=](DraftRequest& r) {
      std::vector<Token> chain;
      for (std::size_t k = 0; k < static_cast<std::size_t>(right); ++k) {
        if (r.text.size() + k >= whole.size()) break;
        chain.push_back(whole[r.text.size() + k]);
      }
      chain.insert(chain.end(), wrong.begin(), wrong.end());
      chain.resize(std::min(chain.size(), static_cast<std::size_t>(r.max_nodes)));
      add_chain(r, chain);
      return Status();
    });
  }

  static std::vector<Token> whole(const RunOptions& options, const Completion& plain) {
    std::vector<Token> all = options.prompt;
    all.insert(all.end(), plain.tokens.begin(), plain.tokens.end());
    return all;
  }

  static void expect_same(const Completion& got, const Completion& plain) {
    ASSERT_EQ(got.tokens, plain.tokens);
    ASSERT_EQ(got.text, plain.text);
    ASSERT_EQ(got.finish, plain.finish);
    ASSERT_EQ(got.stop, plain.stop);
    ASSERT_EQ(got.error.message(), plain.error.message());
    ASSERT_EQ(got.logprobs.size(), plain.tokens.size());
    for (std::size_t i = 0; i < got.logprobs.size(); ++i) {
      ASSERT_EQ(got.logprobs[i].chosen.id, plain.tokens[i]);
      ASSERT_NEAR(got.logprobs[i].chosen.logprob, plain.logprobs[i].chosen.logprob, 1e-5);
      ASSERT_LE(got.logprobs[i].chosen.logprob, got.logprobs[i].top[0].logprob);
    }
    ASSERT_EQ(got.speculation.emitted, static_cast<std::int64_t>(plain.tokens.size()));
  }

  // Plain decoding against blocks of every width, so that the end falls on each place of a block.
  void expect_same_at_every_width(RunOptions options, const std::vector<Token>& text,
                                  FinishReason finish) {
    options.width = 1;
    const Completion plain = run(options);
    ASSERT_EQ(plain.finish, finish);
    for (std::int32_t width = 2; width <= 9; ++width) {
      SCOPED_TRACE("width " + std::to_string(width));
      options.width = width;
      ScriptedDrafter prophet(testing::prophet(text, 100, 0, vocabulary().size()));
      const Completion got = run(options, &prophet);
      ASSERT_NO_FATAL_FAILURE(expect_same(got, plain));
      if (plain.tokens.size() < 4) continue;
      ASSERT_GT(got.speculation.accepted, 0);
    }
  }

  testing::TempDir dir_;
  std::unique_ptr<OpenModel> target_;
  std::vector<std::vector<Token>> prompts_;
};

TEST_F(SamplingEnd, StopStringsCutAtEachOffsetSpanningTokensAndTiedWithTheLimit) {
  for (std::size_t p = 0; p < (testing::kSanitized ? 1 : prompts_.size()); ++p) {
    RunOptions options = options_for(p);
    const Completion plain = run(options);
    const std::vector<Token> text = whole(options, plain);
    std::string said;
    for (std::size_t i = 0; i < plain.tokens.size(); ++i) {
      const std::string piece(vocabulary().piece(plain.tokens[i]));
      const std::size_t begin = said.size();
      said += piece;
      if (begin == 0 || piece.empty()) continue;
      // From the last byte of the token before to the first of this one.
      options.stop = {said.substr(begin - 1, 2)};
      options.max_tokens = 20;
      SCOPED_TRACE("token " + std::to_string(i));
      ASSERT_NO_FATAL_FAILURE(expect_same_at_every_width(options, text, FinishReason::kStop));
      // The limit falls on the very token that completes the stop string, wherever that is.
      const std::int32_t n = static_cast<std::int32_t>(run(options).tokens.size());
      options.max_tokens = n;
      ASSERT_NO_FATAL_FAILURE(expect_same_at_every_width(options, text, FinishReason::kStop));
      if (n == 1) continue;
      options.max_tokens = n - 1;
      ASSERT_NO_FATAL_FAILURE(expect_same_at_every_width(options, text, FinishReason::kLength));
    }
  }
}

TEST_F(SamplingEnd, EndTokensEndTheTextAtEachOffset) {
  for (int characters = 1; characters <= 12; ++characters) {
    SamplingOptions sampling{.temperature = 1.0f};
    sampling.grammar = "root ::= [a-z]{" + std::to_string(characters) + "}";
    RunOptions options = options_for(static_cast<std::size_t>(characters), sampling);
    const Completion plain = run(options);
    ASSERT_EQ(plain.finish, FinishReason::kStop);
    ASSERT_EQ(plain.text.size(), static_cast<std::size_t>(characters)) << plain.text;
    ASSERT_TRUE(vocabulary().is_end_of_generation(plain.tokens.back()));
    const std::vector<Token> text = whole(options, plain);
    ASSERT_NO_FATAL_FAILURE(expect_same_at_every_width(options, text, FinishReason::kStop));
    options.max_tokens = static_cast<std::int32_t>(plain.tokens.size());
    ASSERT_NO_FATAL_FAILURE(expect_same_at_every_width(options, text, FinishReason::kStop));
    // Drafts that go on behind the end.
    for (std::int32_t width = 2; width <= 9; ++width) {
      options.width = width;
      ScriptedDrafter beyond = after(text, 100, {40, 41, 42});
      ASSERT_NO_FATAL_FAILURE(expect_same(run(options, &beyond), plain));
    }
  }
}

TEST_F(SamplingEnd, ADraftThatLeavesTheGrammarIsRejectedAtEachPosition) {
  const Token forbidden[] = {testing::kTinyFirstByte + 'Q', testing::kTinyEos, testing::kTinyBos};
  SamplingOptions sampling{.temperature = 1.0f};
  sampling.grammar = "root ::= ([a-p]+ [0-9] \" \"?)+";
  for (std::size_t p = 0; p < (testing::kSanitized ? 1 : prompts_.size()); ++p) {
    RunOptions options = options_for(p, sampling);
    const Completion plain = run(options);
    EXPECT_EQ(plain.text.find_first_not_of("abcdefghijklmnop0123456789 "), std::string::npos);
    const std::vector<Token> text = whole(options, plain);
    for (std::int32_t width = 2; width <= 8; ++width) {
      for (std::int32_t right = 0; right < width - 1; ++right) {
        for (const Token wrong : forbidden) {
          options.width = width;
          ScriptedDrafter drafter = after(text, right, {wrong, 40});
          const Completion got = run(options, &drafter);
          ASSERT_NO_FATAL_FAILURE(expect_same(got, plain)) << width << " " << right;
        }
      }
    }
  }
}

TEST_F(SamplingEnd, ATriggerInsideADraftBindsFromThere) {
  int n_bound = 0;
  const std::size_t n_texts = testing::kSanitized ? 3 : 12;
  for (std::size_t p = 0; p < n_texts; ++p) {
    RunOptions free = options_for(p, {.temperature = 1.0f});
    free.seed = 500 + p;
    const Completion unbound = run(free);
    // Every letter that the free text says is a trigger once, so it comes at every offset.
    for (const char letter : std::string("aeint")) {
      SamplingOptions sampling{.temperature = 1.0f};
      sampling.grammar = std::string("root ::= \"") + letter + "\" [^" + letter + "]*";
      sampling.grammar_triggers = {std::string(1, letter)};
      RunOptions options = free;
      options.sampling = sampling;
      const Completion plain = run(options);
      ASSERT_NE(plain.finish, FinishReason::kError) << plain.error.message();
      const std::size_t first = plain.text.find(letter);
      if (first != std::string::npos) {
        EXPECT_EQ(plain.text.find(letter, first + 1), std::string::npos) << plain.text;
        n_bound += plain.text != unbound.text ? 1 : 0;
      }
      // Drafts of what the text would be, bound and unbound.
      for (const Completion* guess : {&plain, &unbound}) {
        const std::vector<Token> text = whole(options, *guess);
        for (std::int32_t width = 2; width <= 9; ++width) {
          options.width = width;
          ScriptedDrafter prophet(testing::prophet(text, 100, 0, vocabulary().size()));
          ASSERT_NO_FATAL_FAILURE(expect_same(run(options, &prophet), plain));
        }
      }
    }
  }
  EXPECT_GT(n_bound, testing::kSanitized ? 2 : 10);
}

TEST_F(SamplingEnd, AnImpossibleConstraintEndsWithTheReasonAndNotUnconstrained) {
  SamplingOptions sampling{.temperature = 1.0f};
  sampling.grammar = "root ::= \"Q\" [a-z]*";
  sampling.logit_bias = {{testing::kTinyFirstByte + 'Q', -INFINITY}};
  const Completion got = run(options_for(0, sampling));
  EXPECT_EQ(got.finish, FinishReason::kError);
  EXPECT_EQ(got.text, "");
  EXPECT_FALSE(got.error.message().empty());
}

}  // namespace
}  // namespace outrider
