// Which tensors of a file the exactness rule takes for matrices, and what follows from it.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "llama/base/backend.h"
#include "llama/exactness/exactness_rule.h"
#include "llama/kernels/own_kernels.h"
#include "testing/gguf_file.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::llama {
namespace {

using testing::TinyArchitecture;

// A tiny model with further tensors, all of them zeros. Its path.
std::string write_with(const testing::TempDir& dir, const testing::TinyModelOptions& tiny,
                       const std::vector<testing::TensorInfo>& more) {
  const std::string plain = dir.file("plain.gguf");
  EXPECT_TRUE(testing::write_tiny_gguf(plain, tiny).ok());
  const Result<testing::GgufReader> reader = testing::GgufReader::open(plain);
  EXPECT_TRUE(reader.ok());
  if (!reader.ok()) return plain;
  std::vector<testing::TensorInfo> tensors = reader->tensors();
  const std::size_t n = tensors.size();
  tensors.insert(tensors.end(), more.begin(), more.end());
  const testing::TensorSource source = [&](std::size_t i, std::vector<std::uint8_t>& data) {
    if (i < n) return reader->read_tensor(i, data);
    data.assign(tensors[i].bytes(), 0);
    return Status();
  };
  std::string path = dir.file("more.gguf");
  EXPECT_TRUE(
      testing::write_gguf(path, reader->metadata(), tensors, source, /*durable=*/false).ok());
  return path;
}

struct Known {
  RuleFacts facts;
  LoadPlan plan;

  bool own_throughout() const { return facts.is_own_throughout(plan.context); }
  std::string hint() const { return inexact_hint(facts, plan); }
};

Known known_of(const std::string& path, KernelChoice kernels) {
  const ModelOptions options{.path = path, .n_gpu_layers = 0, .kernels = kernels};
  const Result<RuleFacts> facts = read_rule_facts(options);
  EXPECT_TRUE(facts.ok()) << facts.status().message();
  if (!facts.ok()) return {};
  return {.facts = *facts, .plan = settings_rule(*facts, options)};
}

bool has_own_kernels() {
  ensure_backend();
  return own_kernels().available;
}

// gpt-oss has such biases: a row for each expert, in F32.
TEST(ExactnessFacts, WhatExpertsAddIsNoMatrix) {
  const testing::TempDir dir;
  testing::TinyModelOptions tiny;
  tiny.n_expert = 4;
  const std::vector<testing::TensorInfo> biases = {
      {"blk.0.ffn_gate_exps.bias", GGML_TYPE_F32, {tiny.n_ff, 4}},
      {"blk.0.ffn_up_exps.bias", GGML_TYPE_F32, {tiny.n_ff, 4}},
      {"blk.0.ffn_down_exps.bias", GGML_TYPE_F32, {tiny.n_embd, 4}}};
  const std::string path = write_with(dir, tiny, biases);
  EXPECT_EQ(known_of(path, KernelChoice::kStock).facts.weights,
            known_of(dir.file("plain.gguf"), KernelChoice::kStock).facts.weights);
  if (!has_own_kernels()) GTEST_SKIP() << own_kernels().reason;
  const Known own = known_of(path, KernelChoice::kAuto);
  EXPECT_TRUE(own.facts.weights.empty()) << own.facts.weights.front().first;
  EXPECT_TRUE(own.own_throughout());
  EXPECT_EQ(own.hint(), "");
}

TEST(ExactnessFacts, AConvolutionIsNoProductButWhatIsRecurrentIsNeverOwnThroughout) {
  const testing::TempDir dir;
  const std::string path = dir.file("tiny.gguf");
  for (const TinyArchitecture architecture :
       {TinyArchitecture::kLlama, TinyArchitecture::kSlidingWindow, TinyArchitecture::kShortConv,
        TinyArchitecture::kMamba}) {
    ASSERT_TRUE(testing::write_tiny_gguf(path, {.architecture = architecture}).ok());
    const bool recurrent =
        architecture == TinyArchitecture::kShortConv || architecture == TinyArchitecture::kMamba;
    const std::string name = testing::tiny_architecture_name(architecture);
    const Known stock = known_of(path, KernelChoice::kStock);
    EXPECT_EQ(stock.facts.bytes_of("f32"), 0U) << name;
    EXPECT_EQ(stock.hint().find("F32"), std::string::npos) << name << ": " << stock.hint();
    EXPECT_EQ(stock.facts.recurrent, recurrent) << name;
    if (!has_own_kernels()) continue;
    const Known own = known_of(path, KernelChoice::kAuto);
    EXPECT_TRUE(own.facts.weights.empty()) << name;
    EXPECT_EQ(own.own_throughout(), !recurrent) << name;
    EXPECT_EQ(own.hint(), "") << name;
  }
}

// In F16 or BF16 whatever the others are: llama-quantize leaves it as it is.
TEST(ExactnessFacts, TheProjectionOfGemmasInputsPerLayerIsTaken) {
  if (!has_own_kernels()) GTEST_SKIP() << own_kernels().reason;
  const testing::TempDir dir;
  for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16}) {
    const Known own =
        known_of(write_with(dir, {}, {{"per_layer_model_proj.weight", type, {128, 64}}}),
                 KernelChoice::kAuto);
    EXPECT_TRUE(own.facts.weights.empty()) << ggml_type_name(type);
    EXPECT_TRUE(own.own_throughout()) << ggml_type_name(type);
    EXPECT_TRUE(own.facts.own_quantised);
  }
}

// What is left in a float type in a quantised file is there in any other quantised file, too.
TEST(ExactnessFacts, AQuantisedFileIsNotToldThatAQuantisedFileWouldBeExact) {
#if defined(__aarch64__)
  GTEST_SKIP() << "other kernels";
#endif
  const testing::TempDir dir;
  const std::string path =
      write_with(dir, {}, {{"blk.0.altup_router.weight", GGML_TYPE_F16, {128, 4}}});
  for (const KernelChoice kernels : {KernelChoice::kStock, KernelChoice::kAuto}) {
    const std::string hint = known_of(path, kernels).hint();
    EXPECT_NE(hint.find("F16 weights"), std::string::npos) << hint;
    EXPECT_EQ(hint.find("Q8_0"), std::string::npos) << hint;
  }
  testing::TinyModelOptions tiny;
  tiny.weight_type = testing::WeightType::kF32;
  ASSERT_TRUE(testing::write_tiny_gguf(path, tiny).ok());
  const std::string hint = known_of(path, KernelChoice::kStock).hint();
  EXPECT_NE(hint.find("a file in Q8_0"), std::string::npos) << hint;
}

// Of latent attention and DeepSeek V4: whatever type they are in, and with our kernels never.
TEST(ExactnessFacts, MatricesOfHeadsAreKeptFromAmxWhereOursDoNotMultiplyThem) {
  const testing::TempDir dir;
  for (const char* const name : {"blk.0.attn_k_b.weight", "blk.1.attn_v_b.weight",
                                 "blk.0.attn_output_a.weight", "blk.0.attn_q_b.weight"}) {
    const bool of_heads = std::string(name) != "blk.0.attn_q_b.weight";
    for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_Q8_0}) {
      const std::string path = write_with(dir, {}, {{name, type, {128, 64}}});
      const Known stock = known_of(path, KernelChoice::kStock);
      EXPECT_EQ(stock.facts.head_matrices, of_heads) << name;
      EXPECT_EQ(stock.facts.amx_layout, has_amx_layout());
      const Known by_default = known_of(path, KernelChoice::kAuto);
      EXPECT_EQ(by_default.facts.head_matrices, of_heads && !has_own_kernels()) << name;
      EXPECT_EQ(by_default.plan.plain_reason.empty(),
                !by_default.facts.head_matrices || !has_amx_layout());
      if (!has_own_kernels() || !of_heads) continue;
      EXPECT_EQ(by_default.facts.bytes_of(ggml_type_name(type)), 0U) << name << ": ours take it";
    }
  }
}

TEST(ExactnessFacts, WithAmxAFileWithMatricesOfHeadsStaysPlainAndThatIsSaid) {
  for (const ExactMode exact : {ExactMode::kAuto, ExactMode::kOn, ExactMode::kOff}) {
    for (const bool head_matrices : {true, false}) {
      for (const bool amx_layout : {true, false}) {
        RuleFacts facts;
        facts.weights = {{"q8_0", 100}};
        facts.head_matrices = head_matrices;
        facts.amx_layout = amx_layout;
        ModelOptions options;
        options.exact = exact;
        const LoadPlan plan = settings_rule(facts, options);
        const bool plain = head_matrices && amx_layout;
        EXPECT_EQ(plan.extra_bufts, !plain);
        EXPECT_EQ(plan.plain_reason.find("AMX") != std::string::npos, plain);
        EXPECT_TRUE(plan.notes.empty());
        if (!plain) continue;
        if (exact == ExactMode::kOn) {
          EXPECT_TRUE(strictest_plan(facts, options, plan) == plan) << "it is plain already";
        }
        facts.weights = {{"q4_K", 100}};
        const std::string hint = inexact_hint(facts, settings_rule(facts, options));
        EXPECT_EQ(hint.find("repacked"), std::string::npos) << hint;
      }
    }
  }
}

}  // namespace
}  // namespace outrider::llama
