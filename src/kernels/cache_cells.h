// Cells of a cache as floats, for kernels/attend.h. All of it are templates over the instruction
// set: a plain inline function would be one for the program, with whatever instructions the linker
// met first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"
#include "kernels/strip_floats.h"

namespace outrider::kernels {

// Bytes of one cell.
template <class S>
std::size_t head_bytes(const CacheHead& head) {
  const auto size = static_cast<std::size_t>(head.size);
  if (head.type == WeightType::kQ80) return size / 32 * 34;
  return head.type == WeightType::kF32 ? 4 * size : 2 * size;
}

// Filled up to whole vectors.
template <class S>
std::size_t padded_lanes(int n) {
  return static_cast<std::size_t>((n + S::kRows - 1) / S::kRows * S::kRows);
}

template <class S, class Reader>
void read_cell_of_floats(const std::uint8_t* in, int size, float* out) {
  constexpr int kLanes = S::kRows;
  int d = 0;
  for (; d + kLanes <= size; d += kLanes, in += Reader::kBytes) {
    S::store_floats(out + d, Reader::read(in));
  }
  if (d == size) return;
  // Behind the last ones may be the end of the cache.
  alignas(64) std::uint8_t rest[Reader::kBytes] = {};
  __builtin_memcpy(rest, in, static_cast<std::size_t>(size - d) * (Reader::kBytes / kLanes));
  S::store_floats(out + d, Reader::read(rest));
}

template <class S>
void read_cell_of_q80(const std::uint8_t* in, int size, float* out) {
  for (int d = 0; d < size; d += 32, in += 34) {
    alignas(64) std::uint8_t half[2 * S::kRows] = {};
    half[0] = in[0];
    half[1] = in[1];
    alignas(64) float scale[S::kRows];
    S::store_floats(scale, S::halves(half));
    for (int i = 0; i < 32; ++i) {
      out[d + i] = scale[0] * static_cast<float>(static_cast<std::int8_t>(in[2 + i]));
    }
  }
  for (std::size_t d = static_cast<std::size_t>(size); d < padded_lanes<S>(size); ++d) {
    out[d] = 0.0F;
  }
}

// The cell at `in` to `out`, [padded_lanes(head.size)].
template <class S>
void cell_to_floats(const CacheHead& head, const std::uint8_t* in, float* out) {
  switch (head.type) {
    case WeightType::kF16:
      return read_cell_of_floats<S, FloatReader<S, WeightType::kF16>>(in, head.size, out);
    case WeightType::kBf16:
      return read_cell_of_floats<S, FloatReader<S, WeightType::kBf16>>(in, head.size, out);
    case WeightType::kQ80:
      return read_cell_of_q80<S>(in, head.size, out);
    default:
      return read_cell_of_floats<S, FloatReader<S, WeightType::kF32>>(in, head.size, out);
  }
}

// As many cells as a vector has lanes, [kRows, stride], to [stride, kRows], four by four.
template <class S>
void transpose_cells(const float* cells, std::size_t stride, float* columns) {
  using Four = float __attribute__((vector_size(16)));
  constexpr std::size_t kLanes = S::kRows;
  for (std::size_t c = 0; c < kLanes; c += 4) {
    const float* in = cells + c * stride;
    float* out = columns + c;
    for (std::size_t d = 0; d < stride; d += 4, in += 4, out += 4 * kLanes) {
      Four row[4];
      for (std::size_t i = 0; i < 4; ++i) __builtin_memcpy(&row[i], in + i * stride, sizeof row[i]);
      const Four low01 = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
      const Four high01 = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
      const Four low23 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
      const Four high23 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
      const Four column[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                              __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                              __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                              __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
      for (std::size_t i = 0; i < 4; ++i) {
        __builtin_memcpy(out + i * kLanes, &column[i], sizeof column[i]);
      }
    }
  }
}

}  // namespace outrider::kernels
