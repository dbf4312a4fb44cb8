// The test that own kernels pass before they are used: the processor, the compiler and ggml as they
// are here, not as they were where the tests ran.
#include <cstdint>
#include <cstring>
#include <memory>
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

// Bytes that any type takes for weights: no half has its highest exponent bits set, so none is
// infinite.
std::vector<std::uint8_t> some_weights(WeightType type) {
  const PackedLayout layout(type, kRows, kColumns, 8);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(kRows) * layout.row_bytes);
  std::uint64_t state = 1 + static_cast<std::uint64_t>(type);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(mix64(state++) & 0x3BU);
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
// The same product as a graph of ggml's with weights in our buffer, with two threads.
std::vector<float> product_by_ggml(const std::vector<std::uint8_t>& bytes,
                                   const std::vector<float>& x) {
  const ggml_init_params weights_params{ggml_tensor_overhead() * 2, nullptr, true};
  const ggml_init_params graph_params{std::size_t{1} << 20, nullptr, false};
  const ggml_context_ptr weights_context(ggml_init(weights_params));
  const ggml_context_ptr context(ggml_init(graph_params));
  const ggml_backend_ptr backend(ggml_backend_cpu_init());
  if (!weights_context || !context || !backend) return {};
  ggml_backend_cpu_set_n_threads(backend.get(), 2);
  ggml_tensor* weights = ggml_new_tensor_2d(weights_context.get(), GGML_TYPE_Q4_0, kColumns, kRows);
  const ggml_backend_buffer_ptr buffer(
      ggml_backend_alloc_ctx_tensors_from_buft(weights_context.get(), kernel_buffer_type()));
  if (!buffer) return {};
  ggml_backend_tensor_set(weights, bytes.data(), 0, bytes.size());
  ggml_tensor* activations = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, kColumns, kTokens);
  std::memcpy(activations->data, x.data(), x.size() * sizeof(float));
  ggml_tensor* out = ggml_mul_mat(context.get(), weights, activations);
  ggml_cgraph* graph = ggml_new_graph(context.get());
  ggml_build_forward_expand(graph, out);
  if (ggml_backend_graph_compute(backend.get(), graph) != GGML_STATUS_SUCCESS) return {};
  const auto* result = static_cast<const float*>(out->data);
  return {result, result + kTokens * kRows};
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
#if defined(OUTRIDER_OWN_KERNELS)
    if (type != WeightType::kQ40) continue;
    const std::vector<float> by_ggml = product_by_ggml(bytes, x);
    if (by_ggml.size() != expected.size() || !same(expected, by_ggml.data())) {
      return "a product that ggml ran with them is not that of plain code";
    }
#endif
  }
  return "";
}

}  // namespace outrider::llama
