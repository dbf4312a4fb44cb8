#include "testing/tiny_gguf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "testing/chi_square.h"
#include "testing/gguf_file.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_runner.h"

namespace outrider::testing {
namespace {

// FNV-1a: enough to notice a changed byte.
std::uint64_t checksum(const std::string& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

TinyRunner load(const std::string& path) {
  Result<TinyRunner> runner = TinyRunner::load(path);
  EXPECT_TRUE(runner.ok()) << runner.status().message();
  if (!runner.ok()) std::abort();
  return std::move(*runner);
}

class TinyGgufTest : public ::testing::TestWithParam<WeightType> {
 protected:
  TinyModelOptions options() const {
    TinyModelOptions options;
    options.weight_type = GetParam();
    return options;
  }
  TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(Types, TinyGgufTest,
                         ::testing::Values(WeightType::kF32, WeightType::kQ8_0, WeightType::kQ4_0),
                         [](const ::testing::TestParamInfo<WeightType>& kind) {
                           return weight_type_name(kind.param);
                         });

TEST_P(TinyGgufTest, TheSameOptionsGiveTheSameBytesOnEveryMachine) {
  const std::string path = dir_.file("tiny.gguf");
  ASSERT_TRUE(write_tiny_gguf(path, options()).ok());
  const std::uint64_t expected = GetParam() == WeightType::kF32    ? 0x4cc14461dde1fae4ULL
                                 : GetParam() == WeightType::kQ8_0 ? 0xeac8f63f1e5b5802ULL
                                                                   : 0x5917c62e7854554bULL;
  // After a change on purpose: put the new value here, and say so in the change.
  EXPECT_EQ(checksum(read_bytes(path)), expected);
}

TEST_P(TinyGgufTest, OtherSeedsGiveOtherWeightsAndFilesStaySmall) {
  TinyModelOptions other = options();
  other.seed = 2;
  ASSERT_TRUE(write_tiny_gguf(dir_.file("a.gguf"), options()).ok());
  ASSERT_TRUE(write_tiny_gguf(dir_.file("b.gguf"), other).ok());
  const std::string a = read_bytes(dir_.file("a.gguf"));
  EXPECT_NE(a, read_bytes(dir_.file("b.gguf")));
  EXPECT_LT(a.size(), 1600000U);
}

struct Liveliness {
  double entropy = 0.0;        // nats, mean over positions
  double top = 0.0;            // mean probability of the most likely token
  double end = 0.0;            // mean probability of all end-of-generation tokens
  double largest_never = 0.0;  // largest probability of a token that must never come
};

Liveliness measure(const std::vector<std::vector<float>>& rows, const llama_vocab* vocab) {
  Liveliness sum;
  for (const std::vector<float>& row : rows) {
    const double largest = *std::max_element(row.begin(), row.end());
    double total = 0.0;
    for (const float value : row) total += std::exp(value - largest);
    for (std::size_t id = 0; id < row.size(); ++id) {
      const double p = std::exp(row[id] - largest) / total;
      const Token token = static_cast<Token>(id);
      if (p > 0.0) sum.entropy -= p * std::log(p);
      if (llama_vocab_is_eog(vocab, token)) {
        sum.end += p;
      } else if (token == kTinyUnknown || token == kTinyBos || token == kTinyPad ||
                 token == kTinyTurnStart) {
        sum.largest_never = std::max(sum.largest_never, p);
      }
    }
    sum.top += 1.0 / total;
  }
  const double n = static_cast<double>(rows.size());
  return {sum.entropy / n, sum.top / n, sum.end / n, sum.largest_never};
}

// Bounds are wide around what was measured (tiny_gguf.h); they keep the models useful, not equal.
TEST_P(TinyGgufTest, TextIsNeitherConstantNorNoise) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    TinyModelOptions model = options();
    model.seed = seed;
    const std::string path = dir_.file("tiny.gguf");
    ASSERT_TRUE(write_tiny_gguf(path, model).ok());
    TinyRunner runner = load(path);
    std::vector<Token> text = runner.tokenize("Once upon a time", true, false);
    const Result<std::vector<Token>> tokens = runner.greedy(text, 200);
    ASSERT_TRUE(tokens.ok()) << tokens.status().message();
    std::set<std::pair<Token, Token>> pairs;
    for (std::size_t i = 1; i < tokens->size(); ++i) pairs.insert({(*tokens)[i - 1], (*tokens)[i]});
    EXPECT_GE(std::set<Token>(tokens->begin(), tokens->end()).size(), 30U) << "seed " << seed;
    EXPECT_GE(pairs.size(), 70U) << "seed " << seed;

    text.insert(text.end(), tokens->begin(), tokens->end());
    const Result<std::vector<std::vector<float>>> rows = runner.logits(text);
    ASSERT_TRUE(rows.ok());
    const Liveliness result = measure(*rows, runner.vocab());
    EXPECT_GT(result.entropy, 1.5) << "seed " << seed;  // nats; uniform is 5.7
    EXPECT_LT(result.entropy, 4.0) << "seed " << seed;
    EXPECT_LT(result.top, 0.6) << "seed " << seed;
    EXPECT_LT(result.end, 1e-4) << "seed " << seed;
    EXPECT_LT(result.largest_never, 1e-6) << "seed " << seed;
  }
}

TEST_P(TinyGgufTest, TheEndComesNowAndThenWithALargerBias) {
  double end[2] = {};
  for (int i = 0; i < 2; ++i) {
    TinyModelOptions model = options();
    model.eos_bias = i == 0 ? -5.0F : 0.0F;
    ASSERT_TRUE(write_tiny_gguf(dir_.file("tiny.gguf"), model).ok());
    TinyRunner runner = load(dir_.file("tiny.gguf"));
    std::vector<Token> text = runner.tokenize("Once upon a time", true, false);
    const Result<std::vector<Token>> tokens = runner.greedy(text, 100);
    ASSERT_TRUE(tokens.ok());
    text.insert(text.end(), tokens->begin(), tokens->end());
    end[i] = measure(runner.logits(text).value(), runner.vocab()).end;
  }
  EXPECT_LT(end[0], 2e-3);
  EXPECT_GT(end[1], 5e-3);
}

TEST(TinyGguf, EveryShapeThatItOffersLoadsAndRuns) {
  const TempDir dir;
  const auto runs = [&](const TinyModelOptions& options, const char* what) {
    const Status status = write_tiny_gguf(dir.file("tiny.gguf"), options);
    ASSERT_TRUE(status.ok()) << what << ": " << status.message();
    TinyRunner runner = load(dir.file("tiny.gguf"));
    const Result<std::vector<Token>> tokens = runner.greedy({kTinyBos, 80, 90}, 20);
    ASSERT_TRUE(tokens.ok()) << what << ": " << tokens.status().message();
    EXPECT_GT(std::set<Token>(tokens->begin(), tokens->end()).size(), 2U) << what;
  };
  TinyModelOptions options;
  options.n_head_kv = 2;
  runs(options, "as many key/value heads as heads");
  options = TinyModelOptions();
  options.n_embd = 64;
  options.n_head = 3;
  options.n_head_kv = 3;
  runs(options, "heads that are wider than the stream");
  options = TinyModelOptions();
  options.tied_output = true;
  options.linear_biases = true;
  options.rope_factors = true;
  runs(options, "tied output, biases and rope factors");
  options = TinyModelOptions();
  options.n_layer = 1;
  options.head_size = 32;
  options.n_ff = 64;
  runs(options, "one small layer");
  options = TinyModelOptions();
  options.vocabulary.tokenizer = TinyTokenizer::kBpe;
  options.vocabulary.n_padding = 100;
  runs(options, "BPE with padding");
  options = TinyModelOptions();
  options.vocabulary.pieces = {};
  options.vocabulary.rotate_bytes = 13;
  options.vocabulary.swaps = {{3, 4}, {200, 201}};
  runs(options, "another vocabulary");
}

TEST(TinyGguf, OtherArchitecturesLoadAndWriteLivelyText) {
  const TempDir dir;
  for (const TinyArchitecture architecture :
       {TinyArchitecture::kSlidingWindow, TinyArchitecture::kShortConv, TinyArchitecture::kMamba}) {
    SCOPED_TRACE(tiny_architecture_name(architecture));
    const std::string path = dir.file("tiny.gguf");
    ASSERT_TRUE(write_tiny_gguf(path, {.architecture = architecture, .n_layer = 4}).ok());
    TinyRunner runner = load(path);
    std::vector<Token> text = runner.tokenize("Once upon a time", true, false);
    const Result<std::vector<Token>> tokens = runner.greedy(text, 200);
    ASSERT_TRUE(tokens.ok()) << tokens.status().message();
    EXPECT_GE(std::set<Token>(tokens->begin(), tokens->end()).size(), 20U);
    text.insert(text.end(), tokens->begin(), tokens->end());
    const Liveliness result = measure(runner.logits(text).value(), runner.vocab());
    EXPECT_GT(result.entropy, 1.0);
    EXPECT_LT(result.entropy, 5.0);
    EXPECT_LT(result.largest_never, 1e-3);
  }
  for (const TinyModelOptions& bad :
       {TinyModelOptions{.architecture = TinyArchitecture::kMamba, .tied_output = true},
        TinyModelOptions{.architecture = TinyArchitecture::kSlidingWindow, .n_head = 4},
        TinyModelOptions{.architecture = TinyArchitecture::kSlidingWindow, .sliding_window = 0}}) {
    EXPECT_EQ(write_tiny_gguf(dir.file("bad.gguf"), bad).code(), StatusCode::kInvalidArgument);
  }
}

TEST(TinyGguf, AMixtureOfExpertsLoadsAndWritesLivelyText) {
  const TempDir dir;
  const std::string path = dir.file("tiny.gguf");
  ASSERT_TRUE(write_tiny_gguf(path, {.n_expert = 6, .n_expert_used = 2}).ok());
  TinyRunner runner = load(path);
  const Result<std::vector<Token>> tokens =
      runner.greedy(runner.tokenize("Once upon a time", true, false), 200);
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  EXPECT_GE(std::set<Token>(tokens->begin(), tokens->end()).size(), 20U);
  for (const TinyModelOptions& bad :
       {TinyModelOptions{.n_expert = 2, .n_expert_used = 3}, TinyModelOptions{.n_expert = 300},
        TinyModelOptions{.architecture = TinyArchitecture::kShortConv, .n_expert = 2}}) {
    EXPECT_EQ(write_tiny_gguf(dir.file("bad.gguf"), bad).code(), StatusCode::kInvalidArgument);
  }
}

TEST(TinyGguf, RefusesShapesThatLlamaCppCouldNotLoadAndNamesTheOption) {
  const TempDir dir;
  const auto refused = [&](const TinyModelOptions& options, const std::string& name) {
    const Status status = write_tiny_gguf(dir.file("tiny.gguf"), options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  };
  TinyModelOptions options;
  options.n_embd = 100;
  refused(options, "n_embd");
  options = TinyModelOptions();
  options.n_head_kv = 3;
  refused(options, "n_head_kv");
  options = TinyModelOptions();
  options.n_layer = 0;
  refused(options, "n_layer");
  options = TinyModelOptions();
  options.n_ff = 16;
  refused(options, "n_ff");
  options = TinyModelOptions();
  options.head_size = 63;
  refused(options, "head_size");
  options = TinyModelOptions();
  options.noise = std::nanf("");
  refused(options, "noise");
  EXPECT_EQ(dir.n_entries(), 0);
}

TEST(TinyGguf, AFolderThatIsNotThereIsAnErrorThatNamesTheFile) {
  const Status status = write_tiny_gguf("/no/such/folder/tiny.gguf", TinyModelOptions());
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("/no/such/folder/tiny.gguf"), std::string::npos);
}

TEST(TinyGguf, VocabularyIsWhatLlamaCppReads) {
  const TempDir dir;
  for (const TinyTokenizer tokenizer : {TinyTokenizer::kSpm, TinyTokenizer::kBpe}) {
    TinyModelOptions options;
    options.vocabulary.tokenizer = tokenizer;
    options.vocabulary.n_padding = 2;
    ASSERT_TRUE(write_tiny_gguf(dir.file("tiny.gguf"), options).ok());
    const TinyRunner runner = load(dir.file("tiny.gguf"));
    const TinyVocabulary vocabulary = make_tiny_vocabulary(options.vocabulary).value();
    ASSERT_EQ(runner.n_vocab(), vocabulary.size());
    for (Token id = 0; id < runner.n_vocab(); ++id) {
      EXPECT_EQ(runner.detokenize({id}), vocabulary.tokens[id].bytes) << id;
    }
    EXPECT_EQ(llama_vocab_bos(runner.vocab()), kTinyBos);
    EXPECT_EQ(llama_vocab_eos(runner.vocab()), kTinyEos);
    EXPECT_EQ(llama_vocab_eot(runner.vocab()), kTinyTurnEnd);
    EXPECT_EQ(llama_vocab_pad(runner.vocab()), kTinyPad);
    EXPECT_TRUE(llama_vocab_is_eog(runner.vocab(), kTinyTurnEnd));
    EXPECT_FALSE(llama_vocab_is_eog(runner.vocab(), kTinyTurnStart));
    EXPECT_TRUE(llama_vocab_get_add_bos(runner.vocab()));
    ASSERT_NE(llama_model_chat_template(runner.model(), nullptr), nullptr);
    EXPECT_EQ(llama_model_chat_template(runner.model(), nullptr), tiny_chat_template());
    EXPECT_EQ(runner.tokenize("<|im_start|>user\n", false, true).front(), kTinyTurnStart);
  }
}

// Any bytes, but no space: see tiny_vocabulary.h.
std::string random_bytes(std::mt19937_64& random) {
  std::string bytes;
  for (std::size_t n = 1 + random() % 60; n > 0; --n) {
    const char c = static_cast<char>(random() & 0xff);
    if (c != ' ') bytes += c;
  }
  return bytes;
}

// Whole characters of one to four bytes, spaces among them.
std::string random_text(std::mt19937_64& random) {
  const std::string characters[] = {" ", "a", "T",  "\n", "\t", "é",
                                    "ü", "€", "日", "本", "😀",  "</s>"};
  std::string text;
  for (std::size_t n = 1 + random() % 40; n > 0; --n) {
    text += characters[random() % std::size(characters)];
  }
  return text;
}

TEST(TinyGguf, SpmTurnsBytesAndTextIntoTokensAndBack) {
  const TempDir dir;
  ASSERT_TRUE(write_tiny_gguf(dir.file("tiny.gguf"), TinyModelOptions()).ok());
  const TinyRunner runner = load(dir.file("tiny.gguf"));
  const auto there_and_back = [&](const std::string& text) {
    return runner.detokenize(runner.tokenize(text, false, false));
  };
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    EXPECT_EQ(there_and_back(text), text);
  }
  for (const std::string& text : {std::string(" leading and  two  spaces "), std::string("a\0b", 3),
                                  std::string("\xff\xfe\xc3(\xe6\x97|cut: \xf0\x9f\x98"),
                                  std::string("The end of the 日本 story: naïve 😀😀 and\n\n")}) {
    EXPECT_EQ(there_and_back(text), text);
  }
  std::mt19937_64 random(test_seed(20260101));
  for (int i = 0; i < 300; ++i) {
    const std::string bytes = random_bytes(random);
    if (bytes.find("\xe2\x96\x81") == std::string::npos) {
      EXPECT_EQ(there_and_back(bytes), bytes);
    }
    const std::string text = random_text(random);
    EXPECT_EQ(there_and_back(text), text);
  }
}

// Pinned, so that tests which meet it know where it comes from.
TEST(TinyGguf, SpmConfusesTheSpaceMarkerWithSpacesAsTheHeaderSays) {
  const TempDir dir;
  ASSERT_TRUE(write_tiny_gguf(dir.file("tiny.gguf"), TinyModelOptions()).ok());
  const TinyRunner runner = load(dir.file("tiny.gguf"));
  EXPECT_EQ(runner.detokenize(runner.tokenize("▁", false, false)), " ");
  EXPECT_EQ(runner.detokenize(runner.tokenize("\xe3 x", false, false)), "\xe3▁x");
}

TEST(TinyGguf, MergedPiecesAreUsedWhenTextIsTokenised) {
  const TempDir dir;
  for (const TinyTokenizer tokenizer : {TinyTokenizer::kSpm, TinyTokenizer::kBpe}) {
    TinyModelOptions options;
    options.vocabulary.tokenizer = tokenizer;
    ASSERT_TRUE(write_tiny_gguf(dir.file("tiny.gguf"), options).ok());
    const TinyRunner runner = load(dir.file("tiny.gguf"));
    for (const std::string& text : std::vector<std::string>{" the", " and", "日本", "###"}) {
      const std::vector<Token> tokens = runner.tokenize(text, false, false);
      ASSERT_EQ(tokens.size(), 1U) << text;
      EXPECT_GE(tokens[0], kTinyFirstPiece) << text;
    }
  }
}

TEST(TinyGguf, BpeTurnsValidTextIntoTokensAndBack) {
  const TempDir dir;
  TinyModelOptions options;
  options.vocabulary.tokenizer = TinyTokenizer::kBpe;
  ASSERT_TRUE(write_tiny_gguf(dir.file("tiny.gguf"), options).ok());
  const TinyRunner runner = load(dir.file("tiny.gguf"));
  const std::string text = "The end of the 日本 story: naïve 😀😀 ▁ and\n\n  two  spaces\t1234 ";
  EXPECT_EQ(runner.detokenize(runner.tokenize(text, false, false)), text);
}

}  // namespace
}  // namespace outrider::testing
