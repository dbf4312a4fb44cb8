// Opens tiny models of several weight types, and says what batches of an opened model really do.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "llama/open_target.h"
#include "testing/llama_fixture.h"
#include "testing/requantize.h"

namespace outrider::testing {

class OpenTargetTest : public ::testing::Test {
 protected:
  // A tiny model whose rows divide by 256, so that every type fits. `type`: llama-quantize's name.
  std::string model(const std::string& type, int n_expert = 0) {
    const std::string path = dir_.file(type + ".gguf");
    TinyModelOptions tiny;
    tiny.n_expert = n_expert;
    tiny.n_embd = 256;
    tiny.n_ff = 256;
    tiny.n_head = 4;
    tiny.n_head_kv = 2;
    tiny.weight_type = WeightType::kF32;
    const std::string f32 = dir_.file("F32.gguf");
    EXPECT_TRUE(write_tiny_gguf(f32, tiny).ok());
    if (type != "F32") {
      const Status status =
          requantize_gguf(f32, path, {.type = type, .pure = true, .n_threads = 1});
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return path;
  }

  ModelOptions options(const std::string& path, ExactMode exact = ExactMode::kAuto) const {
    ModelOptions options;
    options.path = path;
    options.n_ctx = 1024;
    options.n_threads = 1;  // more would wait for each other, the models being so small
    options.n_gpu_layers = 0;
    options.exact = exact;
    return options;
  }

  // No time limit to speak of, so that the result does not depend on the machine's load.
  llama::TargetOptions target(std::int32_t widest = 8) const {
    llama::TargetOptions target;
    target.widest = widest;
    target.probe_budget_ms = 1e6;
    target.cache_folder = dir_.file("cache");
    return target;
  }

  llama::OpenedTarget open(const ModelOptions& options, const llama::TargetOptions& target) {
    Result<llama::OpenedTarget> opened = llama::open_target(options, {}, target);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? std::move(*opened) : llama::OpenedTarget();
  }

  // What batches of 2 to `widest` tokens really do: the narrowest width that does not give the bits
  // of single steps over 600 tokens, or widest + 1.
  static std::int32_t first_inexact(LanguageModel& model, std::int32_t widest) {
    std::mt19937 random(3);
    std::vector<Token> text(600);
    for (Token& token : text) token = static_cast<Token>(random() % 250);
    EXPECT_TRUE(model.truncate(0, 0).ok());
    std::vector<Row> wanted;
    for (const Token token : text) wanted.push_back(step(model, 0, token));
    for (std::int32_t width = 2; width <= widest; ++width) {
      EXPECT_TRUE(model.truncate(0, 0).ok());
      if (!gives(model, text, wanted, width)) return width;
    }
    return widest + 1;
  }

  static bool gives(LanguageModel& model, std::span<const Token> text,
                    const std::vector<Row>& wanted, std::int32_t width) {
    const std::size_t n = static_cast<std::size_t>(width);
    bool equal = true;
    for (std::size_t at = 0; equal && at + n <= text.size(); at += n) {
      const TokenTree tree = chain(text.subspan(at, n));
      const EvalItem item{.seq = 0, .prefix = {}, .tree = &tree};
      EXPECT_TRUE(model.evaluate({&item, 1}).ok());
      for (std::size_t i = 0; i < n; ++i) {
        const std::span<const float> row = model.logits(0, static_cast<NodeId>(i));
        equal = equal && std::equal(row.begin(), row.end(), wanted[at + i].begin());
      }
      EXPECT_TRUE(model.commit(0, path(width)).ok());
    }
    return equal;
  }

  TempDir dir_;
};

}  // namespace outrider::testing
