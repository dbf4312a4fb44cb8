// Products that ggml runs with Outrider's kernels are those of testing/kernel_reference.h, bit for
// bit: dense and with experts, whatever the number of rows and threads.
#include "llama/kernels/kernel_buffer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "llama/base/backend.h"
#include "llama/kernels/own_kernels.h"
#include "testing/kernel_reference.h"
#include "testing/llama_fixture.h"

namespace outrider::llama {
namespace {

using kernels::WeightType;
using testing::random_rows;
using testing::reference_activations;
using testing::reference_product;
using testing::reference_row;
using testing::ReferenceRow;

ggml_type ggml_type_of(WeightType type) {
  for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
    const auto candidate = static_cast<ggml_type>(i);
    const char* name = ggml_type_name(candidate);
    if (name != nullptr && kernels::weight_format(type).name == name) return candidate;
  }
  return GGML_TYPE_COUNT;
}

class KernelBufferTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    ensure_backend();
    if (!own_kernels().available) GTEST_SKIP() << own_kernels().reason;
  }
  WeightType type() const { return static_cast<WeightType>(GetParam()); }
  int n_columns() const { return kernels::weight_format(type()).block_weights == 256 ? 512 : 608; }

  // A matrix of `n_experts` times `n_rows` rows in our buffer, and its rows as the reference has
  // them.
  void make_weights(int n_rows, int n_experts) {
    context_.reset(ggml_init({ggml_tensor_overhead() * 2, nullptr, true}));
    weights_ =
        ggml_new_tensor_3d(context_.get(), ggml_type_of(type()), n_columns(), n_rows, n_experts);
    ggml_set_name(weights_, "blk.0.ffn_up.weight");  // float types are taken by name
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(context_.get(), kernel_buffer_type()));
    ASSERT_TRUE(buffer_);
    const std::vector<std::uint8_t> bytes =
        random_rows(type(), static_cast<std::int64_t>(n_rows) * n_experts, n_columns(), &random_);
    ASSERT_EQ(bytes.size(), ggml_nbytes(weights_));
    ggml_backend_tensor_set(weights_, bytes.data(), 0, bytes.size());
    rows_.clear();
    const std::size_t row_bytes = ggml_row_size(weights_->type, n_columns());
    for (std::size_t at = 0; at < bytes.size(); at += row_bytes) {
      rows_.push_back(reference_row(type(), bytes.data() + at, n_columns()));
    }
    raw_ = bytes;
  }

  std::vector<float> random_row() {
    std::normal_distribution<float> normal;
    std::vector<float> x(static_cast<std::size_t>(n_columns()));
    for (float& value : x) value = normal(random_);
    return x;
  }

  void compute(ggml_context* context, ggml_tensor* out, int n_threads) {
    const ggml_backend_ptr backend(ggml_backend_cpu_init());
    ggml_backend_cpu_set_n_threads(backend.get(), n_threads);
    ggml_cgraph* graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, out);
    ASSERT_EQ(ggml_backend_graph_compute(backend.get(), graph), GGML_STATUS_SUCCESS);
  }

  std::mt19937_64 random_{5};
  ggml_context_ptr context_;
  ggml_tensor* weights_ = nullptr;
  ggml_backend_buffer_ptr buffer_;
  std::vector<std::uint8_t> raw_;
  std::vector<ReferenceRow> rows_;  // [n_experts * n_rows]
};

// What does not depend on the type, and starts a process for each case.
class KernelShapesTest : public KernelBufferTest {};

TEST_P(KernelBufferTest, ADenseProductHasTheReferencesBitsForAnyRowsAndThreads) {
  constexpr int kRows = 75;
  make_weights(kRows, 1);
  std::vector<std::vector<float>> x;
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < 70; ++i) {
    x.push_back(random_row());
    expected.emplace_back();
    for (const ReferenceRow& row : rows_) {
      expected.back().push_back(reference_product(row, x.back(), reference_activations(x.back())));
    }
  }
  for (const int n : {1, 2, 3, 4, 5, 8, 16, 31, 32, 70}) {
    for (int n_threads = 1; n_threads <= 4; ++n_threads) {
      const ggml_context_ptr context(ggml_init({std::size_t{16} << 20, nullptr, false}));
      // Every second row of a wider tensor: rows need not lie one behind the other.
      ggml_tensor* wide = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, n_columns(), 2 * n);
      std::memset(wide->data, 0, ggml_nbytes(wide));
      for (int i = 0; i < n; ++i) {
        std::memcpy(static_cast<char*>(wide->data) + static_cast<std::size_t>(2 * i) * wide->nb[1],
                    x[static_cast<std::size_t>(i)].data(), x[0].size() * sizeof(float));
      }
      ggml_tensor* activations =
          ggml_view_2d(context.get(), wide, n_columns(), n, 2 * wide->nb[1], 0);
      ggml_tensor* out = ggml_mul_mat(context.get(), weights_, activations);
      compute(context.get(), out, n_threads);
      for (int i = 0; i < n; ++i) {
        const float* row = static_cast<const float*>(out->data) + i * kRows;
        ASSERT_EQ(
            std::memcmp(row, expected[static_cast<std::size_t>(i)].data(), kRows * sizeof(float)),
            0)
            << n << " rows, " << n_threads << " threads, row " << i;
      }
    }
  }
}

// One matrix for all of a batch of batches, whose rows lie in another order than their numbers.
TEST_P(KernelBufferTest, AMatrixMeetsEachRowOfABatchOfFourDimensions) {
  constexpr int kRows = 33;
  constexpr int kSizes[3] = {3, 2, 4};  // of the product; the activations have them turned around
  make_weights(kRows, 1);
  const ggml_context_ptr context(ggml_init({std::size_t{4} << 20, nullptr, false}));
  ggml_tensor* all = ggml_new_tensor_4d(context.get(), GGML_TYPE_F32, n_columns(), kSizes[2],
                                        kSizes[0], kSizes[1]);
  std::vector<std::vector<float>> x;
  for (std::int64_t i = 0; i < ggml_nrows(all); ++i) {
    x.push_back(random_row());
    std::memcpy(static_cast<float*>(all->data) + i * n_columns(), x.back().data(),
                x.back().size() * sizeof(float));
  }
  ggml_tensor* turned = ggml_permute(context.get(), all, 0, 3, 1, 2);
  ggml_tensor* out = ggml_mul_mat(context.get(), weights_, turned);
  ASSERT_EQ(out->ne[1] * out->ne[2] * out->ne[3], ggml_nrows(all));
  compute(context.get(), out, 2);
  for (int i = 0; i < kSizes[0] * kSizes[1] * kSizes[2]; ++i) {
    const int i1 = i % kSizes[0];
    const int i2 = i / kSizes[0] % kSizes[1];
    const int i3 = i / kSizes[0] / kSizes[1];
    const std::vector<float>& row =
        x[static_cast<std::size_t>((i2 * kSizes[0] + i1) * kSizes[2] + i3)];
    for (int r = 0; r < kRows; ++r) {
      const float want =
          reference_product(rows_[static_cast<std::size_t>(r)], row, reference_activations(row));
      const float got = static_cast<const float*>(out->data)[i * kRows + r];
      ASSERT_EQ(std::memcmp(&got, &want, sizeof got), 0) << got << " instead of " << want;
    }
  }
}

// A worker's peer may send them: what lies behind them must not be read.
TEST_P(KernelBufferTest, ActivationsOfAnotherTypeEndTheProcessAsWithGgmlsKernels) {
  make_weights(4, 1);
  const ggml_context_ptr context(ggml_init({std::size_t{1} << 20, nullptr, false}));
  ggml_tensor* halves = ggml_new_tensor_2d(context.get(), GGML_TYPE_F16, n_columns(), 1);
  ggml_set_zero(halves);
  ggml_tensor* out = ggml_mul_mat(context.get(), weights_, halves);
  const auto end = [&] {
    setenv("GGML_NO_BACKTRACE", "1", 1);
    compute(context.get(), out, 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(end(), "GGML_TYPE_F32");
}

// Nor may what does not fit be written: each shape that a product asserts, one at a time.
TEST_P(KernelShapesTest, OutputsThatDoNotFitEndTheProcessAsWithGgmlsKernels) {
  make_weights(8, 3);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end = [&](bool experts, const auto& change) {
    setenv("GGML_NO_BACKTRACE", "1", 1);
    const ggml_context_ptr context(ggml_init({std::size_t{1} << 20, nullptr, false}));
    ggml_context* g = context.get();
    ggml_tensor* x = ggml_new_tensor_3d(g, GGML_TYPE_F32, n_columns(), 2, 4);
    ggml_set_zero(x);
    ggml_tensor* ids = ggml_new_tensor_2d(g, GGML_TYPE_I32, 2, 4);
    ggml_set_zero(ids);
    if (!experts) make_weights(8, 1);
    ggml_tensor* out =
        experts ? ggml_mul_mat_id(g, weights_, x, ids) : ggml_mul_mat(g, weights_, x);
    change(out);
    compute(g, out, 1);
    std::exit(0);
  };
  const auto unchanged = [](ggml_tensor*) {};
  const auto narrow = [](ggml_tensor* out) { --out->ne[0]; };
  const auto spread = [](ggml_tensor* out) { out->nb[0] *= 2; };
  const auto short_of_a_row = [](ggml_tensor* out) { --out->ne[1]; };
  const auto overlapping = [](ggml_tensor* out) { out->nb[1] = 1; };
  for (const bool experts : {false, true}) {
    EXPECT_EXIT(end(experts, unchanged), ::testing::ExitedWithCode(0), "");
    EXPECT_DEATH(end(experts, narrow), "n_rows");
    EXPECT_DEATH(end(experts, spread), "sizeof\\(float\\)");
    EXPECT_DEATH(end(experts, short_of_a_row), "op->ne\\[1\\]");
    EXPECT_DEATH(end(experts, overlapping), "op->nb\\[0\\] <= op->nb\\[1\\]");
  }
  const auto fewer_tokens = [](ggml_tensor* out) { --out->src[1]->ne[2]; };
  EXPECT_DEATH(end(true, fewer_tokens), "x->ne\\[2\\] == ids->ne\\[1\\]");
}

TEST_P(KernelBufferTest, WhatHasNoWeightsIsNotTaken) {
  make_weights(4, 1);
  EXPECT_TRUE(kernel_buffer_takes(weights_));
  for (const int dimension : {0, 1, 2}) {
    ggml_tensor empty = *weights_;
    empty.ne[dimension] = 0;
    EXPECT_FALSE(kernel_buffer_takes(&empty)) << dimension;
  }
}

TEST_P(KernelBufferTest, RowsThatMeetInAnExpertHaveTheBitsOfRowsThatComeAlone) {
  constexpr int kRows = 40;
  constexpr int kExperts = 5;
  constexpr int kUsed = 2;
  make_weights(kRows, kExperts);
  // The last number gives an expert more rows than one call of a kernel takes.
  for (const int n : {1, 3, 17, 150}) {
    for (const bool one_row_for_all : {true, false}) {
      for (const int n_threads : {1, 3}) {
        if (n > kernels::kMaxTile && (one_row_for_all || n_threads == 1)) continue;
        const ggml_context_ptr context(ggml_init({std::size_t{16} << 20, nullptr, false}));
        const int n_inner = one_row_for_all ? 1 : kUsed;
        ggml_tensor* x = ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, n_columns(), n_inner, n);
        ggml_tensor* ids = ggml_new_tensor_2d(context.get(), GGML_TYPE_I32, kUsed, n);
        std::vector<std::vector<float>> rows;
        for (int i = 0; i < n_inner * n; ++i) {
          rows.push_back(random_row());
          std::memcpy(static_cast<float*>(x->data) + i * n_columns(), rows.back().data(),
                      rows.back().size() * sizeof(float));
        }
        std::vector<std::int32_t> chosen;
        for (int i = 0; i < n; ++i) {
          // The last expert gets no row; the first many.
          const auto first = static_cast<std::int32_t>(random_() % 2);
          chosen.push_back(first);
          chosen.push_back(2 + static_cast<std::int32_t>(random_() % 2));
        }
        std::memcpy(ids->data, chosen.data(), chosen.size() * sizeof(std::int32_t));
        ggml_tensor* out = ggml_mul_mat_id(context.get(), weights_, x, ids);
        compute(context.get(), out, n_threads);
        for (int pair = 0; pair < kUsed * n; ++pair) {
          const int inner = one_row_for_all ? pair / kUsed : pair;
          const std::vector<float>& row = rows[static_cast<std::size_t>(inner)];
          for (int r = 0; r < kRows; ++r) {
            const auto at =
                static_cast<std::size_t>(chosen[static_cast<std::size_t>(pair)] * kRows + r);
            const float want = reference_product(rows_[at], row, reference_activations(row));
            const float got = static_cast<const float*>(out->data)[pair * kRows + r];
            ASSERT_EQ(std::memcmp(&got, &want, sizeof got), 0)
                << got << " instead of " << want << ", pair " << pair << " of " << kUsed * n;
          }
        }
      }
    }
  }
}

// Elsewhere tests that need them are left out, so this is where it is seen that they are missing.
TEST(OwnKernels, AreThereWithThePinnedLlama) {
  ensure_backend();
  EXPECT_TRUE(own_kernels().available) << own_kernels().reason;
}

// The reference reads the types as ggml does.
TEST_P(KernelBufferTest, TheReferencesWeightsAreGgmls) {
  make_weights(3, 1);
  std::vector<float> theirs(static_cast<std::size_t>(n_columns()));
  const std::size_t row_bytes = ggml_row_size(weights_->type, n_columns());
  const ggml_to_float_t to_float = ggml_get_type_traits(weights_->type)->to_float;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (weights_->type == GGML_TYPE_F32) {
      std::memcpy(theirs.data(), raw_.data() + r * row_bytes, row_bytes);
    } else {
      to_float(raw_.data() + r * row_bytes, theirs.data(), n_columns());
    }
    for (std::size_t k = 0; k < theirs.size(); ++k) {
      ASSERT_NEAR(rows_[r].dequantised(k), theirs[k], 1e-6F * (1.0F + std::fabs(theirs[k])))
          << "weight " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OneType, KernelShapesTest,
                         ::testing::Values(static_cast<int>(WeightType::kQ40)));

INSTANTIATE_TEST_SUITE_P(EveryType, KernelBufferTest, ::testing::Range(0, kernels::kWeightTypes),
                         [](const ::testing::TestParamInfo<int>& test) {
                           return std::string(
                               kernels::weight_format(static_cast<WeightType>(test.param)).name);
                         });

class KernelChoiceTest : public testing::TinyModelTest,
                         public ::testing::WithParamInterface<testing::WeightType> {};

TEST_P(KernelChoiceTest, AModelSaysWhichKernelsItGotAndWhyNotTheOwn) {
  load({.weight_type = GetParam()}, /*extra_bufts=*/true);
  if (!own_kernels().available) GTEST_SKIP() << own_kernels().reason;
  const KernelUse& own = file().facts().kernels;
  EXPECT_TRUE(own.own);
  EXPECT_EQ(own.instruction_set, own_kernels().instruction_set);
  EXPECT_EQ(own.reason, "");
  EXPECT_GT(own.packed_bytes, 0U);

  FileOptions options;
  options.kernels = KernelChoice::kStock;
  const Result<std::shared_ptr<ModelFile>> stock =
      ModelFile::load(file().facts().path, options, {});
  ASSERT_TRUE(stock.ok());
  EXPECT_FALSE((*stock)->facts().kernels.own);
  EXPECT_NE((*stock)->facts().kernels.reason.find("kernels=stock"), std::string::npos);
  EXPECT_EQ((*stock)->facts().kernels.packed_bytes, 0U);
}

// llama.cpp offers a scale with the operation of the matrix that it belongs to.
TEST_P(KernelChoiceTest, ScalesBesideMatricesStayAsTheyAre) {
  for (const int n_expert : {0, 4}) {
    testing::TinyModelOptions options{.n_expert = n_expert, .weight_type = GetParam()};
    std::vector<std::vector<float>> rows;
    std::size_t packed = 0;
    for (const bool scales : {false, true}) {
      options.weight_scales = scales;
      load(options, /*extra_bufts=*/true);
      if (!own_kernels().available) GTEST_SKIP() << own_kernels().reason;
      const std::size_t bytes = file().facts().kernels.packed_bytes;
      EXPECT_GT(bytes, 0U);
      const std::vector<Token> text = random_text(12, 5);
      if (scales) {
        EXPECT_EQ(bytes, packed);
        EXPECT_EQ(fresh_rows(text), rows) << n_expert << " experts: a factor of 1 changes nothing";
      } else {
        packed = bytes;
        rows = fresh_rows(text);
      }
    }
  }
}

TEST(KernelNames, OnlyMatricesAreOnlyMultipliedWith) {
  for (const char* const name :
       {"blk.0.attn_q.weight", "blk.11.ffn_up_exps.weight", "output.weight", "token_embd.weight",
        "blk.0.attn_q.weight.lora_a", "blk.0.ffn_gate_inp.weight", "per_layer_model_proj.weight",
        "blk.0.attn_k_b.weight", "blk.0.attn_v_b.weight", "blk.0.attn_output_a.weight"}) {
    EXPECT_TRUE(kernel_only_multiplies(name)) << name;
  }
  for (const char* const name :
       {"blk.0.attn_q.scale", "blk.0.ffn_gate_inp.scale", "blk.0.ffn_up_exps.scale", "output.scale",
        "blk.0.ffn_up.bias", "blk.0.hc_ffn_norm.weight", "blk.0.ffn_norm.weight",
        "position_embd.weight", "blk.0.ssm_conv1d.weight", "per_layer_token_embd.weight",
        "per_layer_proj_norm.weight"}) {
    EXPECT_FALSE(kernel_only_multiplies(name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(WeightTypes, KernelChoiceTest,
                         ::testing::Values(testing::WeightType::kQ4_0, testing::WeightType::kQ8_0,
                                           testing::WeightType::kF32));

}  // namespace
}  // namespace outrider::llama
