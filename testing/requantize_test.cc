#include "testing/requantize.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <set>
#include <string>
#include <vector>

#include "testing/gguf_damage.h"
#include "testing/gguf_file.h"
#include "testing/requantize_command.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"
#include "testing/tiny_runner.h"

namespace outrider::testing {
namespace {

class RequantizeTest : public ::testing::Test {
 protected:
  RequantizeTest() {
    TinyModelOptions options;
    options.weight_type = WeightType::kF32;
    const Status status = write_tiny_gguf(in_, options);
    EXPECT_TRUE(status.ok()) << status.message();
  }

  static ggml_type type_of(const std::string& path, const std::string& tensor) {
    const GgufReader reader = GgufReader::open(path).value();
    for (const TensorInfo& info : reader.tensors()) {
      if (info.name == tensor) return info.type;
    }
    return GGML_TYPE_COUNT;
  }

  TempDir dir_;
  const std::string in_ = dir_.file("in.gguf");
  const std::string out_ = dir_.file("out.gguf");
};

TEST_F(RequantizeTest, PureMakesEveryMatrixThatTypeAndKeepsTheNorms) {
  RequantizeOptions options;
  options.type = "q4_0";  // any case
  options.pure = true;
  int last = 0;
  int all = 0;
  const Status status = requantize_gguf(in_, out_, options, [&](int done, int total) {
    EXPECT_GE(done, last);
    last = done;
    all = total;
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(last, all);
  EXPECT_EQ(type_of(out_, "token_embd.weight"), GGML_TYPE_Q4_0);
  EXPECT_EQ(type_of(out_, "output.weight"), GGML_TYPE_Q4_0);
  EXPECT_EQ(type_of(out_, "blk.1.ffn_down.weight"), GGML_TYPE_Q4_0);
  EXPECT_EQ(type_of(out_, "output_norm.weight"), GGML_TYPE_F32);
  EXPECT_EQ(dir_.n_entries(), 2);
  Result<TinyRunner> runner = TinyRunner::load(out_);
  ASSERT_TRUE(runner.ok()) << runner.status().message();
  EXPECT_TRUE(runner->greedy({kTinyBos, 80}, 10).ok());
}

TEST_F(RequantizeTest, WithoutPureSomeMatricesMayStayBetter) {
  RequantizeOptions options;
  options.type = "Q4_0";
  ASSERT_TRUE(requantize_gguf(in_, out_, options).ok());
  EXPECT_EQ(type_of(out_, "blk.1.ffn_up.weight"), GGML_TYPE_Q4_0);
  EXPECT_NE(type_of(out_, "output.weight"), GGML_TYPE_Q4_0);
}

TEST_F(RequantizeTest, TheOutputMayHaveATypeOfItsOwn) {
  RequantizeOptions options;
  options.type = "Q8_0";
  options.output_type = "Q4_0";
  ASSERT_TRUE(requantize_gguf(in_, out_, options).ok());
  EXPECT_EQ(type_of(out_, "blk.1.ffn_up.weight"), GGML_TYPE_Q8_0);
  EXPECT_EQ(type_of(out_, "output.weight"), GGML_TYPE_Q4_0);
  EXPECT_EQ(type_of(out_, "token_embd.weight"), GGML_TYPE_Q4_0);
  options.output_type = "q4";
  const Status status = requantize_gguf(in_, out_, options);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("'q4'"), std::string::npos);
}

TEST_F(RequantizeTest, AlreadyQuantisedModelsAreTaken) {
  RequantizeOptions options;
  options.type = "Q8_0";
  ASSERT_TRUE(requantize_gguf(in_, dir_.file("q8.gguf"), options).ok());
  options.type = "Q4_0";
  options.pure = true;
  options.n_threads = 2;
  ASSERT_TRUE(requantize_gguf(dir_.file("q8.gguf"), out_, options).ok());
  EXPECT_EQ(type_of(out_, "output.weight"), GGML_TYPE_Q4_0);
}

TEST_F(RequantizeTest, EveryTypeNameIsKnownOnce) {
  const std::vector<std::string> names = requantize_types();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_GE(names.size(), 30U);
}

TEST_F(RequantizeTest, RefusesWrongUseAndSaysWhy) {
  const std::string before = read_bytes(in_);
  RequantizeOptions options;
  options.type = "Q9_Z";
  const Status unknown = requantize_gguf(in_, out_, options);
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(unknown.message().find("Q9_Z"), std::string::npos);
  EXPECT_NE(unknown.message().find("Q4_0"), std::string::npos);
  options.type = "Q4_0";
  EXPECT_EQ(requantize_gguf(in_, in_, options).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(requantize_gguf(dir_.file("missing"), out_, options).code(), StatusCode::kNotFound);
  EXPECT_EQ(requantize_gguf(in_, "/no/such/folder/x", options).code(),
            StatusCode::kInvalidArgument);
  options.n_threads = -1;
  EXPECT_EQ(requantize_gguf(in_, out_, options).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(read_bytes(in_), before);
  EXPECT_EQ(dir_.n_entries(), 1);
}

TEST_F(RequantizeTest, WhatLlamaCppRefusesComesWithItsReason) {
  RequantizeOptions options;
  options.type = "IQ2_XXS";  // needs an importance matrix
  const Status status = requantize_gguf(in_, out_, options);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("imatrix"), std::string::npos) << status.message();
  EXPECT_EQ(dir_.n_entries(), 1);
}

TEST_F(RequantizeTest, RefusesBadInputAndLeavesTheOldOutputAlone) {
  const std::string bad_folder = dir_.file("bad");
  ASSERT_EQ(mkdir(bad_folder.c_str(), 0755), 0);
  const Result<std::vector<BadModelFile>> bad = write_bad_model_files(in_, bad_folder);
  ASSERT_TRUE(bad.ok()) << bad.status().message();
  silence_llama_log();
  write_bytes(out_, "old");
  RequantizeOptions options;
  options.type = "Q4_0";
  for (const BadModelFile& file : *bad) {
    // Converting looks at one tensor at a time, so a model may lack one.
    if (file.what == "a model without a tensor that it needs") continue;
    const Status status = requantize_gguf(file.path, out_, options);
    EXPECT_FALSE(status.ok()) << file.what;
    EXPECT_NE(status.message().find(file.path), std::string::npos) << status.message();
  }
  EXPECT_EQ(read_bytes(out_), "old");
  EXPECT_EQ(dir_.n_entries(), 3);
}

TEST_F(RequantizeTest, AFullDiskIsReportedAndLeavesNothingBehind) {
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit small = old_limit;
  small.rlim_cur = 100000;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  RequantizeOptions options;
  options.type = "Q8_0";
  const Status status = requantize_gguf(in_, out_, options);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(dir_.n_entries(), 1);
}

int run(std::vector<const char*> arguments, std::string* error) {
  arguments.insert(arguments.begin(), "outrider-requantize");
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  const int code = run_requantize_command(static_cast<int>(arguments.size()), arguments.data());
  ::testing::internal::GetCapturedStdout();
  *error = ::testing::internal::GetCapturedStderr();
  return code;
}

TEST_F(RequantizeTest, TheCommandEndsWithTheContractsExitCodes) {
  std::string error;
  EXPECT_EQ(run({in_.c_str(), out_.c_str(), "--type", "Q4_0", "--pure", "--threads", "1"}, &error),
            0);
  EXPECT_EQ(error, "");
  EXPECT_EQ(run({"--help"}, &error), 0);
  EXPECT_EQ(run({"/no/such.gguf", out_.c_str(), "--type", "Q4_0"}, &error), 1);
  EXPECT_NE(error.find("/no/such.gguf"), std::string::npos);
  EXPECT_EQ(run({in_.c_str(), out_.c_str()}, &error), 2);
  EXPECT_EQ(run({in_.c_str(), out_.c_str(), "--type", "Q9_Z"}, &error), 2);
  EXPECT_EQ(run({in_.c_str(), out_.c_str(), "--type", "Q4_0", "--threads", "-1"}, &error), 2);
}

}  // namespace
}  // namespace outrider::testing
