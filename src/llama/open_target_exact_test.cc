// Which weight types are exact depends on the machine, so the verdicts of an opening are held
// against what the opened model itself does.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "llama/base/backend.h"
#include "llama/exactness/exactness_rule.h"
#include "llama/model/memory.h"
#include "llama/open_target.h"
#include "testing/llama_open_target.h"
#include "testing/tiny_gguf_latent.h"

namespace outrider::llama {
namespace {

using testing::OpenTargetTest;

TEST_F(OpenTargetTest, QuantisedWeightsAreExactAtEveryWidth) {
  using Case = std::pair<const char*, KernelChoice>;
  for (const auto& [type, kernels] :
       {Case{"Q4_0", KernelChoice::kAuto}, Case{"Q8_0", KernelChoice::kAuto},
        Case{"Q4_0", KernelChoice::kStock}, Case{"Q8_0", KernelChoice::kStock}}) {
    ModelOptions with = options(model(type));
    with.kernels = kernels;
    OpenedTarget opened = open(with, target(/*widest=*/16));
    const bool own = opened.file->facts().kernels.own;
    EXPECT_EQ(opened.exactness.verdict(), "exact") << type << ": " << opened.exactness.reason;
    EXPECT_EQ(opened.exactness.width, 16);
    EXPECT_EQ(opened.settings.type_k, own ? "f16" : "bf16");
    EXPECT_EQ(opened.settings.type_v, "f16");
    EXPECT_TRUE(opened.settings.flash_attention);
    EXPECT_EQ(opened.settings.max_width, 16);
    EXPECT_EQ(opened.settings.cores, own ? threads::Cores::kLeft : threads::Cores::kAsked);
    EXPECT_EQ(opened.longest_piece, own ? 65 : 512) << "a short probe is enough for own kernels";
    EXPECT_NE(opened.exactness.coverage.find("520 cells"), std::string::npos)
        << opened.exactness.coverage;
    EXPECT_FALSE(opened.probe_cached);
    EXPECT_GT(opened.probe_seconds, 0.0);
    EXPECT_EQ(first_inexact(*opened.model, 16), 17) << type;
  }
}

TEST_F(OpenTargetTest, MixturesOfExpertsAreExactAtEveryWidth) {
  for (const char* const type : {"Q4_0", "Q4_K_S", "Q6_K", "MXFP4_MOE"}) {
    OpenedTarget opened = open(options(model(type, /*n_expert=*/5)), target(/*widest=*/16));
    if (!opened.file->facts().kernels.own) GTEST_SKIP() << opened.file->facts().kernels.reason;
    EXPECT_EQ(opened.exactness.verdict(), "exact") << type << ": " << opened.exactness.reason;
    EXPECT_EQ(opened.exactness.width, 16);
    EXPECT_EQ(first_inexact(*opened.model, 16), 17) << type;
  }
}

// F32 weights, an F16 cache, repacked K types: where the machine shows a difference the verdict has
// it, and where the verdict is exact there is none.
TEST_F(OpenTargetTest, AVerdictIsWhatTheModelDoes) {
  struct Case {
    const char* type;
    const char* cache;
    KernelChoice kernels = KernelChoice::kAuto;
  };
  int inexact = 0;
  for (const Case& c :
       {Case{"F32", ""}, Case{"F16", ""}, Case{"Q4_0", "f16"}, Case{"Q4_K_S", ""},
        Case{"IQ4_XS", ""}, Case{"Q6_K", ""}, Case{"Q4_0", "f16", KernelChoice::kStock},
        Case{"F32", "", KernelChoice::kStock}, Case{"IQ4_XS", "", KernelChoice::kStock}}) {
    ModelOptions with = options(model(c.type));
    with.kernels = c.kernels;
    with.cache_type_k = with.cache_type_v = c.cache;
    // A query over a float cache is split over the threads, of which there must be several.
    if (*c.cache != 0) with.n_threads = 2;
    OpenedTarget opened = open(with, target());
    const Exactness& exactness = opened.exactness;
    const std::string what = std::string(c.type) + " " + c.cache + ": " + exactness.verdict();
    // The widest width that is claimed to be exact, and no other.
    const std::int32_t exact_to = exactness.kind == Exactness::Kind::kExact ? 8 : exactness.width;
    EXPECT_EQ(first_inexact(*opened.model, 8), exact_to + 1) << what;
    if (exactness.kind == Exactness::Kind::kExact) continue;
    ++inexact;
    EXPECT_NE(exactness.reason.find("differs from single steps"), std::string::npos) << what;
    EXPECT_EQ(opened.settings.max_width, 8) << "auto reports and does not limit";
  }
  if (inexact == 0) GTEST_SKIP() << "this machine computes all of them exactly";
}

// Its values are a part of its keys, for which llama.cpp takes no two types.
TEST_F(OpenTargetTest, AModelWithLatentAttentionOpensByDefaultAndDoesWhatItsVerdictSays) {
  using testing::WeightType;
  const std::string path = dir_.file("latent.gguf");
  for (const auto& [type, kernels] : {std::pair(WeightType::kF32, KernelChoice::kAuto),
                                      std::pair(WeightType::kQ8_0, KernelChoice::kAuto),
                                      std::pair(WeightType::kQ8_0, KernelChoice::kStock)}) {
    const Status written = testing::write_tiny_latent(path, {.weight_type = type});
    ASSERT_TRUE(written.ok()) << written.message();
    ModelOptions with = options(path);
    with.kernels = kernels;
    const Result<RuleFacts> facts = read_rule_facts(with);
    ASSERT_TRUE(facts.ok()) << facts.status().message();
    EXPECT_TRUE(facts->one_cache_type);
    const Result<MemoryEstimate> memory =
        estimate_memory(with, settings_rule(*facts, with).context);
    EXPECT_TRUE(memory.ok()) << memory.status().message();

    OpenedTarget opened = open(with, target());
    ASSERT_NE(opened.model, nullptr);
    EXPECT_EQ(opened.settings.type_k, opened.settings.type_v);
    const bool plain = !opened.file->facts().kernels.own && has_amx_layout();
    EXPECT_EQ(opened.extra_bufts, !plain);
    EXPECT_EQ(opened.file->facts().extra_bufts, !plain);
    const auto names_amx = [](const std::string& note) {
      return note.find("AMX") != std::string::npos;
    };
    EXPECT_EQ(std::any_of(opened.notes.begin(), opened.notes.end(), names_amx), plain);
    const Exactness& exactness = opened.exactness;
    const std::int32_t exact_to = exactness.kind == Exactness::Kind::kExact ? 8 : exactness.width;
    EXPECT_EQ(first_inexact(*opened.model, 8), exact_to + 1) << exactness.reason;
  }
  for (const bool for_k : {true, false}) {
    ModelOptions with = options(path);
    (for_k ? with.cache_type_k : with.cache_type_v) = "bf16";
    const OpenedTarget opened = open(with, target(/*widest=*/1));
    ASSERT_NE(opened.model, nullptr);
    EXPECT_EQ(opened.settings.type_k, "bf16");
    EXPECT_EQ(opened.settings.type_v, "bf16");
  }
}

// What depends on their number would change where others want the cores. Two sequences of a model
// with recurrent layers are not exact, although all its products and its attention are ours.
TEST_F(OpenTargetTest, FewerThreadsThanAskedForComputeOnlyWhatWasSeenToBeExact) {
  const std::string path = dir_.file("hybrid.gguf");
  ASSERT_TRUE(testing::write_tiny_gguf(path, {.architecture = testing::TinyArchitecture::kShortConv,
                                              .weight_type = testing::WeightType::kQ8_0})
                  .ok());
  ModelOptions with = options(path);
  for (const std::int32_t n_sequences : {1, 2}) {
    with.n_sequences = n_sequences;
    const OpenedTarget opened = open(with, target(/*widest=*/4));
    ASSERT_NE(opened.model, nullptr);
    const bool exact = opened.exactness.kind == Exactness::Kind::kExact;
    if (n_sequences == 2) {
      EXPECT_FALSE(exact);
    }
    if (!exact) {
      EXPECT_EQ(opened.settings.cores, threads::Cores::kAsked) << n_sequences;
    }
    EXPECT_EQ(opened.model->settings().cores, opened.settings.cores);
  }
}

}  // namespace
}  // namespace outrider::llama
