#include "llama/kernels/kernel_operations.h"

#if defined(OUTRIDER_OWN_KERNELS)

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "ggml-cpu-impl.h"
#include "llama/kernels/attention_parts.h"
#include "llama/kernels/attention_shares.h"
#include "llama/kernels/kernel_buffer.h"
#include "llama/kernels/kernel_experts.h"
#include "llama/kernels/kernel_products.h"
#include "llama/kernels/piece_ranges.h"
#include "traits.h"

namespace outrider::llama {
namespace {

using kernels::PackedLayout;

// Rows of a product's output from `first` on: three indices of ggml's made one.
class Outputs : public OutputRows {
 public:
  Outputs(const ggml_tensor* out, std::int64_t first) : out_(out), first_(first) {}
  float* row(std::int64_t i) const override {
    return const_cast<float*>(ggml_row(out_, first_ + i));
  }
  static const float* ggml_row(const ggml_tensor* t, std::int64_t i) {
    const std::int64_t i1 = i % t->ne[1];
    const std::int64_t i2 = i / t->ne[1] % t->ne[2];
    const std::int64_t i3 = i / t->ne[1] / t->ne[2];
    return reinterpret_cast<const float*>(
        static_cast<const char*>(t->data) + static_cast<std::size_t>(i1) * t->nb[1] +
        static_cast<std::size_t>(i2) * t->nb[2] + static_cast<std::size_t>(i3) * t->nb[3]);
  }

 private:
  const ggml_tensor* out_;
  std::int64_t first_;
};

// As ggml's own kernels ask of activations and outputs; rows of activations may lie anywhere. What
// a worker's peer sends must not be read as something else, nor written beyond its memory.
void check_rows(const ggml_tensor* op, const PackedLayout& layout) {
  const ggml_tensor* x = op->src[1];
  GGML_ASSERT(x->type == GGML_TYPE_F32 && x->nb[0] == sizeof(float));
  GGML_ASSERT(x->ne[0] == layout.n_columns);
  GGML_ASSERT(op->type == GGML_TYPE_F32 && op->nb[0] == sizeof(float));
  GGML_ASSERT(op->ne[0] == layout.n_rows);
  GGML_ASSERT(op->nb[0] <= op->nb[1] && op->nb[1] <= op->nb[2] && op->nb[2] <= op->nb[3]);
}

void check_product(const ggml_tensor* op, const PackedLayout& layout) {
  const ggml_tensor* x = op->src[1];
  check_rows(op, layout);
  GGML_ASSERT(op->ne[1] == x->ne[1] && op->ne[2] == x->ne[2] && op->ne[3] == x->ne[3]);
  GGML_ASSERT(x->ne[2] % op->src[0]->ne[2] == 0);
}

// Each token has a row of activations for each of its experts, or one for all.
void check_experts(const ggml_tensor* op, const PackedLayout& layout) {
  const ggml_tensor* x = op->src[1];
  const ggml_tensor* ids = op->src[2];
  check_rows(op, layout);
  GGML_ASSERT(ids->type == GGML_TYPE_I32 && ids->ne[2] == 1 && ids->ne[3] == 1);
  GGML_ASSERT(x->ne[1] > 0 && x->ne[2] == ids->ne[1] && x->ne[3] == 1);
  GGML_ASSERT(op->ne[1] == ids->ne[0] && op->ne[2] == ids->ne[1] && op->ne[3] == 1);
}

// Rows of activations that thread ith of nth writes: whole rows, or a part of each.
void write_rows(const ggml_compute_params* params, const ActivationRows& rows, std::int64_t n,
                const auto& source, std::uint8_t* out) {
  const int ith = params->ith;
  const int nth = params->nth;
  if (n < nth) {
    for (std::int64_t i = 0; i < n; ++i) {
      rows.write_part(source(i), ith, nth, out + static_cast<std::size_t>(i) * rows.row_bytes());
    }
    return;
  }
  for (std::int64_t i = ith; i < n; i += nth) {
    rows.write(source(i), out + static_cast<std::size_t>(i) * rows.row_bytes());
  }
}

// The same where a token has one row for all its experts, as in front of gate and up: it is
// quantised once, and copied to where the others want it (a copy of 2,048 quantised activations
// takes a tenth of quantising them).
void write_rows_of_tokens(const ggml_compute_params* params, const ActivationRows& rows,
                          const ggml_tensor* op, const ExpertPairs& pairs, std::uint8_t* out) {
  const ggml_tensor* x = op->src[1];
  const bool by_parts = x->ne[2] < params->nth;
  const int part = by_parts ? params->ith : 0;
  const int n_parts = by_parts ? params->nth : 1;
  const auto place = [&](std::int64_t token, std::int64_t rank) {
    return out + static_cast<std::size_t>(pairs.at(token, rank)) * rows.row_bytes();
  };
  for (std::int64_t i = by_parts ? 0 : params->ith; i < x->ne[2]; i += by_parts ? 1 : params->nth) {
    const auto* source = reinterpret_cast<const float*>(static_cast<const char*>(x->data) +
                                                        static_cast<std::size_t>(i) * x->nb[2]);
    std::uint8_t* const first = place(i, 0);
    const std::span<const std::uint8_t> written = rows.write_part(source, part, n_parts, first);
    for (std::int64_t rank = 1; rank < op->ne[1]; ++rank) {
      std::copy(written.begin(), written.end(), place(i, rank) + (written.data() - first));
    }
  }
}

// A matrix, or several of them (a head's each, with latent attention), each with its share of the
// rows: those with the same third index of ggml's, or with several in a row, lie one behind the
// other.
void multiply(const ggml_compute_params* params, ggml_tensor* op) {
  const ggml_tensor* weights = op->src[0];
  const ggml_tensor* x = op->src[1];
  const PackedLayout layout = kernel_layout(weights);
  check_product(op, layout);
  const ActivationRows rows(*kernel_set(), layout.type, layout.n_columns);
  const std::int64_t n = ggml_nrows(x);
  const std::int64_t n_matrices = weights->ne[2];
  const std::int64_t n_shares = n_matrices == 1 ? 1 : n_matrices * x->ne[3];
  const std::int64_t n_of_share = n / n_shares;
  const StripProduct product(*kernel_set(), layout, n_of_share, params->nth);
  PieceRanges pieces(params->wdata, n_shares * product.n_pieces(), params->ith, params->nth);
  auto* activations = static_cast<std::uint8_t*>(params->wdata) + PieceRanges::bytes(params->nth);
  write_rows(
      params, rows, n, [x](std::int64_t i) { return Outputs::ggml_row(x, i); }, activations);
  ggml_barrier(params->threadpool);
  const auto* packed = static_cast<const std::uint8_t*>(kernel_packed_data(weights));
  for (std::int64_t piece = pieces.take(); piece >= 0; piece = pieces.take()) {
    const std::int64_t share = piece / product.n_pieces();
    const std::int64_t first = share * n_of_share;
    const auto matrix = static_cast<std::size_t>(share % n_matrices);
    product.multiply(piece % product.n_pieces(), packed + matrix * layout.bytes(),
                     activations + static_cast<std::size_t>(first) * rows.row_bytes(),
                     rows.row_bytes(), n_of_share, Outputs(op, first));
  }
}

void multiply_experts(const ggml_compute_params* params, ggml_tensor* op) {
  const ggml_tensor* weights = op->src[0];
  const ggml_tensor* x = op->src[1];
  const PackedLayout layout = kernel_layout(weights);
  check_experts(op, layout);
  const ActivationRows rows(*kernel_set(), layout.type, layout.n_columns);
  // Each thread makes the table for itself: it is small, and nobody has to wait for it.
  auto* tables = static_cast<std::uint8_t*>(params->wdata) + PieceRanges::bytes(params->nth);
  const std::size_t table_bytes = ExpertPairs::bytes(op);
  const ExpertPairs pairs(op, tables + static_cast<std::size_t>(params->ith) * table_bytes);
  const StripProduct product(*kernel_set(), layout, pairs.largest(), params->nth);
  PieceRanges pieces(params->wdata, pairs.n_used() * product.n_pieces(), params->ith, params->nth);
  std::uint8_t* activations = tables + static_cast<std::size_t>(params->nth) * table_bytes;
  const auto source = [&](std::int64_t at) {
    const auto i1 = static_cast<std::size_t>(pairs.rank(at) % x->ne[1]);
    const auto i2 = static_cast<std::size_t>(pairs.token(at));
    return reinterpret_cast<const float*>(static_cast<const char*>(x->data) + i1 * x->nb[1] +
                                          i2 * x->nb[2]);
  };
  if (x->ne[1] == 1) {
    write_rows_of_tokens(params, rows, op, pairs, activations);
  } else {
    write_rows(params, rows, ggml_nelements(op->src[2]), source, activations);
  }
  ggml_barrier(params->threadpool);

  const auto* packed = static_cast<const std::uint8_t*>(kernel_packed_data(weights));
  for (std::int64_t piece = pieces.take(); piece >= 0; piece = pieces.take()) {
    const std::int64_t e = pairs.used(piece / product.n_pieces());
    const ExpertOutputs out(op, pairs, pairs.begin(e));
    product.multiply(piece % product.n_pieces(),
                     packed + static_cast<std::size_t>(e) * layout.bytes(),
                     activations + static_cast<std::size_t>(pairs.begin(e)) * rows.row_bytes(),
                     rows.row_bytes(), pairs.count(e), out);
  }
}

class Products : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int n_threads, const ggml_tensor* op, std::size_t& size) override {
    size = product_bytes(op, n_threads);
    return true;
  }
  bool compute_forward(ggml_compute_params* params, ggml_tensor* op) override {
    if (op->op == GGML_OP_MUL_MAT_ID) {
      multiply_experts(params, op);
    } else {
      multiply(params, op);
    }
    return true;
  }
};

// False, and nothing was computed, where it is not the better way.
bool attend_by_parts(const ggml_compute_params* params, const ggml_tensor* op,
                     std::uint8_t* memory) {
  if (!AttentionParts::may_suit(op, params->nth)) return false;
  const AttentionParts parts(op, params->ith, params->nth, memory);
  if (!parts.suits()) return false;
  PieceRanges pieces(memory + AttentionParts::memory_bytes(op, params->nth), parts.count(),
                     params->ith, params->nth);
  ggml_barrier(params->threadpool);
  for (std::int64_t part = pieces.take(); part >= 0; part = pieces.take()) {
    parts.run(*kernel_set(), static_cast<int>(part));
  }
  ggml_barrier(params->threadpool);
  parts.join(*kernel_set());
  return true;
}

constexpr std::size_t kLine = 64;

std::size_t parts_bytes(const ggml_tensor* op, int nth) {
  if (!AttentionParts::may_suit(op, nth)) return 0;
  return AttentionParts::memory_bytes(op, nth) + PieceRanges::bytes(nth);
}

std::size_t most_attention_bytes(const ggml_tensor* op, int n_threads) {
  // Fewer threads share it in other ways.
  std::size_t most = 0;
  for (int n = 1; n <= n_threads; ++n) {
    const std::size_t shares = static_cast<std::size_t>(n) * attention_share_bytes(op, n);
    most = std::max(most, parts_bytes(op, n) + shares);
  }
  return most + kLine;
}

// All that the memory for an attention depends on.
struct AttentionShape {
  AttentionShape() = default;
  AttentionShape(const ggml_tensor* op, int threads) : n_threads(threads) {
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = op->src[i / 4]->ne[i % 4];
  }
  bool operator==(const AttentionShape&) const = default;

  std::array<std::int64_t, 12> sizes{};  // of queries, keys and values
  int n_threads = 0;
};

// What was worked out last: ggml asks for each layer of each graph while other threads wait, and
// with many threads it takes long. Two, since layers with a window may stand between others.
struct KnownAttentions {
  std::array<AttentionShape, 2> shapes;
  std::array<std::size_t, 2> bytes{};
  std::size_t oldest = 0;
};

class Attentions : public ggml::cpu::tensor_traits {
 public:
  bool work_size(int n_threads, const ggml_tensor* op, std::size_t& size) override {
    size = attention_bytes(op, n_threads);
    return true;
  }
  bool compute_forward(ggml_compute_params* params, ggml_tensor* op) override {
    const auto begin =
        (reinterpret_cast<std::uintptr_t>(params->wdata) + kLine - 1) / kLine * kLine;
    auto* memory = reinterpret_cast<std::uint8_t*>(begin);
    if (attend_by_parts(params, op, memory)) return true;
    // Another thread may still be looking which way is the better one.
    memory += parts_bytes(op, params->nth);
    const auto ith = static_cast<std::size_t>(params->ith);
    run_attention_share(*kernel_set(), op, params->ith, params->nth,
                        memory + ith * attention_share_bytes(op, params->nth));
    return true;
  }
};

}  // namespace

const kernels::InstructionSet*& kernel_set() {
  static const kernels::InstructionSet* set = nullptr;
  return set;
}

PackedLayout kernel_layout(const ggml_tensor* weights) {
  return {*kernels::weight_type(ggml_type_name(weights->type)), weights->ne[1], weights->ne[0],
          kernel_set()->strip_rows};
}

std::size_t product_bytes(const ggml_tensor* op, int n_threads) {
  const PackedLayout layout = kernel_layout(op->src[0]);
  const ActivationRows rows(*kernel_set(), layout.type, layout.n_columns);
  const bool experts = op->op == GGML_OP_MUL_MAT_ID;
  const std::int64_t n = experts ? ggml_nelements(op->src[2]) : ggml_nrows(op->src[1]);
  const std::size_t tables =
      experts ? static_cast<std::size_t>(n_threads) * ExpertPairs::bytes(op) : 0;
  return PieceRanges::bytes(n_threads) + tables + static_cast<std::size_t>(n) * rows.row_bytes();
}

std::size_t attention_bytes(const ggml_tensor* op, int n_threads) {
  static thread_local KnownAttentions known;
  const AttentionShape shape(op, n_threads);
  for (std::size_t i = 0; i < known.shapes.size(); ++i) {
    if (known.shapes[i] == shape) return known.bytes[i];
  }
  const std::size_t at = std::exchange(known.oldest, 1 - known.oldest);
  known.shapes[at] = shape;
  return known.bytes[at] = most_attention_bytes(op, n_threads);
}

ggml::cpu::tensor_traits* product_operation() {
  static Products* const kProducts = new Products();
  return kProducts;
}

ggml::cpu::tensor_traits* attention_operation() {
  static Attentions* const kAttentions = new Attentions();
  return kAttentions;
}

}  // namespace outrider::llama

#endif
