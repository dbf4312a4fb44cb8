#include "llama/files/gguf_header.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gguf.h"
#include "testing/gguf_damage.h"
#include "testing/gguf_file.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::llama {
namespace {

// A tiny model's file that says that it is of another architecture, and of another shape.
class GgufHeaderTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(testing::write_tiny_gguf(plain_, {}).ok()); }

  GgufHeader said(const std::string& architecture,
                  const std::vector<std::pair<std::string, std::uint32_t>>& numbers,
                  const std::string& layers = "") {
    const std::string path = dir_.file("said.gguf");
    const auto change = [&](gguf_context* gguf) {
      gguf_set_val_str(gguf, "general.architecture", architecture.c_str());
      for (const auto& [key, value] : numbers) {
        gguf_set_val_u32(gguf, (architecture + "." + key).c_str(), value);
      }
      if (layers.empty()) return;
      std::vector<std::int8_t> windows;
      for (const char layer : layers) windows.push_back(layer == 'w' ? 1 : 0);
      gguf_set_arr_data(gguf, (architecture + ".attention.sliding_window_pattern").c_str(),
                        GGUF_TYPE_BOOL, windows.data(), windows.size());
    };
    EXPECT_TRUE(testing::copy_changed(plain_, path, change, "").ok());
    const Result<GgufHeader> header = read_gguf_header(path);
    EXPECT_TRUE(header.ok()) << header.status().message();
    return header.ok() ? *header : GgufHeader();
  }

  // "wwf" with 3, 'n' of them.
  static std::string every(std::size_t period, std::size_t n) {
    std::string layers;
    for (std::size_t i = 1; i <= n; ++i) layers += i % period == 0 ? 'f' : 'w';
    return layers;
  }

  testing::TempDir dir_;
  const std::string plain_ = dir_.file("plain.gguf");
};

// Sizes of the real models: E2B, and E4B of the generation before.
TEST_F(GgufHeaderTest, LayersThatUseAnothersCellsTakeNone) {
  const GgufHeader gemma4 = said("gemma4",
                                 {{"block_count", 35},
                                  {"embedding_length", 1536},
                                  {"attention.head_count", 8},
                                  {"attention.head_count_kv", 1},
                                  {"attention.key_length", 512},
                                  {"attention.value_length", 512},
                                  {"attention.key_length_swa", 256},
                                  {"attention.value_length_swa", 256},
                                  {"attention.sliding_window", 512},
                                  {"attention.shared_kv_layers", 20}},
                                 every(5, 35));
  EXPECT_EQ(gemma4.k_elements(), 12U * 256 + 3U * 512);
  EXPECT_EQ(gemma4.v_elements(), 12U * 256 + 3U * 512);
  ASSERT_EQ(gemma4.n_head_kv.size(), 35U);
  EXPECT_EQ(gemma4.n_head_kv[14], 1);
  EXPECT_EQ(gemma4.n_head_kv[15], 0);
  const std::vector<std::pair<std::string, std::uint32_t>> of_gemma3n = {
      {"block_count", 35},
      {"embedding_length", 2048},
      {"attention.head_count", 8},
      {"attention.head_count_kv", 2},
      {"attention.key_length", 256},
      {"attention.value_length", 256},
      {"attention.sliding_window", 512}};
  EXPECT_EQ(said("gemma3n", of_gemma3n).k_elements(), 20U * 2 * 256);
  EXPECT_EQ(said("gemma3", of_gemma3n).k_elements(), 35U * 2 * 256);
}

TEST_F(GgufHeaderTest, EachLayerTakesHeadsOfItsOwnSize) {
  const std::vector<std::pair<std::string, std::uint32_t>> sizes = {
      {"block_count", 6},
      {"embedding_length", 512},
      {"attention.head_count", 4},
      {"attention.head_count_kv", 2},
      {"attention.key_length", 64},
      {"attention.value_length", 96},
      {"attention.key_length_swa", 128},
      {"attention.value_length_swa", 32},
      {"attention.sliding_window", 512}};
  const GgufHeader listed = said("gemma4", sizes, "wwfwwf");
  EXPECT_EQ(listed.k_elements(), 2U * (4 * 128 + 2 * 64));
  EXPECT_EQ(listed.v_elements(), 2U * (4 * 32 + 2 * 96));
  const GgufHeader by_default = said("gpt-oss", sizes);
  EXPECT_EQ(by_default.k_elements(), 2U * (3 * 128 + 3 * 64));
  const GgufHeader unknown = said("of-tomorrow", sizes);
  EXPECT_EQ(unknown.k_elements(), 2U * 6 * 128) << "an upper bound";
  EXPECT_EQ(unknown.v_elements(), 2U * 6 * 96) << "an upper bound";
}

// As llama-hparams.cpp computes them, for 4 sequences: once each, or with the snapshots.
TEST_F(GgufHeaderTest, StatesOfRecurrentLayersAreCounted) {
  std::vector<std::pair<std::string, std::uint32_t>> sizes = {
      {"block_count", 8},           {"embedding_length", 2048},
      {"attention.head_count", 16}, {"attention.head_count_kv", 2},
      {"ssm.conv_kernel", 4},       {"ssm.inner_size", 4096},
      {"ssm.state_size", 128},      {"ssm.group_count", 16},
      {"rope.dimension_count", 128}};
  const std::uint64_t scan = 4 * (3 * (4096 + 2 * 16 * 128) + 128 * 4096);
  EXPECT_EQ(said("qwen35", sizes).states.bytes(4), 4U * 8 * 6 * scan) << "six of eight layers";
  EXPECT_EQ(said("qwen3next", sizes).states.bytes(4), 4U * 6 * scan) << "no snapshots";
  EXPECT_EQ(said("falcon-h1", sizes).states.bytes(1), 8U * scan) << "beside attention";
  EXPECT_EQ(said("llama", sizes).states.bytes(4), 0U);
  EXPECT_EQ(said("of-tomorrow", sizes).states.bytes(4), 0U);
  sizes[3].second = 0;
  EXPECT_EQ(said("granitehybrid", sizes).states.bytes(4), 4U * 8 * scan);
  sizes.emplace_back("feed_forward_length", 512);
  EXPECT_EQ(said("nemotron_h", sizes).states.bytes(4), 0U) << "layers of a feed-forward part alone";
  sizes.back().second = 0;
  EXPECT_EQ(said("nemotron_h", sizes).states.bytes(4), 4U * 8 * 8 * scan);
  sizes.emplace_back("kda.head_dim", 128);
  EXPECT_EQ(said("kimi-linear", sizes).states.bytes(1), 8U * 4 * (3 * 3 + 128) * 16 * 128);
  EXPECT_EQ(said("rwkv7", {{"block_count", 8}, {"embedding_length", 2048}, {"wkv.head_size", 64}})
                .states.bytes(1),
            8U * 4 * 2048 * (2 + 64));
  EXPECT_EQ(
      said("mamba2",
           {{"block_count", 8}, {"ssm.inner_size", 0xFFFFFFFFU}, {"ssm.state_size", 0xFFFFFFFFU}})
          .states.bytes(1),
      0U)
      << "no machine has as much";
}

TEST_F(GgufHeaderTest, ATableOfPositionsIsFoundInWhicheverFile) {
  const Result<testing::GgufReader> reader = testing::GgufReader::open(plain_);
  ASSERT_TRUE(reader.ok());
  std::vector<testing::TensorInfo> tensors = reader->tensors();
  const std::size_t n = tensors.size();
  tensors.push_back({"position_embd.weight", GGML_TYPE_F32, {128, 4}});
  const testing::TensorSource source = [&](std::size_t i, std::vector<std::uint8_t>& data) {
    if (i < n) return reader->read_tensor(i, data);
    data.assign(tensors[i].bytes(), 0);
    return Status();
  };
  const std::string with = dir_.file("with.gguf");
  ASSERT_TRUE(testing::write_gguf(with, reader->metadata(), tensors, source, false).ok());
  const auto has_table = [](const std::string& path) {
    const Result<GgufHeader> header = read_gguf_header(path);
    EXPECT_TRUE(header.ok()) << header.status().message();
    return header.ok() && header->position_table;
  };
  EXPECT_FALSE(has_table(with)) << "llama has no use for it";
  for (const char* const architecture : {"gpt2", "mpt", "starcoder"}) {
    const std::string path = dir_.file("table.gguf");
    const auto change = [architecture](gguf_context* gguf) {
      gguf_set_val_str(gguf, "general.architecture", architecture);
    };
    ASSERT_TRUE(testing::copy_changed(plain_, path, change, "").ok());
    EXPECT_FALSE(has_table(path)) << architecture;
    ASSERT_TRUE(testing::copy_changed(with, path, change, "").ok());
    EXPECT_TRUE(has_table(path)) << architecture;
    const Result<std::string> first = testing::write_gguf_split(path, dir_.file("split"), {3, n});
    ASSERT_TRUE(first.ok()) << first.status().message();
    EXPECT_TRUE(has_table(*first)) << architecture << ", in the last file";
  }
}

}  // namespace
}  // namespace outrider::llama
