#include "testing/widen.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "testing/gguf_damage.h"
#include "testing/gguf_file.h"
#include "testing/requantize.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"
#include "testing/tiny_runner.h"
#include "testing/widen_command.h"

namespace outrider::testing {
namespace {

TinyRunner load(const std::string& path, const TinyRunnerOptions& options = TinyRunnerOptions()) {
  Result<TinyRunner> runner = TinyRunner::load(path, options);
  EXPECT_TRUE(runner.ok()) << runner.status().message();
  if (!runner.ok()) std::abort();
  return std::move(*runner);
}

double largest_difference(const std::vector<std::vector<float>>& a,
                          const std::vector<std::vector<float>>& b) {
  double largest = a.size() == b.size() ? 0.0 : HUGE_VAL;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    for (std::size_t j = 0; j < a[i].size(); ++j) {
      largest = std::max(largest, std::fabs(static_cast<double>(a[i][j]) - b[i][j]));
    }
  }
  return largest;
}

class WidenTest : public ::testing::Test {
 protected:
  std::string write(const TinyModelOptions& options) {
    const Status status = write_tiny_gguf(dir_.file("tiny.gguf"), options);
    EXPECT_TRUE(status.ok()) << status.message();
    return dir_.file("tiny.gguf");
  }

  // Widens `path` and expects the same logits, and the same greedy text. `tolerance` is absolute;
  // logits of tiny models spread over about +-10.
  void expect_same_function(const std::string& path, int factor, double tolerance) {
    const std::string wide_path = dir_.file("wide.gguf");
    const Status status = widen_gguf(path, wide_path, factor);
    ASSERT_TRUE(status.ok()) << status.message();
    // F32 cache: what is compared is the model, not the rounding of its cache.
    TinyRunnerOptions options;
    options.kv_type = GGML_TYPE_F32;
    options.flash_attention = false;
    TinyRunner narrow = load(path, options);
    TinyRunner wide = load(wide_path, options);
    ASSERT_EQ(llama_model_n_embd(wide.model()), factor * llama_model_n_embd(narrow.model()));
    ASSERT_EQ(llama_model_n_head(wide.model()), factor * llama_model_n_head(narrow.model()));
    ASSERT_EQ(llama_model_n_head_kv(wide.model()), factor * llama_model_n_head_kv(narrow.model()));
    std::vector<Token> text = narrow.tokenize("Once upon a time", true, false);
    const std::vector<Token> tokens = narrow.greedy(text, 100).value();
    EXPECT_EQ(wide.greedy(text, 100).value(), tokens);
    text.insert(text.end(), tokens.begin(), tokens.end());
    EXPECT_LT(largest_difference(wide.logits(text).value(), narrow.logits(text).value()),
              tolerance);
  }

  TempDir dir_;
};

TEST_F(WidenTest, FloatModelsKeepTheirLogitsAndText) {
  TinyModelOptions options;
  options.weight_type = WeightType::kF32;
  for (const int factor : {2, 3, 4}) {
    SCOPED_TRACE("factor " + std::to_string(factor));
    expect_same_function(write(options), factor, 1e-3);
  }
}

TEST_F(WidenTest, GroupedQueryHeadsKeepTheirKeyValueHead) {
  TinyModelOptions options;
  options.weight_type = WeightType::kF32;
  options.n_head = 4;
  for (const int n_head_kv : {1, 2, 4}) {
    SCOPED_TRACE("key/value heads " + std::to_string(n_head_kv));
    options.n_head_kv = n_head_kv;
    expect_same_function(write(options), 4, 1e-3);
  }
}

TEST_F(WidenTest, TiedOutputBiasesRopeFactorsAndHeadSizeAreHandled) {
  TinyModelOptions options;
  options.weight_type = WeightType::kF32;
  options.tied_output = true;
  expect_same_function(write(options), 2, 1e-3);
  options.linear_biases = true;
  options.rope_factors = true;
  expect_same_function(write(options), 2, 1e-3);
  options.n_embd = 64;  // not n_head * head_size: the head size is spelled out in the metadata
  expect_same_function(write(options), 4, 1e-3);
}

TEST_F(WidenTest, QuantisedModelsKeepTheirText) {
  for (const WeightType type : {WeightType::kQ8_0, WeightType::kQ4_0}) {
    SCOPED_TRACE(weight_type_name(type));
    TinyModelOptions options;
    options.weight_type = type;
    expect_same_function(write(options), 4, 2e-2);
  }
}

// The types that can be made without an importance matrix, padded with the type's own zeros. IQ3_S
// is left out: ggml's own product for it is undefined behaviour (a signed shift) to the sanitizer.
TEST_F(WidenTest, EveryQuantisedTypeIsPaddedWithZeros) {
  TinyModelOptions options;
  options.weight_type = WeightType::kF32;
  options.n_layer = 1;
  options.n_embd = 256;  // the block of the K types
  options.n_head = 4;
  const std::string path = write(options);
  for (const std::string type :
       {"F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K_S", "Q4_K_S", "Q5_K_S",
        "Q6_K", "IQ4_NL", "IQ4_XS", "TQ1_0", "TQ2_0"}) {
    SCOPED_TRACE(type);
    RequantizeOptions requantize;
    requantize.type = type;
    requantize.pure = true;
    const Status status = requantize_gguf(path, dir_.file("typed.gguf"), requantize);
    ASSERT_TRUE(status.ok()) << status.message();
    expect_same_function(dir_.file("typed.gguf"), 4, 2e-2);
  }
}

TEST_F(WidenTest, MetadataCountsTheNewSizesAndNothingElseChanges) {
  TinyModelOptions options;
  options.n_embd = 64;  // so that key_length is written
  options.vocabulary.n_padding = 5;
  const std::string path = write(options);
  ASSERT_TRUE(widen_gguf(path, dir_.file("wide.gguf"), 3).ok());
  const GgufReader narrow = GgufReader::open(path).value();
  const GgufReader wide = GgufReader::open(dir_.file("wide.gguf")).value();
  EXPECT_EQ(wide.u32("llama.embedding_length").value(), 192U);
  EXPECT_EQ(wide.u32("llama.feed_forward_length").value(), 768U);
  EXPECT_EQ(wide.u32("llama.attention.head_count").value(), 6U);
  EXPECT_EQ(wide.u32("llama.attention.head_count_kv").value(), 3U);
  EXPECT_FLOAT_EQ(wide.f32("llama.attention.layer_norm_rms_epsilon").value(), 1e-5F / 3.0F);
  for (const char* key : {"llama.block_count", "llama.context_length", "llama.vocab_size",
                          "llama.rope.dimension_count", "llama.attention.key_length",
                          "llama.attention.value_length"}) {
    EXPECT_EQ(wide.u32(key).value(), narrow.u32(key).value()) << key;
  }
  EXPECT_EQ(wide.string("general.name").value(), "tiny widened 3x");
  EXPECT_EQ(wide.tensors().size(), narrow.tensors().size());
  EXPECT_EQ(load(dir_.file("wide.gguf")).n_vocab(), load(path).n_vocab());
}

TEST_F(WidenTest, ProgressGrowsToTheTotalAndCanStopIt) {
  const std::string path = write(TinyModelOptions());
  std::uint64_t last = 0;
  std::uint64_t all = 0;
  ASSERT_TRUE(
      widen_gguf(path, dir_.file("wide.gguf"), 2, [&](std::uint64_t done, std::uint64_t total) {
        EXPECT_GE(done, last);
        last = done;
        all = total;
        return true;
      }).ok());
  EXPECT_EQ(last, all);
  EXPECT_GT(all, 0U);

  const Status status = widen_gguf(path, dir_.file("stopped.gguf"), 2,
                                   [](std::uint64_t done, std::uint64_t) { return done == 0; });
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(dir_.n_entries(), 2);  // tiny.gguf and wide.gguf
}

TEST_F(WidenTest, RefusesFactorsOutsideTheRange) {
  const std::string path = write(TinyModelOptions());
  for (const int factor : {-1, 0, 1, 17, 1000000}) {
    EXPECT_EQ(widen_gguf(path, dir_.file("wide.gguf"), factor).code(),
              StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(dir_.n_entries(), 1);
}

TEST_F(WidenTest, RefusesToOverwriteItsInput) {
  const std::string path = write(TinyModelOptions());
  const std::string before = read_bytes(path);
  ASSERT_EQ(symlink(path.c_str(), dir_.file("link.gguf").c_str()), 0);
  EXPECT_EQ(widen_gguf(path, path, 2).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(widen_gguf(path, dir_.file("link.gguf"), 2).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(widen_gguf(dir_.path() + "/./tiny.gguf", path, 2).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(read_bytes(path), before);
}

TEST_F(WidenTest, RefusesBadInputAndLeavesTheOldOutputAlone) {
  const std::string good = write(TinyModelOptions());
  const std::string bad_folder = dir_.file("bad");
  ASSERT_EQ(mkdir(bad_folder.c_str(), 0755), 0);
  const Result<std::vector<BadModelFile>> bad = write_bad_model_files(good, bad_folder);
  ASSERT_TRUE(bad.ok()) << bad.status().message();
  silence_llama_log();
  write_bytes(dir_.file("old.gguf"), "old");
  for (const BadModelFile& file : *bad) {
    if (file.what == "a model without a tensor that it needs") continue;  // widening works
    const Status status = widen_gguf(file.path, dir_.file("old.gguf"), 2);
    EXPECT_FALSE(status.ok()) << file.what;
    EXPECT_NE(status.message().find(file.path), std::string::npos) << status.message();
  }
  const Status missing = widen_gguf(dir_.file("missing.gguf"), dir_.file("old.gguf"), 2);
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_EQ(read_bytes(dir_.file("old.gguf")), "old");
  EXPECT_EQ(dir_.n_entries(), 3);  // tiny.gguf, bad, old.gguf
}

TEST_F(WidenTest, SaysWhatItCannotWiden) {
  const std::string good = write(TinyModelOptions());
  ASSERT_TRUE(
      copy_with_string(good, dir_.file("other.gguf"), "general.architecture", "gemma").ok());
  const Status other = widen_gguf(dir_.file("other.gguf"), dir_.file("wide.gguf"), 2);
  EXPECT_EQ(other.code(), StatusCode::kUnsupported);
  EXPECT_NE(other.message().find("'gemma'"), std::string::npos) << other.message();
  EXPECT_NE(widen_gguf(good, "/no/such/folder/wide.gguf", 2).message().find("/no/such/folder"),
            std::string::npos);
}

// Stands in for a full disk: files of this process may not grow over 100 kB for a while.
TEST_F(WidenTest, AFullDiskIsReportedAndLeavesNothingBehind) {
  const std::string path = write(TinyModelOptions());
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit small = old_limit;
  small.rlim_cur = 100000;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = widen_gguf(path, dir_.file("wide.gguf"), 4);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.message();
  EXPECT_NE(status.message().find("wide.gguf"), std::string::npos);
  EXPECT_EQ(dir_.n_entries(), 1);
}

int run(std::vector<const char*> arguments, std::string* error) {
  arguments.insert(arguments.begin(), "outrider-widen");
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  const int code = run_widen_command(static_cast<int>(arguments.size()), arguments.data());
  ::testing::internal::GetCapturedStdout();
  *error = ::testing::internal::GetCapturedStderr();
  return code;
}

TEST_F(WidenTest, TheCommandEndsWithTheContractsExitCodes) {
  const std::string in = write(TinyModelOptions());
  const std::string out = dir_.file("wide.gguf");
  std::string error;
  EXPECT_EQ(run({in.c_str(), out.c_str(), "--factor", "2"}, &error), 0);
  EXPECT_EQ(error, "");  // no bar where there is no terminal
  EXPECT_EQ(load(out).n_vocab(), load(in).n_vocab());
  EXPECT_EQ(run({"--help"}, &error), 0);

  EXPECT_EQ(run({"/no/such.gguf", out.c_str(), "--factor", "2"}, &error), 1);
  EXPECT_NE(error.find("/no/such.gguf"), std::string::npos);
  EXPECT_EQ(run({in.c_str(), in.c_str(), "--factor", "2"}, &error), 1);

  EXPECT_EQ(run({}, &error), 2);
  EXPECT_EQ(run({in.c_str(), out.c_str()}, &error), 2);
  EXPECT_EQ(run({in.c_str(), out.c_str(), "--factor", "1"}, &error), 2);
  EXPECT_EQ(run({in.c_str(), out.c_str(), "--factor", "two"}, &error), 2);
  EXPECT_EQ(run({in.c_str(), out.c_str(), "--factor", "2", "--frobnicate"}, &error), 2);
  EXPECT_NE(error.find("--frobnicate"), std::string::npos);
}

// A real model, where ./dev models has put it.
TEST(RealModelWiden, SmolLM2WidenedFourfoldWritesTheSameFirst32Tokens) {
  const char* folder = std::getenv("OUTRIDER_MODELS_DIR");
  if (folder == nullptr) GTEST_SKIP() << "OUTRIDER_MODELS_DIR is not set; see ./dev models";
  const TempDir dir;
  const std::string path = std::string(folder) + "/SmolLM2-135M-Instruct-Q4_1.gguf";
  const Status status = widen_gguf(path, dir.file("wide.gguf"), 4);
  ASSERT_TRUE(status.ok()) << status.message();
  TinyRunnerOptions options;
  options.n_ctx = 128;
  std::vector<Token> expected;
  {
    TinyRunner narrow = load(path, options);
    expected = narrow.greedy(narrow.tokenize("Once upon a time", true, false), 32).value();
  }
  TinyRunner wide = load(dir.file("wide.gguf"), options);
  EXPECT_EQ(wide.greedy(wide.tokenize("Once upon a time", true, false), 32).value(), expected);
}

}  // namespace
}  // namespace outrider::testing
