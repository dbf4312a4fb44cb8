// Widening of layouts that the writer of tiny models does not produce itself: fused query, key and
// value, experts, sizes per layer. Each is made from a tiny model by rearranging its tensors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "testing/gguf_file.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"
#include "testing/tiny_runner.h"
#include "testing/widen.h"

namespace outrider::testing {
namespace {

// A whole GGUF file in memory.
struct Contents {
  GgufHandle metadata{gguf_init_empty()};
  std::vector<TensorInfo> tensors;
  std::vector<std::vector<std::uint8_t>> data;  // [tensors]

  std::size_t index(const std::string& name) const {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].name == name) return i;
    }
    ADD_FAILURE() << "no tensor " << name;
    std::abort();
  }

  std::vector<std::uint8_t> take(const std::string& name) {
    const std::ptrdiff_t i = static_cast<std::ptrdiff_t>(index(name));
    std::vector<std::uint8_t> bytes = data[static_cast<std::size_t>(i)];
    tensors.erase(tensors.begin() + i);
    data.erase(data.begin() + i);
    return bytes;
  }

  void add(const std::string& name, ggml_type type, std::vector<std::int64_t> shape,
           std::vector<std::uint8_t> bytes) {
    tensors.push_back({name, type, std::move(shape)});
    data.push_back(std::move(bytes));
  }
};

std::vector<std::uint8_t> joined(const std::vector<std::vector<std::uint8_t>>& parts) {
  std::vector<std::uint8_t> all;
  for (const std::vector<std::uint8_t>& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// "blk.0.attn_q.weight" from its parts.
std::string in_block(int block, const std::string& name) {
  return "blk." + std::to_string(block) + "." + name;
}

class WidenLayoutTest : public ::testing::Test {
 protected:
  // Writes a tiny model, lets `edit` rearrange it, and returns the path of the result.
  std::string write(const TinyModelOptions& options, const std::function<void(Contents&)>& edit) {
    EXPECT_TRUE(write_tiny_gguf(dir_.file("tiny.gguf"), options).ok());
    const GgufReader reader = GgufReader::open(dir_.file("tiny.gguf")).value();
    Contents contents;
    gguf_set_kv(contents.metadata.get(), reader.metadata());
    contents.tensors = reader.tensors();
    contents.data.resize(contents.tensors.size());
    for (std::size_t i = 0; i < contents.data.size(); ++i) {
      EXPECT_TRUE(reader.read_tensor(i, contents.data[i]).ok());
    }
    edit(contents);
    const Status status = write_gguf(
        dir_.file("edited.gguf"), contents.metadata.get(), contents.tensors,
        [&](std::size_t index, std::vector<std::uint8_t>& data) {
          data = contents.data[index];
          return Status();
        },
        /*durable=*/false);
    EXPECT_TRUE(status.ok()) << status.message();
    return dir_.file("edited.gguf");
  }

  std::vector<std::vector<float>> logits(const std::string& path) {
    TinyRunnerOptions options;
    options.kv_type = GGML_TYPE_F32;
    options.flash_attention = false;
    Result<TinyRunner> runner = TinyRunner::load(path, options);
    EXPECT_TRUE(runner.ok()) << runner.status().message();
    if (!runner.ok()) return {};
    return runner->logits(runner->tokenize("Once upon a time there was", true, false)).value();
  }

  void expect_same_function(const std::string& path, int factor) {
    const Status status = widen_gguf(path, dir_.file("wide.gguf"), factor);
    ASSERT_TRUE(status.ok()) << status.message();
    const std::vector<std::vector<float>> narrow = logits(path);
    const std::vector<std::vector<float>> wide = logits(dir_.file("wide.gguf"));
    ASSERT_EQ(wide.size(), narrow.size());
    for (std::size_t i = 0; i < narrow.size(); ++i) {
      for (std::size_t j = 0; j < narrow[i].size(); ++j) {
        ASSERT_NEAR(wide[i][j], narrow[i][j], 1e-3) << "position " << i << " token " << j;
      }
    }
  }

  static TinyModelOptions float_model() {
    TinyModelOptions options;
    options.weight_type = WeightType::kF32;
    options.n_head = 4;
    options.n_head_kv = 2;
    return options;
  }

  TempDir dir_;
};

TEST_F(WidenLayoutTest, FusedQueryKeyAndValueAreWidenedEachForItself) {
  TinyModelOptions options = float_model();
  options.linear_biases = true;
  const std::string path = write(options, [](Contents& contents) {
    for (const int block : {0, 1}) {
      for (const std::string kind : {".weight", ".bias"}) {
        const std::vector<std::uint8_t> all =
            joined({contents.take(in_block(block, "attn_q" + kind)),
                    contents.take(in_block(block, "attn_k" + kind)),
                    contents.take(in_block(block, "attn_v" + kind))});
        const std::int64_t rows = 512;  // 4 + 2 + 2 heads of 64
        contents.add(in_block(block, "attn_qkv" + kind), GGML_TYPE_F32,
                     kind == ".bias" ? std::vector<std::int64_t>{rows}
                                     : std::vector<std::int64_t>{128, rows},
                     all);
      }
    }
  });
  expect_same_function(path, 2);
  expect_same_function(path, 3);
}

TEST_F(WidenLayoutTest, ExpertsAreWidenedEachForItselfAndTheRouterChoosesTheSame) {
  const std::string path = write(float_model(), [](Contents& contents) {
    // Two experts: the feed-forward layers of both blocks, in either order. The router's rows are
    // the first two rows of a query matrix: anything that tells positions apart.
    const std::string blocks[] = {"blk.0.", "blk.1."};
    for (const std::string matrix : {"ffn_gate", "ffn_up", "ffn_down"}) {
      const std::vector<std::uint8_t> first = contents.take(blocks[0] + matrix + ".weight");
      const std::vector<std::uint8_t> second = contents.take(blocks[1] + matrix + ".weight");
      const std::vector<std::int64_t> shape = matrix == "ffn_down"
                                                  ? std::vector<std::int64_t>{256, 128, 2}
                                                  : std::vector<std::int64_t>{128, 256, 2};
      contents.add(blocks[0] + matrix + "_exps.weight", GGML_TYPE_F32, shape,
                   joined({first, second}));
      contents.add(blocks[1] + matrix + "_exps.weight", GGML_TYPE_F32, shape,
                   joined({second, first}));
    }
    for (const std::string& block : blocks) {
      std::vector<std::uint8_t> rows = contents.data[contents.index(block + "attn_q.weight")];
      rows.resize(2 * 128UL * sizeof(float));
      contents.add(block + "ffn_gate_inp.weight", GGML_TYPE_F32, {128, 2}, rows);
    }
    gguf_set_val_u32(contents.metadata.get(), "llama.expert_count", 2);
    gguf_set_val_u32(contents.metadata.get(), "llama.expert_used_count", 1);
  });
  expect_same_function(path, 2);
  expect_same_function(path, 4);
}

TEST_F(WidenLayoutTest, SizesGivenPerLayerAreWidenedPerLayer) {
  const std::string path = write(float_model(), [](Contents& contents) {
    const auto per_layer = [&](const char* key, std::uint32_t value) {
      const std::vector<std::uint32_t> values(2, value);
      gguf_remove_key(contents.metadata.get(), key);
      gguf_set_arr_data(contents.metadata.get(), key, GGUF_TYPE_UINT32, values.data(), 2);
    };
    per_layer("llama.attention.head_count", 4);
    per_layer("llama.attention.head_count_kv", 2);
    per_layer("llama.feed_forward_length", 256);
  });
  expect_same_function(path, 2);
}

TEST_F(WidenLayoutTest, ATensorThatItDoesNotKnowIsRefusedByName) {
  const std::string path = write(float_model(), [](Contents& contents) {
    contents.add("blk.0.surprise.weight", GGML_TYPE_F32, {32}, std::vector<std::uint8_t>(128));
  });
  const Status status = widen_gguf(path, dir_.file("wide.gguf"), 2);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("blk.0.surprise.weight"), std::string::npos) << status.message();
}

TEST_F(WidenLayoutTest, OnePartOfASplitModelIsRefused) {
  const std::string path = write(float_model(), [](Contents& contents) {
    gguf_set_val_u16(contents.metadata.get(), "split.count", 3);
  });
  const Status status = widen_gguf(path, dir_.file("wide.gguf"), 2);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("one of 3 parts"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace outrider::testing
