// LoRA adapters on tiny models: an adapter changes what the model says, and one that is no adapter,
// or another model's, is refused with its name.
#include "llama/files/adapters.h"

#include <gtest/gtest.h>

#include <cstring>

#include "llama/open_target.h"
#include "testing/gguf_damage.h"
#include "testing/gguf_file.h"
#include "testing/llama_fixture.h"
#include "testing/llama_open_target.h"
#include "testing/llama_trees.h"
#include "testing/sanitized.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"
#include "testing/tiny_weights.h"

namespace outrider::llama {
namespace {

using testing::Row;
using testing::TensorInfo;

// What batches of an opened model really do.
struct OpenedWidths : testing::OpenTargetTest {
  using OpenTargetTest::first_inexact;
};

class AdaptersTest : public ::testing::Test {
 protected:
  AdaptersTest() {
    EXPECT_TRUE(testing::write_tiny_gguf(dir_.file("model.gguf"), {}).ok());
    EXPECT_TRUE(testing::write_tiny_gguf(dir_.file("other.gguf"),
                                         {.architecture = testing::TinyArchitecture::kMamba})
                    .ok());
  }

  // An adapter for the queries of the first layer, which are n_in to n_out.
  std::string adapter(const std::string& name, float size, std::int64_t n_in = 128,
                      std::int64_t n_out = 128, const char* type = "adapter",
                      const std::string& matrix = "attn_q", std::int64_t rank = 4) {
    const testing::GgufHandle metadata(gguf_init_empty());
    gguf_set_val_str(metadata.get(), "general.type", type);
    gguf_set_val_str(metadata.get(), "general.architecture", "llama");
    gguf_set_val_str(metadata.get(), "adapter.type", "lora");
    gguf_set_val_f32(metadata.get(), "adapter.lora.alpha", 4.0f);
    const std::vector<TensorInfo> tensors = {{.name = "blk.0." + matrix + ".weight.lora_a",
                                              .type = GGML_TYPE_F32,
                                              .shape = {n_in, rank}},
                                             {.name = "blk.0." + matrix + ".weight.lora_b",
                                              .type = GGML_TYPE_F32,
                                              .shape = {rank, n_out}}};
    const testing::TensorSource source = [&](std::size_t index, std::vector<std::uint8_t>& data) {
      std::vector<float> values(tensors[index].bytes() / sizeof(float));
      const std::uint64_t key = testing::tensor_key(5, tensors[index].name);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = size * static_cast<float>(testing::tiny_gaussian(key, i));
      }
      data.resize(tensors[index].bytes());
      std::memcpy(data.data(), values.data(), data.size());
      return Status();
    };
    const std::string path = dir_.file(name);
    const Status status = testing::write_gguf(path, metadata.get(), tensors, source, false);
    EXPECT_TRUE(status.ok()) << status.message();
    return path;
  }

  // A model with the first layer's ffn_up in NVFP4, all zeros.
  void write_nvfp4(const std::string& name, bool scales) {
    ASSERT_TRUE(testing::write_tiny_gguf(dir_.file("q8.gguf"), {.weight_scales = scales}).ok());
    const Result<testing::GgufReader> from = testing::GgufReader::open(dir_.file("q8.gguf"));
    ASSERT_TRUE(from.ok());
    std::vector<TensorInfo> tensors = from->tensors();
    for (TensorInfo& tensor : tensors) {
      if (tensor.name == "blk.0.ffn_up.weight") tensor.type = GGML_TYPE_NVFP4;
    }
    const testing::TensorSource source = [&](std::size_t i, std::vector<std::uint8_t>& data) {
      if (tensors[i].type != GGML_TYPE_NVFP4) return from->read_tensor(i, data);
      data.assign(tensors[i].bytes(), 0);
      return Status();
    };
    const Status status =
        testing::write_gguf(dir_.file(name), from->metadata(), tensors, source, false);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  ModelOptions options(std::vector<std::string> lora, const std::string& model = "model.gguf") {
    ModelOptions o;
    o.path = dir_.file(model);
    o.n_ctx = 256;
    o.n_threads = 1;
    o.n_gpu_layers = 0;
    o.lora = std::move(lora);
    return o;
  }

  Result<std::unique_ptr<LlamaModel>> open(std::vector<std::string> lora,
                                           const std::string& model = "model.gguf") {
    return open_draft(options(std::move(lora), model), {});
  }

  static Row row_after_a_text(LlamaModel& model) {
    Row row;
    for (const Token token : {1, 70, 80, 90, 100}) row = testing::step(model, 0, token);
    return row;
  }

  Row row(std::vector<std::string> lora) {
    Result<std::unique_ptr<LlamaModel>> opened = open(std::move(lora));
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? row_after_a_text(**opened) : Row();
  }

  testing::TempDir dir_;
};

TEST_F(AdaptersTest, AnAdapterChangesWhatTheModelSays) {
  const Row without = row({});
  const std::string one = adapter("one.gguf", 0.2f);
  EXPECT_NE(row({one}), without);
  EXPECT_NE(row({one, adapter("two.gguf", 0.3f)}), row({one}));
  EXPECT_EQ(row({adapter("nothing.gguf", 0.0f)}), without) << "zeros add nothing";
}

TEST_F(AdaptersTest, TheVerdictIsTheAdaptedModels) {
  TargetOptions target;
  target.widest = 4;
  target.probe_budget_ms = 300;
  target.cache_folder = dir_.file("cache");
  const std::string path = adapter("one.gguf", 0.2f);
  Result<OpenedTarget> plain = open_target(options({}), {}, target);
  Result<OpenedTarget> adapted = open_target(options({path}), {}, target);
  ASSERT_TRUE(plain.ok() && adapted.ok());
  EXPECT_FALSE(adapted->probe_cached) << "the plain model's verdict is another";
  EXPECT_NE(row_after_a_text(*adapted->model), row_after_a_text(*plain->model));
  adapted = open_target(options({path}), {}, target);
  ASSERT_TRUE(adapted.ok());
  EXPECT_TRUE(adapted->probe_cached);
}

// What an adapter adds is multiplied by llama.cpp's kernels, whatever multiplies the weights: on an
// x86-64 those take several rows at once where the rank is a multiple of 4, and then add in another
// order. So a short probe does not do, nor fewer threads than were asked for.
TEST_F(AdaptersTest, TheVerdictIsWhatTheAdaptedModelDoes) {
  TargetOptions target;
  target.widest = testing::kSanitized ? 4 : 16;
  target.probe_budget_ms = 1e6;  // all of it, whatever the machine's load
  target.cache_folder = dir_.file("cache");
  for (const std::int64_t rank : {3, 4}) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    const std::string path = adapter("one.gguf", 0.2f, 128, 128, "adapter", "attn_q", rank);
    ModelOptions with = options({path});
    with.n_ctx = 1024;
    const Result<OpenedTarget> adapted = open_target(with, {}, target);
    ASSERT_TRUE(adapted.ok()) << adapted.status().message();
    const Exactness& exactness = adapted->exactness;
    const bool exact = exactness.kind == Exactness::Kind::kExact;
    EXPECT_EQ(OpenedWidths::first_inexact(*adapted->model, target.widest),
              (exact ? target.widest : exactness.width) + 1)
        << exactness.verdict() << ": " << exactness.reason;
    EXPECT_EQ(adapted->model->settings().cores, threads::Cores::kAsked);
    EXPECT_EQ(adapted->settings.cores, threads::Cores::kAsked);
    // A short probe ends at pieces of 65 tokens.
    if (exact && exactness.coverage.find("differ") == std::string::npos) {
      EXPECT_EQ(adapted->longest_piece, 512) << exactness.coverage;
    }
  }
}

TEST_F(AdaptersTest, WhatIsNoAdapterOfThisModelIsRefusedByName) {
  const std::string good = adapter("good.gguf", 0.2f);
  testing::write_bytes(dir_.file("cut.gguf"), testing::read_bytes(good).substr(0, 900));
  testing::write_bytes(dir_.file("text.gguf"), "this is not a GGUF file");
  const std::pair<std::string, StatusCode> wrong[] = {
      {dir_.file("missing.gguf"), StatusCode::kNotFound},
      {dir_.file("model.gguf"), StatusCode::kInvalidArgument},
      {dir_.file("text.gguf"), StatusCode::kInvalidArgument},
      {dir_.file("cut.gguf"), StatusCode::kDataLoss},
      {adapter("shape.gguf", 0.2f, 64, 128), StatusCode::kInvalidArgument},
      {adapter("kind.gguf", 0.2f, 128, 128, "model"), StatusCode::kInvalidArgument}};
  for (const auto& [path, code] : wrong) {
    const Status status = open({path}).status();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
  }
  EXPECT_FALSE(open({good}, "other.gguf").ok()) << "of another architecture";
  EXPECT_TRUE(open({good}).ok());
}

// llama.cpp aborts in the first evaluation otherwise.
TEST_F(AdaptersTest, AFeedForwardMatrixInNvfp4WithAFactorTakesNoAdapter) {
  const std::string up = adapter("up.gguf", 0.2f, 128, 256, "adapter", "ffn_up");
  const std::string queries = adapter("queries.gguf", 0.2f);
  for (const bool scales : {false, true}) {
    write_nvfp4("nvfp4.gguf", scales);
    EXPECT_TRUE(open({queries}, "nvfp4.gguf").ok());
    const Status status = open({queries, up}, "nvfp4.gguf").status();
    EXPECT_EQ(status.ok(), !scales) << status.message();
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.message().find("'" + up + "' changes blk.0.ffn_up.weight"), std::string::npos)
        << status.message();
  }
  EXPECT_TRUE(open({up}).ok());
}

}  // namespace
}  // namespace outrider::llama
