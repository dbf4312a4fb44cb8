// The test that own kernels pass before they are used: the processor, the compiler and ggml as they
// are here, not as they were where the tests ran.
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/packed.h"
#include "llama/kernels/kernel_buffer.h"
#include "llama/kernels/kernel_products.h"

#if defined(OUTRIDER_OWN_KERNELS)
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "ggml.h"
#endif

namespace outrider::llama {
namespace {

using kernels::InstructionSet;
using kernels::PackedLayout;
using kernels::WeightType;

constexpr std::int64_t kRows = 37;  // the last strip is not full
constexpr std::int64_t kColumns = 512;
constexpr std::int64_t kTokens = 5;

constexpr std::size_t kExperts = 2;

// A matrix of random blocks: every sign, every value, every scale below 2.
std::vector<std::uint8_t> some_weights(WeightType type, std::uint64_t which = 0) {
  const kernels::WeightFormat& format = kernels::weight_format(type);
  const auto block_bytes = static_cast<std::size_t>(format.block_bytes);
  std::vector<std::uint8_t> bytes(
      static_cast<std::size_t>(kRows * kColumns / format.block_weights) * block_bytes);
  std::uint64_t state = (which << 40) + (static_cast<std::uint64_t>(type) << 32);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(mix64(state++));
  for (std::size_t at = 0; at < bytes.size(); at += block_bytes) {
    kernels::make_finite(type, bytes.data() + at);
  }
  return bytes;
}

std::vector<float> some_activations() {
  std::vector<float> x(static_cast<std::size_t>(kTokens * kColumns));
  std::uint64_t state = 99;
  for (float& value : x) value = static_cast<float>(mix64(state++) % 2001) / 1000.0F - 1.0F;
  return x;
}

class Dense : public OutputRows {
 public:
  explicit Dense(float* out) : out_(out) {}
  float* row(std::int64_t i) const override { return out_ + i * kRows; }

 private:
  float* out_;
};

// [kTokens, kRows]
std::vector<float> product(const InstructionSet& set, WeightType type,
                           const std::vector<std::uint8_t>& bytes, const std::vector<float>& x) {
  const PackedLayout layout(type, kRows, kColumns, set.strip_rows);
  std::vector<std::uint8_t> memory(layout.bytes() + 64);
  void* aligned = memory.data();
  std::size_t space = memory.size();
  auto* packed = static_cast<std::uint8_t*>(std::align(64, layout.bytes(), aligned, space));
  pack_strips(layout, bytes.data(), 0, layout.n_strips, set.flip, packed);
  const ActivationRows rows(set, type, kColumns);
  std::vector<std::uint8_t> activations(rows.row_bytes() * kTokens);
  for (std::int64_t i = 0; i < kTokens; ++i) {
    rows.write(x.data() + i * kColumns,
               activations.data() + static_cast<std::size_t>(i) * rows.row_bytes());
  }
  std::vector<float> out(static_cast<std::size_t>(kTokens * kRows));
  const StripProduct strips(set, layout, kTokens, 1);
  for (std::int64_t piece = 0; piece < strips.n_pieces(); ++piece) {
    strips.multiply(piece, packed, activations.data(), rows.row_bytes(), kTokens,
                    Dense(out.data()));
  }
  return out;
}

// Of one row over cells of some half-precision numbers.
std::vector<float> attention(const InstructionSet& set, const std::vector<float>& x) {
  constexpr int kSize = 80;
  constexpr int kCells = 75;
  std::vector<std::uint16_t> cells(static_cast<std::size_t>(kSize * kCells));
  std::uint64_t state = 7;
  for (std::uint16_t& half : cells) half = static_cast<std::uint16_t>(mix64(state++) & 0xBBFFU);
  std::vector<float> out(kSize);
  const kernels::QueryRow row{.query = x.data(), .end = kCells, .out = out.data()};
  const kernels::CacheHead head{.type = WeightType::kF16,
                                .bytes = reinterpret_cast<const std::uint8_t*>(cells.data()),
                                .stride = kSize * sizeof(std::uint16_t),
                                .size = kSize};
  std::vector<float> scratch(kernels::attention_scratch(1, kSize, kSize, kCells));
  set.attend({.keys = head, .values = head, .scale = 0.1F, .rows = &row, .n_rows = 1},
             scratch.data());
  return out;
}

bool same(const std::vector<float>& a, const float* b) {
  return std::memcmp(a.data(), b, a.size() * sizeof(float)) == 0;
}

#if defined(OUTRIDER_OWN_KERNELS)
// The same product as a graph of ggml's with weights in our buffer, with two threads; token i with
// expert i % n_experts where there are several.
std::vector<float> product_by_ggml(std::span<const std::uint8_t> bytes, std::int64_t n_experts,
                                   const std::vector<float>& x) {
  const ggml_init_params weights_params{ggml_tensor_overhead() * 2, nullptr, true};
  const ggml_init_params graph_params{std::size_t{1} << 20, nullptr, false};
  const ggml_context_ptr weights_context(ggml_init(weights_params));
  const ggml_context_ptr context(ggml_init(graph_params));
  const ggml_backend_ptr backend(ggml_backend_cpu_init());
  if (!weights_context || !context || !backend || kernel_buffer_type() == nullptr) return {};
  ggml_backend_cpu_set_n_threads(backend.get(), 2);
  ggml_tensor* weights =
      ggml_new_tensor_3d(weights_context.get(), GGML_TYPE_Q4_0, kColumns, kRows, n_experts);
  const ggml_backend_buffer_ptr buffer(
      ggml_backend_alloc_ctx_tensors_from_buft(weights_context.get(), kernel_buffer_type()));
  if (!buffer) return {};
  ggml_backend_tensor_set(weights, bytes.data(), 0, bytes.size());
  const bool dense = n_experts == 1;
  ggml_tensor* activations =
      dense ? ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, kColumns, kTokens)
            : ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, kColumns, 1, kTokens);
  std::memcpy(activations->data, x.data(), x.size() * sizeof(float));
  ggml_tensor* experts = ggml_new_tensor_2d(context.get(), GGML_TYPE_I32, 1, kTokens);
  for (std::int64_t i = 0; i < kTokens; ++i) {
    static_cast<std::int32_t*>(experts->data)[i] = static_cast<std::int32_t>(i % n_experts);
  }
  ggml_tensor* out = dense ? ggml_mul_mat(context.get(), weights, activations)
                           : ggml_mul_mat_id(context.get(), weights, activations, experts);
  ggml_cgraph* graph = ggml_new_graph(context.get());
  ggml_build_forward_expand(graph, out);
  if (ggml_backend_graph_compute(backend.get(), graph) != GGML_STATUS_SUCCESS) return {};
  const auto* result = static_cast<const float*>(out->data);
  return {result, result + kTokens * kRows};
}

// What is wrong with products that ggml runs; empty: nothing.
std::string test_through_ggml(const InstructionSet& plain, const std::vector<float>& x) {
  std::vector<std::uint8_t> all;
  std::array<std::vector<float>, kExperts> products;
  for (std::size_t e = 0; e < kExperts; ++e) {
    const std::vector<std::uint8_t> bytes = some_weights(WeightType::kQ40, e);
    products[e] = product(plain, WeightType::kQ40, bytes, x);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  std::vector<float> by_experts;
  for (std::size_t i = 0; i < kTokens; ++i) {
    const float* const row = products[i % kExperts].data() + i * kRows;
    by_experts.insert(by_experts.end(), row, row + kRows);
  }
  for (const bool dense : {true, false}) {
    const std::vector<float>& expected = dense ? products[0] : by_experts;
    const std::vector<float> got =
        dense ? product_by_ggml(std::span(all).first(all.size() / kExperts), 1, x)
              : product_by_ggml(all, static_cast<std::int64_t>(kExperts), x);
    if (got.size() == expected.size() && same(expected, got.data())) continue;
    return std::string("a product") + (dense ? "" : " with experts") +
           " that ggml ran with them is not that of plain code";
  }
  return "";
}
#else
std::string test_through_ggml(const InstructionSet& /*plain*/, const std::vector<float>& /*x*/) {
  return "";
}
#endif

}  // namespace

std::string test_kernel_buffer(const InstructionSet& set) {
  const InstructionSet& plain = *kernels::instruction_sets().back();
  const std::vector<float> x = some_activations();
  if (!same(attention(plain, x), attention(set, x).data())) {
    return "attention with " + std::string(set.name) +
           " instructions is not that of plain code on this machine";
  }
  for (int i = 0; i < kernels::kWeightTypes; ++i) {
    const auto type = static_cast<WeightType>(i);
    const std::vector<std::uint8_t> bytes = some_weights(type);
    const std::vector<float> expected = product(plain, type, bytes, x);
    const std::string name(kernels::weight_format(type).name);
    if (!same(expected, product(set, type, bytes, x).data())) {
      return "the products of " + name + " weights with " + std::string(set.name) +
             " instructions are not those of plain code on this machine";
    }
  }
  return test_through_ggml(plain, x);
}

}  // namespace outrider::llama
