#include "llama/kernels/kernel_products.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace outrider::llama {
namespace {

// Packed bytes of a piece: with the activations of a tile they fit into a second-level cache of
// half a megabyte or more.
constexpr std::size_t kPieceBytes = 192 * 1024;

// Pieces per thread, so that one thread that is held up does not hold up the others for long.
constexpr std::int64_t kPiecesPerThread = 6;

// But no smaller than that, unless a thread would have none: where a piece begins, the processor
// has to find out anew what to fetch. A draft's pass (matrices of 190 to 500 KB) took 4.1 ms with
// pieces of any size, 3.7 from 48 KB on, 3.45 from 96 or 192 KB on (Zen 4, two threads, when each
// piece was another place; now only those that are taken from others).
constexpr std::size_t kLeastPieceBytes = 96 * 1024;

constexpr std::int64_t kGroup = kernels::kGroup;

#if defined(__x86_64__)
// Every processor of 64 bits knows the instruction, or does nothing.
#define OUTRIDER_FETCHES_FOR_WRITING [[gnu::target("prfchw")]]
#else
#define OUTRIDER_FETCHES_FOR_WRITING
#endif

// Asks for the lines of outputs, `count` floats at `first` of each row, before their products:
// other cores have read them since the layer before, and to write them a core must have them alone.
// docs/decisions.md, "What one core writes, and another reads", has the figures.
OUTRIDER_FETCHES_FOR_WRITING void own_outputs(float* const* rows, int n, std::int64_t first,
                                              std::int64_t count) {
  constexpr std::uintptr_t kLine = 64;
  for (int i = 0; i < n; ++i) {
    const float* begin = rows[i] + first;
    const auto end = reinterpret_cast<std::uintptr_t>(begin + count);
    for (auto at = reinterpret_cast<std::uintptr_t>(begin) / kLine * kLine; at < end; at += kLine) {
      __builtin_prefetch(reinterpret_cast<const void*>(at), 1);
    }
  }
}

}  // namespace

ActivationRows::ActivationRows(const kernels::InstructionSet& set, kernels::WeightType type,
                               std::int64_t n_columns)
    : set_(set),
      rule_(set.offset_rule(type)),
      is_float_(kernels::weight_format(type).values == kernels::Values::kFloat),
      n_columns_(n_columns),
      row_bytes_(is_float_ ? static_cast<std::size_t>(n_columns) * sizeof(float)
                           : static_cast<std::size_t>(n_columns / kGroup) *
                                 sizeof(kernels::ActivationGroup)) {}

void ActivationRows::write(const float* x, std::uint8_t* out) const { write_part(x, 0, 1, out); }

std::span<const std::uint8_t> ActivationRows::write_part(const float* x, int ith, int nth,
                                                         std::uint8_t* out) const {
  const std::int64_t units = is_float_ ? n_columns_ : n_columns_ / kGroup;
  const std::int64_t begin = units * ith / nth;
  const std::int64_t count = units * (ith + 1) / nth - begin;
  const std::size_t unit_bytes = is_float_ ? sizeof(float) : sizeof(kernels::ActivationGroup);
  const std::span<const std::uint8_t> part(out + static_cast<std::size_t>(begin) * unit_bytes,
                                           static_cast<std::size_t>(count) * unit_bytes);
  if (count == 0) return part;
  if (is_float_) {
    std::memcpy(out + static_cast<std::size_t>(begin) * sizeof(float), x + begin, part.size());
  } else {
    set_.quantise(x + begin * kGroup, count, rule_,
                  reinterpret_cast<kernels::ActivationGroup*>(out) + begin);
  }
  return part;
}

StripProduct::StripProduct(const kernels::InstructionSet& set, const kernels::PackedLayout& layout,
                           std::int64_t n_rows, int nth)
    : set_(set), layout_(layout) {
  const auto fit = static_cast<std::int64_t>(kPieceBytes / layout.strip_bytes);
  // Each thread gets as many pieces as the others, all of them alike.
  const auto least =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(kLeastPieceBytes / layout.strip_bytes));
  const std::int64_t each =
      std::clamp<std::int64_t>(layout.n_strips / (nth * least), 1, kPiecesPerThread);
  const std::int64_t even = (layout.n_strips + nth * each - 1) / (nth * each);
  // Up to kMaxTile rows pass once, so that the cache does not matter.
  const std::int64_t most = n_rows > kernels::kMaxTile ? fit : layout.n_strips;
  strips_of_piece_ = std::max<std::int64_t>(1, std::min(most, even));
  n_pieces_ = (layout.n_strips + strips_of_piece_ - 1) / strips_of_piece_;
}

void StripProduct::multiply(std::int64_t piece, const std::uint8_t* packed,
                            const std::uint8_t* activations, std::size_t row_bytes,
                            std::int64_t n_rows, const OutputRows& out) const {
  alignas(64) float tile[kernels::kMaxTile * 32];  // [n, strip_rows]
  const kernels::InstructionSet::Multiply multiply_strip =
      set_.multiply[static_cast<std::size_t>(layout_.type)];
  const std::int64_t lanes = layout_.strip_rows;
  const std::int64_t begin = piece * strips_of_piece_;
  const std::int64_t end = std::min(begin + strips_of_piece_, layout_.n_strips);
  for (std::int64_t first = 0; first < n_rows; first += kernels::kMaxTile) {
    const auto n = static_cast<int>(std::min<std::int64_t>(kernels::kMaxTile, n_rows - first));
    const std::uint8_t* rows = activations + static_cast<std::size_t>(first) * row_bytes;
    float* outputs[kernels::kMaxTile];
    for (int i = 0; i < n; ++i) outputs[i] = out.row(first + i);
    for (std::int64_t strip = begin; strip < end; ++strip) {
      const std::uint8_t* at = packed + static_cast<std::size_t>(strip) * layout_.strip_bytes;
      const std::int64_t row = strip * lanes;
      const std::int64_t count = std::min(lanes, layout_.n_rows - row);
      own_outputs(outputs, n, row, count);
      multiply_strip(at, layout_.n_columns, rows, row_bytes, n, tile);
      const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
      for (int i = 0; i < n; ++i) std::memcpy(outputs[i] + row, tile + i * lanes, bytes);
    }
  }
}

}  // namespace outrider::llama
