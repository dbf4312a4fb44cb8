// Kernels that do not compute what plain code computes are not used, and the reason is said. Each
// test needs a process of its own (as ctest gives it): kernels are registered once.
#include "llama/kernels/own_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "llama/base/backend.h"
#include "llama/kernels/kernel_buffer.h"
#include "testing/llama_fixture.h"

namespace outrider::llama {
namespace {

using kernels::InstructionSet;
using kernels::WeightType;

const InstructionSet& right() { return *kernels::instruction_sets().front(); }

// One output of the strip in its last bit.
template <WeightType kType>
void multiply_wrongly(const std::uint8_t* strip, std::int64_t n_columns, const void* activations,
                      std::size_t stride, int n, float* out) {
  right().multiply[static_cast<std::size_t>(kType)](strip, n_columns, activations, stride, n, out);
  out[1] = std::nextafter(out[1], 1e30F);
}

void attend_wrongly(const kernels::Attention& call, float* scratch) {
  right().attend(call, scratch);
  call.rows[0].out[0] = std::nextafter(call.rows[0].out[0], 1e30F);
}

// Wrong only with several rows at once, as the test without ggml never has them.
void attend_bf16_wrongly(const kernels::Attention& call, float* scratch) {
  right().attend(call, scratch);
  if (call.n_rows > 1 && call.values.type == WeightType::kBf16) {
    call.rows[0].out[0] = std::nextafter(call.rows[0].out[0], 1e30F);
  }
}

void quantise_wrongly(const float* x, std::int64_t count, kernels::OffsetRule rule,
                      kernels::ActivationGroup* out) {
  right().quantise(x, count, rule, out);
  out[0].scale *= 1.0001F;
}

template <WeightType kType>
InstructionSet with_wrong_product() {
  InstructionSet set = right();
  set.multiply[static_cast<std::size_t>(kType)] = multiply_wrongly<kType>;
  return set;
}

TEST(KernelCheck, FindsOneBitOfAnyPart) {
  ensure_backend();
  if (!own_kernels().available) GTEST_SKIP() << own_kernels().reason;
  EXPECT_EQ(test_kernel_buffer(right()), "");
  EXPECT_EQ(test_kernel_buffer(with_wrong_product<WeightType::kQ5K>()),
            "the products of q5_K weights with " + std::string(right().name) +
                " instructions are not those of plain code on this machine");
  EXPECT_NE(test_kernel_buffer(with_wrong_product<WeightType::kBf16>()).find("bf16"),
            std::string::npos);
  InstructionSet set = right();
  set.attend = attend_wrongly;
  EXPECT_NE(test_kernel_buffer(set).find("attention with"), std::string::npos);
  set = right();
  set.quantise = quantise_wrongly;
  EXPECT_NE(test_kernel_buffer(set), "");
}

InstructionSet with_wrong_attention() {
  InstructionSet set = right();
  set.attend = attend_bf16_wrongly;
  return set;
}

TEST(KernelUseTest, TheReasonsAreSaidInOnePlaceForALoadAndForWhatIsOnlyInspected) {
  ensure_backend();
  if (!own_kernels().available) GTEST_SKIP() << own_kernels().reason;
  const auto reason = [](KernelChoice choice, bool extra_bufts, std::uint64_t bytes) {
    const KernelUse use = kernel_use(choice, extra_bufts, bytes);
    EXPECT_EQ(use.own, use.reason.empty());
    EXPECT_EQ(use.own, !use.instruction_set.empty());
    // A load that packs nothing says the same.
    const KernelsForLoad load(choice, extra_bufts);
    EXPECT_EQ(load.wanted(), kernel_use(choice, extra_bufts, 1).own);
    EXPECT_EQ(load.use().reason, kernel_use(choice, extra_bufts, 0).reason);
    return use.reason;
  };
  EXPECT_EQ(reason(KernelChoice::kAuto, true, 100), "");
  EXPECT_NE(reason(KernelChoice::kAuto, true, 0).find("no weights"), std::string::npos);
  EXPECT_NE(reason(KernelChoice::kAuto, false, 100).find("as the file has them"),
            std::string::npos);
  const std::string on_workers = kernel_use(KernelChoice::kAuto, true, 0, true).reason;
  EXPECT_NE(on_workers.find("on the workers"), std::string::npos) << on_workers;
  EXPECT_TRUE(kernel_use(KernelChoice::kAuto, true, 100, true).own) << "some are here";
  EXPECT_NE(reason(KernelChoice::kStock, true, 100).find("kernels=stock"), std::string::npos);
  EXPECT_NE(reason(KernelChoice::kStock, false, 100).find("kernels=stock"), std::string::npos);
}

// Registers them before the model's backend does.
template <InstructionSet (*kMake)()>
struct Registered {
  Registered() {
    static const InstructionSet wrong = kMake();
    register_own_kernels(wrong);
  }
};

class WrongKernelsTest : private Registered<with_wrong_product<WeightType::kQ6K>>,
                         public testing::TinyModelTest {};

TEST_F(WrongKernelsTest, AreNotUsedAndTheReasonIsSaid) {
  if (own_kernels().available) GTEST_SKIP() << "registered by an earlier test of this process";
  if (own_kernels().reason.find("private headers") != std::string::npos) GTEST_SKIP();
  load({.weight_type = testing::WeightType::kQ4_0}, /*extra_bufts=*/true);
  const KernelUse& use = file().facts().kernels;
  EXPECT_FALSE(use.own);
  EXPECT_EQ(use.reason, "the products of q6_K weights with " + std::string(right().name) +
                            " instructions are not those of plain code on this machine");
  EXPECT_EQ(use.packed_bytes, 0U);
  EXPECT_EQ(use.instruction_set, "");

  // llama.cpp's compute it.
  const std::vector<Token> text = random_text(12, 7);
  const std::vector<testing::Row> rows = fresh_rows(text);
  FileOptions options;
  options.n_gpu_layers = 0;
  options.kernels = KernelChoice::kStock;
  const Result<std::shared_ptr<ModelFile>> stock =
      ModelFile::load(file().facts().path, options, {});
  ASSERT_TRUE(stock.ok());
  const Result<std::unique_ptr<LlamaModel>> model =
      LlamaModel::create(*stock, {.n_ctx = 1024, .n_threads = 1}, {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  for (std::size_t i = 0; i < text.size(); ++i) {
    testing::expect_bits(testing::step(**model, 0, text[i]), rows[i]);
  }
}

class WrongAttentionTest : private Registered<with_wrong_attention>,
                           public testing::TinyModelTest {};

TEST_F(WrongAttentionTest, IsFoundWhereOnlyGgmlsGraphHasIt) {
  if (own_kernels().available) GTEST_SKIP() << "registered by an earlier test of this process";
  if (own_kernels().reason.find("private headers") != std::string::npos) GTEST_SKIP();
  load({.weight_type = testing::WeightType::kQ4_0}, /*extra_bufts=*/true);
  const KernelUse& use = file().facts().kernels;
  EXPECT_FALSE(use.own);
  EXPECT_EQ(use.reason,
            "attention over a bf16 cache that ggml ran with them is not that of plain code");
}

}  // namespace
}  // namespace outrider::llama
