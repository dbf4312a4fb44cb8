// The part of the test before own kernels are used (llama/kernels/kernel_check.h) that runs through
// ggml: a few small graphs, with two threads, whose results plain code has, too.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "llama/kernels/compute_threads.h"
#include "llama/kernels/kernel_buffer.h"
#include "llama/kernels/kernel_check.h"

namespace outrider::llama {
namespace {

using kernels::InstructionSet;
using kernels::WeightType;

constexpr std::int64_t kColumns = 512;
constexpr std::int64_t kTokens = 5;

// A graph of ggml's that multiplies with one matrix, or the matrices of some experts, in our
// buffer.
class Graph {
 public:
  Graph(std::int64_t n_rows, std::int64_t n_experts, std::span<const std::uint8_t> bytes)
      : weights_context_(ggml_init({ggml_tensor_overhead() * 2, nullptr, true})),
        context_(ggml_init({std::size_t{1} << 20, nullptr, false})),
        backend_(ggml_backend_cpu_init()) {
    if (!weights_context_ || !context_ || !backend_ || kernel_buffer_type() == nullptr) return;
    ggml_backend_cpu_set_n_threads(backend_.get(), 2);
    ggml_tensor* weights =
        ggml_new_tensor_3d(weights_context_.get(), GGML_TYPE_Q4_0, kColumns, n_rows, n_experts);
    buffer_.reset(
        ggml_backend_alloc_ctx_tensors_from_buft(weights_context_.get(), kernel_buffer_type()));
    if (!buffer_) return;
    ggml_backend_tensor_set(weights, bytes.data(), 0, bytes.size());
    weights_ = weights;
  }

  // Null: it could not be made.
  ggml_tensor* weights() const { return weights_; }
  ggml_context* context() const { return context_.get(); }

  // Empty: it could not be computed.
  std::vector<float> compute(ggml_tensor* out) const {
    ggml_cgraph* graph = ggml_new_graph(context_.get());
    ggml_build_forward_expand(graph, out);
    if (ggml_backend_graph_compute(backend_.get(), graph) != GGML_STATUS_SUCCESS) return {};
    const auto* result = static_cast<const float*>(out->data);
    return {result, result + ggml_nelements(out)};
  }

 private:
  ggml_context_ptr weights_context_;
  ggml_context_ptr context_;
  ggml_backend_ptr backend_;
  ggml_backend_buffer_ptr buffer_;
  ggml_tensor* weights_ = nullptr;
};

ggml_tensor* filled(ggml_tensor* tensor, const void* bytes) {
  std::memcpy(tensor->data, bytes, ggml_nbytes(tensor));
  return tensor;
}

// --- Products

// Token i with expert i % n_experts where there are several.
std::vector<float> product_by_ggml(std::int64_t n_rows, std::int64_t n_experts,
                                   std::span<const std::uint8_t> bytes,
                                   const std::vector<float>& x) {
  const Graph graph(n_rows, n_experts, bytes);
  if (graph.weights() == nullptr) return {};
  ggml_context* const g = graph.context();
  if (n_experts == 1) {
    ggml_tensor* rows = ggml_new_tensor_2d(g, GGML_TYPE_F32, kColumns, kTokens);
    return graph.compute(ggml_mul_mat(g, graph.weights(), filled(rows, x.data())));
  }
  ggml_tensor* rows = ggml_new_tensor_3d(g, GGML_TYPE_F32, kColumns, 1, kTokens);
  std::array<std::int32_t, kTokens> experts;
  for (std::size_t i = 0; i < experts.size(); ++i) {
    experts[i] = static_cast<std::int32_t>(i) % static_cast<std::int32_t>(n_experts);
  }
  ggml_tensor* ids = filled(ggml_new_tensor_2d(g, GGML_TYPE_I32, 1, kTokens), experts.data());
  return graph.compute(ggml_mul_mat_id(g, graph.weights(), filled(rows, x.data()), ids));
}

std::string test_products(const InstructionSet& plain, const std::vector<float>& x) {
  constexpr std::int64_t kRows = 37;
  constexpr std::size_t kExperts = 2;
  std::vector<std::uint8_t> all;
  std::array<std::vector<float>, kExperts> products;
  for (std::size_t e = 0; e < kExperts; ++e) {
    const std::vector<std::uint8_t> bytes = some_weights(WeightType::kQ40, kRows * kColumns, e);
    products[e] = product(plain, WeightType::kQ40, kRows, kColumns, bytes, x);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  std::vector<float> by_experts;
  for (std::size_t i = 0; i < kTokens; ++i) {
    const float* const row = products[i % kExperts].data() + i * kRows;
    by_experts.insert(by_experts.end(), row, row + kRows);
  }
  const std::string is_wrong = " that ggml ran with them is not that of plain code";
  const std::span<const std::uint8_t> first = std::span(all).first(all.size() / kExperts);
  if (!same(product_by_ggml(kRows, 1, first, x), products[0])) return "a product" + is_wrong;
  if (!same(product_by_ggml(kRows, kExperts, all, x), by_experts)) {
    return "a product with experts" + is_wrong;
  }
  return "";
}

// --- Attention, with queries that are such a product

constexpr int kSize = 64;  // of a head
constexpr int kHeads = 4;  // of queries
constexpr int kKeyHeads = 2;
constexpr int kCells = 75;  // the last tile is not full
constexpr std::int64_t kQueries = kSize * kHeads;

struct Cache {
  ggml_type ggml;
  WeightType type;
  float scale;  // so that no cell's weight is nearly all
};
constexpr std::array<Cache, 4> kCaches{{{GGML_TYPE_F32, WeightType::kF32, 0x1p-10F},
                                        {GGML_TYPE_F16, WeightType::kF16, 0x1p-10F},
                                        {GGML_TYPE_BF16, WeightType::kBf16, 0x1p-10F},
                                        {GGML_TYPE_Q8_0, WeightType::kQ80, 0x1p-16F}}};

// What is attended to: cells of two heads side by side, keys and values, and for each token a mask
// with gaps.
struct Cells {
  std::vector<std::uint8_t> keys, values;
  std::vector<std::uint16_t> mask;  // [kTokens, kCells]
};

Cells some_cells(WeightType type) {
  Cells cells{.keys = some_weights(type, kSize * kKeyHeads * kCells, 1),
              .values = some_weights(type, kSize * kKeyHeads * kCells, 2),
              .mask = {}};
  for (int token = 0; token < kTokens; ++token) {
    for (int cell = 0; cell < kCells; ++cell) {
      const bool is_seen =
          cell > 1 && cell < kCells - 2 * (kTokens - 1 - token) && cell % 7 != token % 2;
      cells.mask.push_back(ggml_fp32_to_fp16(is_seen ? 0.0F : -INFINITY));
    }
  }
  return cells;
}

std::vector<float> attention_by_ggml(const Cache& cache, const Cells& cells,
                                     std::span<const std::uint8_t> weights,
                                     const std::vector<float>& x) {
  const Graph graph(kQueries, 1, weights);
  if (graph.weights() == nullptr) return {};
  ggml_context* const g = graph.context();
  ggml_tensor* rows = ggml_new_tensor_2d(g, GGML_TYPE_F32, kColumns, kTokens);
  ggml_tensor* q = ggml_mul_mat(g, graph.weights(), filled(rows, x.data()));
  q = ggml_permute(g, ggml_reshape_3d(g, q, kSize, kHeads, kTokens), 0, 2, 1, 3);
  const auto seen_by_head = [&](const std::vector<std::uint8_t>& bytes) {
    ggml_tensor* all =
        filled(ggml_new_tensor_2d(g, cache.ggml, kSize * kKeyHeads, kCells), bytes.data());
    return ggml_view_3d(g, all, kSize, kCells, kKeyHeads, all->nb[1],
                        ggml_row_size(cache.ggml, kSize), 0);
  };
  ggml_tensor* k = seen_by_head(cells.keys);
  ggml_tensor* v = seen_by_head(cells.values);
  ggml_tensor* mask =
      filled(ggml_new_tensor_2d(g, GGML_TYPE_F16, kCells, kTokens), cells.mask.data());
  return graph.compute(ggml_flash_attn_ext(g, q, k, v, mask, cache.scale, 0.0F, 0.0F));
}

// The same with `plain`, each query by itself: [kTokens, kHeads, kSize].
std::vector<float> attention_one_by_one(const InstructionSet& plain, const Cache& cache,
                                        const Cells& cells, const std::vector<float>& queries) {
  std::vector<float> out(queries.size());
  std::vector<float> scratch(kernels::attention_scratch(1, kSize, kSize, kCells));
  const std::size_t head_bytes = ggml_row_size(cache.ggml, kSize);
  for (std::size_t i = 0; i < std::size_t{kTokens} * kHeads; ++i) {
    const kernels::QueryRow row{.query = queries.data() + i * kSize,
                                .mask = cells.mask.data() + i / kHeads * kCells,
                                .end = kCells,
                                .out = out.data() + i * kSize};
    const auto head = [&](const std::vector<std::uint8_t>& bytes) {
      return kernels::CacheHeads{
          .type = cache.type,
          .bytes = bytes.data() + i % kHeads / (kHeads / kKeyHeads) * head_bytes,
          .stride = kKeyHeads * head_bytes,
          .size = kSize};
    };
    plain.attend({.keys = head(cells.keys),
                  .values = head(cells.values),
                  .scale = cache.scale,
                  .rows = &row,
                  .n_rows = 1},
                 scratch.data());
  }
  return out;
}

std::string test_attention(const InstructionSet& plain, const std::vector<float>& x) {
  const std::vector<std::uint8_t> weights = some_weights(WeightType::kQ40, kQueries * kColumns, 0);
  const std::vector<float> queries =
      product(plain, WeightType::kQ40, kQueries, kColumns, weights, x);
  for (const Cache& cache : kCaches) {
    const Cells cells = some_cells(cache.type);
    if (same(attention_by_ggml(cache, cells, weights, x),
             attention_one_by_one(plain, cache, cells, queries))) {
      continue;
    }
    return "attention over a " + std::string(ggml_type_name(cache.ggml)) +
           " cache that ggml ran with them is not that of plain code";
  }
  return "";
}

}  // namespace

std::string test_through_ggml(const InstructionSet& plain) {
  // ggml's threads spin: beside three other processes on two cores the graphs took 400 ms with
  // them.
  threads::Teams teams;
  const ComputeThreads own_threads(teams);
  const std::vector<float> x = some_activations(kTokens * kColumns);
  const std::string wrong = test_products(plain, x);
  return wrong.empty() ? test_attention(plain, x) : wrong;
}

}  // namespace outrider::llama
