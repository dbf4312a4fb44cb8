#include "llama/gguf/layer_cut.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "llama/gguf/gguf_file.h"
#include "testing/gguf_damage.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::gguf {
namespace {

class LayerCutTest : public ::testing::Test {
 protected:
  // A model with `n` layers of the same tensors, said to be of the architecture.
  Result<GgufReader> model(const std::string& architecture, std::uint32_t n,
                           const std::function<void(gguf_context*)>& change = {}) {
    testing::TinyModelOptions options;
    options.n_layer = static_cast<int>(n);
    EXPECT_TRUE(testing::write_tiny_gguf(dir_.file("tiny.gguf"), options).ok());
    const auto rename = [&](gguf_context* gguf) {
      gguf_set_val_str(gguf, "general.architecture", architecture.c_str());
      gguf_set_val_u32(gguf, (architecture + ".block_count").c_str(), n);
      if (change) change(gguf);
    };
    EXPECT_TRUE(testing::copy_changed(dir_.file("tiny.gguf"), dir_.file("named.gguf"), rename,
                                      /*left_out=*/"")
                    .ok());
    return GgufReader::open(dir_.file("named.gguf"));
  }

  void expect_refused(const Result<GgufReader>& file, const std::string& why) {
    ASSERT_TRUE(file.ok()) << file.status().message();
    const Result<LayerShape> shape = read_layers(*file);
    ASSERT_TRUE(shape.ok()) << shape.status().message();
    EXPECT_EQ(shape->can_be_cut.code(), StatusCode::kUnsupported) << shape->architecture;
    EXPECT_NE(shape->can_be_cut.message().find("in '" + shape->architecture + "' " + why),
              std::string::npos)
        << shape->can_be_cut.message();
  }
  void expect_taken(const Result<GgufReader>& file) {
    ASSERT_TRUE(file.ok()) << file.status().message();
    const Result<LayerShape> shape = read_layers(*file);
    ASSERT_TRUE(shape.ok()) << shape.status().message();
    EXPECT_TRUE(shape->can_be_cut.ok()) << shape->can_be_cut.message();
  }

  testing::TempDir dir_;
};

TEST_F(LayerCutTest, LayersThatDifferByTheirPlaceAreNotLeftOut) {
  expect_taken(model("llama", 4));
  expect_refused(model("smollm3", 4), "some of them, told by their place, take no positions");
  expect_refused(model("llama4", 4), "some of them, told by their place, take no positions");
  expect_refused(model("exaone-moe", 4), "those with a sliding window are told by their place");
  expect_refused(model("phi3", 4,
                       [](gguf_context* gguf) {
                         gguf_set_val_u32(gguf, "phi3.attention.sliding_window", 64);
                       }),
                 "those with a sliding window are told by their place");
  const auto every_second = [](gguf_context* gguf) {
    gguf_set_val_u32(gguf, "rwkv6.rescale_every_n_layers", 2);
  };
  expect_refused(model("rwkv6", 4, every_second), "some of them, told by their place, halve");
  expect_taken(model("rwkv6", 4));
}

TEST_F(LayerCutTest, LayersThatAreScaledByTheirNumberAreNotLeftOut) {
  expect_refused(model("minicpm3", 4), "llama.cpp takes the scale of each from their number");
  expect_refused(model("minicpm", 4), "llama.cpp takes the scale of each from their number");
  expect_taken(model("minicpm", 4, [](gguf_context* gguf) {
    gguf_set_val_f32(gguf, "minicpm.residual_scale", 0.2F);
  }));
}

// Old files of gemma-2 say nothing of its window, and llama.cpp takes one all the same.
TEST_F(LayerCutTest, Gemma2sLayersKeepTheirKindWithoutTheWindowsKey) {
  const auto pattern_of = [this](const std::string& architecture) {
    const Result<GgufReader> file = model(architecture, 6);
    const Result<LayerShape> shape = read_layers(*file);
    EXPECT_TRUE(shape->can_be_cut.ok()) << shape->can_be_cut.message();
    const Handle metadata(gguf_init_empty());
    gguf_set_kv(metadata.get(), file->metadata());
    const std::vector<std::int32_t> kept = {0, 1, 3, 4};
    cut_layers(metadata.get(), *shape, kept);
    std::vector<std::uint32_t> windowed;
    const std::string key = architecture + ".attention.sliding_window_pattern";
    const std::int64_t id = gguf_find_key(metadata.get(), key.c_str());
    if (id < 0) return windowed;
    const auto* flags = static_cast<const std::uint32_t*>(gguf_get_arr_data(metadata.get(), id));
    windowed.assign(flags, flags + gguf_get_arr_n(metadata.get(), id));
    return windowed;
  };
  EXPECT_EQ(pattern_of("gemma2"), (std::vector<std::uint32_t>{1, 0, 0, 1}));
  EXPECT_TRUE(pattern_of("gemma3").empty()) << "it has no window without the key";
}

}  // namespace
}  // namespace outrider::gguf
