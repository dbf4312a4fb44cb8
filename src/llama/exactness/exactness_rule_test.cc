#include "llama/exactness/exactness_rule.h"

#include <gtest/gtest.h>

#include "llama/files/gguf_header.h"
#include "testing/gguf_damage.h"
#include "testing/gguf_file.h"
#include "testing/tiny_dir.h"
#include "testing/tiny_gguf.h"

namespace outrider::llama {
namespace {

using testing::TempDir;
using testing::WeightType;

#if defined(__aarch64__)
constexpr const char* kKeys = "q8_0";
constexpr const char* kValues = "q8_0";
#else
constexpr const char* kKeys = "bf16";
constexpr const char* kValues = "f16";
#endif

RuleFacts facts_of(std::vector<std::pair<std::string, std::uint64_t>> weights) {
  RuleFacts facts;
  facts.weights = std::move(weights);
  facts.head_sizes = {64};
  return facts;
}

LoadPlan rule(const RuleFacts& facts, ExactMode exact = ExactMode::kAuto) {
  ModelOptions options;
  options.exact = exact;
  return settings_rule(facts, options);
}

TEST(ExactnessRule, TakesFlashAttentionAndBf16KeysOnTheProcessor) {
  for (const ExactMode exact : {ExactMode::kAuto, ExactMode::kOn}) {
    const LoadPlan plan = rule(facts_of({{"q4_0", 100}}), exact);
    EXPECT_TRUE(plan.context.flash_attention);
    EXPECT_EQ(plan.context.type_k, kKeys);
    EXPECT_EQ(plan.context.type_v, kValues);
    EXPECT_TRUE(plan.extra_bufts);
    EXPECT_TRUE(plan.notes.empty());
  }
}

TEST(ExactnessRule, OwnAttentionTakesLlamaCppsDefaultCacheAndMixesAnyOfItsTypes) {
  RuleFacts facts = facts_of({});
  facts.own_bytes = 100;
  facts.own_attention = true;
  for (const ExactMode exact : {ExactMode::kAuto, ExactMode::kOn}) {
    const LoadPlan plan = rule(facts, exact);
    EXPECT_EQ(plan.context.type_k, "f16");
    EXPECT_EQ(plan.context.type_v, "f16");
    EXPECT_TRUE(facts.is_own_throughout(plan.context));
    EXPECT_EQ(inexact_hint(facts, plan), "");
  }
  ModelOptions options;
  options.cache_type_k = options.cache_type_v = "f32";
  LoadPlan plan = settings_rule(facts, options);
  EXPECT_TRUE(plan.notes.empty()) << "exact";
  EXPECT_TRUE(facts.is_own_throughout(plan.context));
  options.cache_type_k = "q4_0";
  plan = settings_rule(facts, options);
  EXPECT_FALSE(facts.is_own_throughout(plan.context)) << "llama.cpp's attention";
  options = {};
  options.flash_attention = FlashAttention::kOff;
  EXPECT_FALSE(facts.is_own_throughout(settings_rule(facts, options).context));
  // Should it turn out not to be exact, what is exact with llama.cpp's attention is tried.
  options = {};
  options.exact = ExactMode::kOn;
  EXPECT_EQ(strictest_plan(facts, options, settings_rule(facts, options)).context.type_k, kKeys);
}

TEST(ExactnessRule, OffTakesLlamaCppsDefaults) {
  const LoadPlan plan = rule(facts_of({{"q4_K", 100}}), ExactMode::kOff);
  EXPECT_TRUE(plan.context.flash_attention);
  EXPECT_EQ(plan.context.type_k, "f16");
  EXPECT_EQ(plan.context.type_v, "f16");
  EXPECT_TRUE(plan.extra_bufts);
}

TEST(ExactnessRule, WhatCannotBeExactGetsLlamaCppsDefaultsUnlessInsistedOn) {
#if defined(__aarch64__)
  GTEST_SKIP() << "other kernels";
#endif
  const RuleFacts facts = facts_of({{"q8_0", 90}, {"f32", 1}});
  EXPECT_EQ(rule(facts).context.type_k, "f16");
  EXPECT_TRUE(rule(facts).extra_bufts);
  EXPECT_EQ(rule(facts, ExactMode::kOn).context.type_k, "bf16");
}

// Mixed types are in special builds of other devices only; and blocks of 32 must divide a head.
TEST(ExactnessRule, WorkersAndOtherDevicesGetTheSameTypeForKeysAndValues) {
  for (const bool on_cpu : {false, true}) {
    for (const std::int32_t second : {64, 80}) {
      RuleFacts facts = facts_of({{"q4_0", 100}});
      facts.head_sizes = {64, second};
      facts.on_cpu = on_cpu;
      ModelOptions options;
      options.exact = ExactMode::kOn;
      if (on_cpu) options.workers = {"there:50052"};
      const LoadPlan plan = settings_rule(facts, options);
      EXPECT_EQ(plan.context.type_k, second == 64 ? "q8_0" : "bf16");
      EXPECT_EQ(plan.context.type_v, plan.context.type_k);
    }
  }
}

// llama.cpp makes no context with two types for a model with latent attention.
TEST(ExactnessRule, AModelWhoseKeysHoldItsValuesGetsOneTypeForBothWhateverIsChosen) {
  RuleFacts facts = facts_of({{"q8_0", 100}});
  facts.one_cache_type = true;
  for (const ExactMode exact : {ExactMode::kAuto, ExactMode::kOn, ExactMode::kOff}) {
    for (const FlashAttention flash : {FlashAttention::kAuto, FlashAttention::kOff}) {
      for (const char* const type : {"", "f16", "bf16", "q8_0", "f32"}) {
        for (const bool for_k : {true, false}) {
          ModelOptions options;
          options.exact = exact;
          options.flash_attention = flash;
          (for_k ? options.cache_type_k : options.cache_type_v) = type;
          const LoadPlan plan = settings_rule(facts, options);
          const std::string what = std::string(type) + (for_k ? " keys" : " values");
          EXPECT_EQ(plan.context.type_k, plan.context.type_v) << what;
          if (*type != 0) {
            EXPECT_EQ(plan.context.type_k, type) << what;
          }
          const LoadPlan strict = strictest_plan(facts, options, plan);
          EXPECT_EQ(strict.context.type_k, strict.context.type_v) << what;
        }
      }
    }
  }
  EXPECT_EQ(rule(facts).context.type_k, "q8_0") << "exact";
  facts.head_sizes = {40};
  EXPECT_EQ(rule(facts, ExactMode::kOn).context.type_v, "bf16");
}

TEST(ExactnessRule, PlainBuffersWhereTheyAreCheapAndWhereTheyAreInsistedOn) {
  const RuleFacts pure = facts_of({{"q4_K", 100}});
  EXPECT_TRUE(rule(pure).extra_bufts) << "half as fast again would be too dear";
  EXPECT_FALSE(rule(pure, ExactMode::kOn).extra_bufts);
  const RuleFacts mixed = facts_of({{"q8_0", 178}, {"q5_0", 44}, {"q4_K", 13}});
  EXPECT_FALSE(rule(mixed).extra_bufts) << "gemma-3-270m Q4_K_M: 2 % dearer, and exact";
  const RuleFacts with_q4_0 = facts_of({{"q4_0", 90}, {"q4_K", 10}});
  EXPECT_TRUE(rule(with_q4_0).extra_bufts);
  const RuleFacts never_repacked = facts_of({{"q6_K", 50}, {"f32", 1}});
  EXPECT_EQ(rule(never_repacked).extra_bufts, true);
  EXPECT_EQ(rule(never_repacked, ExactMode::kOn).extra_bufts, true);
}

TEST(ExactnessRule, DoesNotDependOnWhatHasNothingToDoWithIt) {
  const RuleFacts facts = facts_of({{"q4_K", 40}, {"q6_K", 60}});
  ModelOptions a;
  ModelOptions b;
  b.path = "elsewhere.gguf";
  b.n_ctx = 77;
  b.n_sequences = 9;
  b.n_batch = 33;
  b.n_threads = 5;
  EXPECT_TRUE(settings_rule(facts, a) == settings_rule(facts, b));
}

TEST(ExactnessRule, TheUsersOwnChoicesWinAndTheirCostIsTold) {
  const RuleFacts facts = facts_of({{"q4_0", 100}});
  ModelOptions options;
  options.cache_type_k = "q8_0";
  LoadPlan plan = settings_rule(facts, options);
  EXPECT_EQ(plan.context.type_k, "q8_0");
  EXPECT_EQ(plan.context.type_v, kValues);
  EXPECT_TRUE(plan.notes.empty()) << "mixed types take the exact path";
  options.cache_type_k = "f16";
  plan = settings_rule(facts, options);
  EXPECT_EQ(plan.context.type_k, "f16");
  EXPECT_EQ(plan.context.type_v, "q8_0") << "what is free makes the pair exact";
  EXPECT_TRUE(plan.notes.empty());

  options.cache_type_v = "f16";
  plan = settings_rule(facts, options);
  EXPECT_EQ(plan.context.type_v, "f16");
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_NE(plan.notes[0].find("256 cells"), std::string::npos);
  EXPECT_NE(inexact_hint(facts, plan).find("bf16"), std::string::npos);

  options = {};
  options.flash_attention = FlashAttention::kOff;
  plan = settings_rule(facts, options);
  EXPECT_FALSE(plan.context.flash_attention);
  EXPECT_EQ(plan.context.type_v, "f16") << "what is exact with flash attention is not without";
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_NE(inexact_hint(facts, plan).find("flash_attn=off"), std::string::npos);

  options.exact = ExactMode::kOff;
  EXPECT_TRUE(settings_rule(facts, options).notes.empty()) << "nobody asked for exactness";
}

// A device without it for these heads would leave it to the processor, with all of the cache.
TEST(ExactnessRule, OnAGpuFlashAttentionIsTakenWhereTheDeviceHasItUnlessItIsChosen) {
  for (const FlashAttention flash :
       {FlashAttention::kAuto, FlashAttention::kOn, FlashAttention::kOff}) {
    const bool free = flash == FlashAttention::kAuto;
    RuleFacts facts = facts_of({{"q4_0", 100}});
    ModelOptions options{.flash_attention = flash, .exact = ExactMode::kOn};
    EXPECT_FALSE(settings_rule(facts, options).context.flash_if_supported) << "the processor";
    facts.on_cpu = false;
    const LoadPlan plan = settings_rule(facts, options);
    EXPECT_EQ(plan.context.flash_attention, flash != FlashAttention::kOff);
    EXPECT_EQ(plan.context.flash_if_supported, free);
    EXPECT_EQ(strictest_plan(facts, options, plan).context.flash_if_supported, free);
    options.workers = {"there:50052"};
    EXPECT_FALSE(settings_rule(facts, options).context.flash_if_supported) << "they take all";
  }
}

TEST(ExactnessRule, TheStrictestPlanKeepsWhatTheUserChose) {
  const RuleFacts facts = facts_of({{"q4_0", 100}});
  ModelOptions options;
  options.exact = ExactMode::kOn;
  LoadPlan strict = strictest_plan(facts, options, settings_rule(facts, options));
  EXPECT_FALSE(strict.extra_bufts);
  EXPECT_EQ(strict.context.type_k, kKeys);

  options.cache_type_k = options.cache_type_v = "f16";
  strict = strictest_plan(facts, options, settings_rule(facts, options));
  EXPECT_EQ(strict.context.type_k, "f16");

  options.flash_attention = FlashAttention::kOff;
  strict = strictest_plan(facts, options, settings_rule(facts, options));
  EXPECT_FALSE(strict.context.flash_attention);

  const RuleFacts never_repacked = facts_of({{"f16", 100}});
  options = {};
  options.exact = ExactMode::kOn;
  const LoadPlan plan = settings_rule(never_repacked, options);
  EXPECT_TRUE(strictest_plan(never_repacked, options, plan) == plan) << "nothing left to try";
}

TEST(ExactnessRule, NamesWhatIsKnownAgainstASetting) {
  const LoadPlan plan = rule(facts_of({{"q4_0", 100}}));
  EXPECT_EQ(inexact_hint(facts_of({{"q4_0", 100}}), plan), "");
#if !defined(__aarch64__)
  EXPECT_NE(inexact_hint(facts_of({{"f16", 9}, {"bf16", 1}}), plan).find("F16, BF16 weights"),
            std::string::npos);
  const auto advises = [&plan](const RuleFacts& facts) {
    return inexact_hint(facts, plan).find("a file in Q8_0") != std::string::npos;
  };
  EXPECT_TRUE(advises(facts_of({{"f16", 9}, {"bf16", 1}})));
  EXPECT_TRUE(advises(facts_of({{"iq4_nl", 9}, {"q5_K", 1}})));
  EXPECT_FALSE(advises(facts_of({{"q4_K", 9}, {"f16", 1}})));
#endif
  EXPECT_NE(inexact_hint(facts_of({{"iq4_xs", 9}}), plan).find("8 tokens"), std::string::npos);
  EXPECT_NE(inexact_hint(facts_of({{"q4_K", 9}}), plan).find("exact=on"), std::string::npos);
  RuleFacts elsewhere = facts_of({{"q4_0", 100}});
  elsewhere.on_cpu = false;
  EXPECT_NE(inexact_hint(elsewhere, plan).find("gpu_layers=0"), std::string::npos);
  EXPECT_EQ(rule(elsewhere).context.type_k, "f16") << "nothing is known there";
}

TEST(ExactnessRule, OfTheLayersTheLastAreOnTheGpuAndTheOutputIsTheVeryLast) {
  const auto here = [](const char* matrix, std::int32_t n_gpu_layers) {
    return stays_on_processor(matrix, 12, n_gpu_layers);
  };
  for (const char* matrix : {"blk.0.ffn_up.weight", "blk.11.ffn_up.weight", "output.weight"}) {
    EXPECT_TRUE(here(matrix, 0)) << matrix;
    EXPECT_FALSE(here(matrix, -1)) << matrix;
    EXPECT_FALSE(here(matrix, 13)) << matrix;
    EXPECT_FALSE(here(matrix, 999)) << matrix;
  }
  EXPECT_TRUE(here("blk.11.attn_q.weight", 1));
  EXPECT_FALSE(here("token_embd.weight", 1)) << "where it is the output as well";
  EXPECT_FALSE(here("blk.10.attn_q.weight", 3));
  EXPECT_TRUE(here("blk.9.attn_q.weight", 3));
  EXPECT_TRUE(here("blk.0.attn_q.weight", 12));
}

Result<RuleFacts> read_facts(const std::string& path, KernelChoice kernels) {
  return read_rule_facts({.path = path, .n_gpu_layers = 0, .kernels = kernels});
}

TEST(ExactnessRule, ReadsTheFactsFromTheFile) {
  const TempDir dir;
  const std::string path = dir.file("tiny.gguf");
  const std::pair<WeightType, const char*> types[] = {
      {WeightType::kF32, "f32"}, {WeightType::kQ8_0, "q8_0"}, {WeightType::kQ4_0, "q4_0"}};
  for (const std::pair<WeightType, const char*>& type : types) {
    testing::TinyModelOptions tiny;
    tiny.weight_type = type.first;
    ASSERT_TRUE(testing::write_tiny_gguf(path, tiny).ok());
    const Result<RuleFacts> facts = read_facts(path, KernelChoice::kStock);
    ASSERT_TRUE(facts.ok()) << facts.status().message();
    ASSERT_EQ(facts->weights.size(), 1u) << "norms and look-up tables do not count";
    EXPECT_EQ(facts->weights[0].first, type.second);
    EXPECT_GT(facts->bytes_of(type.second), 10000u);
    EXPECT_EQ(facts->bytes_of("q3_K"), 0u);
    EXPECT_EQ(facts->head_sizes, std::vector<std::int32_t>{64});
    EXPECT_TRUE(facts->on_cpu);
    const std::uint64_t bytes = facts->bytes_of(type.second);

    EXPECT_FALSE(facts->own_attention) << "llama.cpp's kernels were asked for";
    const Result<RuleFacts> own = read_facts(path, KernelChoice::kAuto);
    ASSERT_TRUE(own.ok());
    EXPECT_EQ(own->own_attention, own->weights.empty());

    tiny.tied_output = true;
    ASSERT_TRUE(testing::write_tiny_gguf(path, tiny).ok());
    EXPECT_EQ(read_facts(path, KernelChoice::kStock)->bytes_of(type.second), bytes)
        << "a table that is the output too counts as one";
    EXPECT_EQ(own->twice_bytes, 0U);
    EXPECT_EQ(read_facts(path, KernelChoice::kAuto)->twice_bytes > 0, own->weights.empty());
  }
  EXPECT_EQ(read_facts(dir.file("none.gguf"), KernelChoice::kAuto).status().code(),
            StatusCode::kNotFound);
}

TEST(ExactnessRule, OneTypeIsForKeysThatHoldValuesAndTwoThatAreGivenAreRefusedByName) {
  const TempDir dir;
  const std::string plain = dir.file("plain.gguf");
  ASSERT_TRUE(testing::write_tiny_gguf(plain, {}).ok());
  const std::string latent = dir.file("latent.gguf");
  const Status latent_written = testing::copy_changed(
      plain, latent,
      [](gguf_context* gguf) {
        gguf_set_val_u32(gguf, "llama.attention.key_length_mla", 64);
        gguf_set_val_u32(gguf, "llama.attention.value_length_mla", 64);
      },
      "");
  ASSERT_TRUE(latent_written.ok()) << latent_written.message();
  const std::string deepseek4 = dir.file("deepseek4.gguf");
  ASSERT_TRUE(
      testing::copy_with_string(plain, deepseek4, "general.architecture", "deepseek4").ok());
  for (const std::string& path : {plain, latent, deepseek4}) {
    ModelOptions options{.path = path, .n_gpu_layers = 0};
    options.cache_type_k = options.cache_type_v = "q8_0";
    const Result<RuleFacts> same = read_rule_facts(options);
    ASSERT_TRUE(same.ok()) << same.status().message();
    EXPECT_EQ(same->one_cache_type, path != plain);
    options.cache_type_v = "f16";
    const Status two = read_rule_facts(options).status();
    EXPECT_EQ(two.ok(), path == plain);
    if (two.ok()) continue;
    EXPECT_EQ(two.code(), StatusCode::kUnsupported);
    EXPECT_EQ(two.field(), "cache_type_v");
    EXPECT_NE(two.message().find("cache_type_k is q8_0"), std::string::npos) << two.message();
    EXPECT_NE(two.message().find(path), std::string::npos) << two.message();
  }
}

// Every third tensor of it in F32, which is never exact with llama.cpp's kernels, the others Q8_0.
std::string write_mixed(const TempDir& dir, testing::TinyModelOptions tiny) {
  EXPECT_TRUE(testing::write_tiny_gguf(dir.file("q8.gguf"), tiny).ok());
  tiny.weight_type = WeightType::kF32;
  EXPECT_TRUE(testing::write_tiny_gguf(dir.file("f32.gguf"), tiny).ok());
  const Result<testing::GgufReader> q8 = testing::GgufReader::open(dir.file("q8.gguf"));
  const Result<testing::GgufReader> f32 = testing::GgufReader::open(dir.file("f32.gguf"));
  EXPECT_TRUE(q8.ok() && f32.ok());
  std::vector<testing::TensorInfo> tensors = q8->tensors();
  for (std::size_t i = 0; i < tensors.size(); i += 3) tensors[i] = f32->tensors()[i];
  const testing::TensorSource source = [&](std::size_t i, std::vector<std::uint8_t>& data) {
    return (i % 3 == 0 ? *f32 : *q8).read_tensor(i, data);
  };
  std::string path = dir.file("mixed.gguf");
  EXPECT_TRUE(testing::write_gguf(path, q8->metadata(), tensors, source, /*durable=*/false).ok());
  return path;
}

TEST(ExactnessRule, ASplitModelsFactsAreThoseOfTheWholeWhereverItIsCut) {
  const TempDir dir;
  for (const bool tied : {false, true}) {
    testing::TinyModelOptions tiny;
    tiny.tied_output = tied;
    const std::string path = write_mixed(dir, tiny);
    for (const KernelChoice kernels : {KernelChoice::kStock, KernelChoice::kAuto}) {
      const Result<RuleFacts> whole = read_facts(path, kernels);
      ASSERT_TRUE(whole.ok()) << whole.status().message();
      if (kernels == KernelChoice::kStock) {
        ASSERT_EQ(whole->weights.size(), 2U);
      }
      const std::size_t n = testing::GgufReader::open(path)->tensors().size();
      for (std::size_t cut = 0; cut <= n; ++cut) {
        const Result<std::string> first = testing::write_gguf_split(path, dir.file("split"), {cut});
        ASSERT_TRUE(first.ok()) << first.status().message();
        const Result<RuleFacts> split = read_facts(*first, kernels);
        ASSERT_TRUE(split.ok()) << split.status().message();
        EXPECT_EQ(split->weights, whole->weights) << "cut before tensor " << cut;
        EXPECT_EQ(split->own_bytes, whole->own_bytes) << "cut before tensor " << cut;
        EXPECT_EQ(split->twice_bytes, whole->twice_bytes) << "cut before tensor " << cut;
        EXPECT_EQ(split->own_attention, whole->own_attention) << "cut before tensor " << cut;
        EXPECT_EQ(split->head_sizes, whole->head_sizes);
        EXPECT_EQ(split->on_cpu, whole->on_cpu);
      }
    }
  }
}

}  // namespace
}  // namespace outrider::llama
