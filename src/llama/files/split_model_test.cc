// A model that is split over several files is the model that it was before: what is read of it is
// read of all of them, and what is wrong with one is told before llama.cpp sees it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "llama/files/gguf_family.h"
#include "llama/files/gguf_header.h"
#include "llama/files/matrices.h"
#include "llama/files/model_file.h"
#include "testing/gguf_damage.h"
#include "testing/gguf_file.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"
#include "testing/tiny_gguf_lag.h"

namespace outrider::llama {
namespace {

namespace fs = std::filesystem;

class SplitModel : public ::testing::Test {
 protected:
  std::string whole(const testing::TinyModelOptions& options = {}) {
    const Status status = testing::write_tiny_gguf(dir_.file("whole.gguf"), options);
    EXPECT_TRUE(status.ok()) << status.message();
    return dir_.file("whole.gguf");
  }

  std::string split(const std::string& path, const std::vector<std::size_t>& cuts,
                    const std::string& name = "m") {
    const Result<std::string> first = testing::write_gguf_split(path, dir_.file(name), cuts);
    EXPECT_TRUE(first.ok()) << first.status().message();
    return first.ok() ? *first : "";
  }

  static std::vector<testing::TensorInfo> tensors_of(const std::string& path) {
    const Result<testing::GgufReader> reader = testing::GgufReader::open(path);
    EXPECT_TRUE(reader.ok());
    return reader.ok() ? reader->tensors() : std::vector<testing::TensorInfo>{};
  }

  static Status check(const std::string& path) {
    const Result<GgufHeader> header = read_gguf_header(path);
    return header.ok() ? check_is_model(path, *header) : header.status();
  }

  testing::TempDir dir_;
};

std::vector<std::string> texts_of(const std::vector<Matrix>& matrices) {
  std::vector<std::string> texts;
  for (const Matrix& m : matrices) {
    texts.push_back(m.name + " " + m.type + " " + std::to_string(m.bytes) + " " +
                    std::to_string(m.experts) + " " + std::to_string(m.experts_used) + " " +
                    std::to_string(m.own_kernels_take_it));
  }
  return texts;
}

TEST_F(SplitModel, ItsMatricesAreThoseOfAllFilesWhereverItIsCut) {
  testing::TinyModelOptions experts;
  experts.n_expert = 4;
  testing::TinyModelOptions tied;
  tied.tied_output = true;
  for (const testing::TinyModelOptions& options : {testing::TinyModelOptions(), experts, tied}) {
    const std::string path = whole(options);
    const Result<std::vector<Matrix>> matrices = read_matrices(path);
    ASSERT_TRUE(matrices.ok()) << matrices.status().message();
    const std::vector<std::string> wanted = texts_of(*matrices);
    const bool has_table = std::any_of(matrices->begin(), matrices->end(), [](const Matrix& m) {
      return m.name == "token_embd.weight";
    });
    EXPECT_EQ(has_table, options.tied_output);
    for (std::size_t cut = 0; cut <= tensors_of(path).size(); ++cut) {
      const Result<std::vector<Matrix>> got = read_matrices(split(path, {cut}));
      ASSERT_TRUE(got.ok()) << got.status().message();
      EXPECT_EQ(texts_of(*got), wanted) << "cut before tensor " << cut;
    }
    std::vector<std::size_t> each(tensors_of(path).size());
    for (std::size_t i = 0; i < each.size(); ++i) each[i] = i;
    EXPECT_EQ(texts_of(*read_matrices(split(path, each))), wanted) << "a file for each";
  }
}

// As llama-gguf-split --no-tensor-first-split writes it.
TEST_F(SplitModel, TheFirstFileMayHoldMetadataAlone) {
  const std::string path = split(whole(), {0, 5});
  const Result<GgufHeader> header = read_gguf_header(path);
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(header->n_tensors, static_cast<std::int64_t>(tensors_of(whole()).size()));
  EXPECT_EQ(header->n_splits, 3);
  EXPECT_TRUE(check(path).ok()) << check(path).message();
  const Result<std::shared_ptr<ModelFile>> file = ModelFile::load(path, 0, true, {});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Result<std::shared_ptr<ModelFile>> before = ModelFile::load(whole(), 0, true, {});
  ASSERT_TRUE(before.ok()) << before.status().message();
  EXPECT_EQ((*file)->facts().size_bytes, (*before)->facts().size_bytes);
}

TEST_F(SplitModel, WithoutAnyTensorsItIsStillNoModel) {
  const auto empty = [](gguf_context* gguf) { gguf_set_val_i32(gguf, "split.tensors.count", 0); };
  const std::string path = split(whole(), {0});
  ASSERT_TRUE(testing::copy_changed(path, dir_.file("n-00001-of-00002.gguf"), empty, "").ok());
  const Status status = check(dir_.file("n-00001-of-00002.gguf"));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("no weights"), std::string::npos) << status.message();
}

TEST_F(SplitModel, ItsPredictionLayersAreFoundInItsLastFiles) {
  testing::TinyLagOptions options;
  options.architecture = testing::TinyLagArchitecture::kHyV3;
  options.mtp = {testing::TinyHead::kEqual, testing::TinyHead::kNoise};
  const std::string path = dir_.file("mtp.gguf");
  ASSERT_TRUE(testing::write_tiny_lag(path, options).ok());
  const Result<GgufHeader> before = read_gguf_header(path);
  ASSERT_TRUE(before.ok()) << before.status().message();
  ASSERT_EQ(before->n_prediction, 2);
  ASSERT_GT(before->prediction_bytes, 0U);
  const std::size_t n = tensors_of(path).size();
  for (std::size_t cut = 0; cut <= n; ++cut) {
    const Result<GgufHeader> got = read_gguf_header(split(path, {cut}));
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(got->n_prediction, 2) << "cut before tensor " << cut;
    EXPECT_EQ(got->prediction_bytes, before->prediction_bytes) << "cut before tensor " << cut;
  }
  const std::string three = split(path, {n / 3, n - 1}, "three");
  EXPECT_EQ(read_gguf_header(three)->n_prediction, 2);
  fs::remove(dir_.file("three-00002-of-00003.gguf"));
  EXPECT_EQ(read_gguf_header(three)->n_prediction, 0) << "and no error: the check tells";
  EXPECT_EQ(check(three).code(), StatusCode::kNotFound);
}

TEST_F(SplitModel, ItsFamilyHasTheSizeOfAllFiles) {
  const std::string path = split(whole(), {4});
  const Result<GgufFamily> family = read_gguf_family(path);
  ASSERT_TRUE(family.ok()) << family.status().message();
  EXPECT_EQ(family->n_parameters, read_gguf_family(whole())->n_parameters);
  EXPECT_EQ(family->file_bytes,
            fs::file_size(path) + fs::file_size(dir_.file("m-00002-of-00002.gguf")));
}

TEST_F(SplitModel, WhichFilesItHasFollowsFromTheNameAndTheHeader) {
  const std::string path = split(whole(), {4, 8});
  EXPECT_EQ(*files_of_model(path), split_files(path, 3));
  EXPECT_EQ(files_of_model(path)->size(), 3U);
  EXPECT_EQ(*files_of_model(whole()), std::vector<std::string>{whole()});
  EXPECT_EQ(*files_of_model("no.gguf"), std::vector<std::string>{"no.gguf"}) << "nothing is read";
  const std::string named = dir_.file("joined-00001-of-00003.gguf");
  fs::copy_file(whole(), named);
  EXPECT_EQ(*files_of_model(named), std::vector<std::string>{named}) << "the header decides";
  EXPECT_EQ(split_files(path, 4), std::vector<std::string>{path}) << "named for three";
}

TEST_F(SplitModel, WhatIsWrongWithAFileOfItIsTold) {
  const auto expect_says = [this](const std::string& path, StatusCode code, const char* words) {
    const Status status = check(path);
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    EXPECT_FALSE(ModelFile::load(path, 0, true, {}).ok());
  };
  const std::string path = split(whole(), {4, 8});
  const std::string second = dir_.file("m-00002-of-00003.gguf");
  EXPECT_TRUE(check(path).ok()) << check(path).message();
  expect_says(second, StatusCode::kInvalidArgument, "is file 2 of the 3");
  fs::copy_file(path, dir_.file("renamed.gguf"));
  expect_says(dir_.file("renamed.gguf"), StatusCode::kInvalidArgument, "-00001-of-");

  fs::rename(second, dir_.file("kept"));
  expect_says(path, StatusCode::kNotFound, "m-00002-of-00003.gguf");
  EXPECT_EQ(read_matrices(path).status().code(), StatusCode::kNotFound);
  fs::copy_file(dir_.file("m-00003-of-00003.gguf"), second);
  expect_says(path, StatusCode::kDataLoss, "is not file 2");
  fs::remove(second);
  ASSERT_TRUE(testing::copy_truncated(dir_.file("kept"), second, 4000).ok());
  expect_says(path, StatusCode::kDataLoss, "m-00002-of-00003.gguf");
  // llama.cpp aborts on it.
  const auto wide = [](gguf_context* gguf) { gguf_set_val_u32(gguf, "split.no", 1); };
  ASSERT_TRUE(testing::copy_changed(dir_.file("kept"), second, wide, "").ok());
  expect_says(path, StatusCode::kDataLoss, "split.no");
}

}  // namespace
}  // namespace outrider::llama
