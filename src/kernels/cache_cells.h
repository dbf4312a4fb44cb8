// Cells of a cache as floats, for kernels/attend.h. All of it are templates over the instruction
// set: a plain inline function would be one for the program, with whatever instructions the linker
// met first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"
#include "kernels/weight_type.h"

namespace outrider::kernels {

// Reads a cell of one type, S::kRows dimensions at a time.
template <class S, WeightType kType>
struct CellReader {
  static constexpr int kLanes = S::kRows;
  static constexpr bool kIsQ80 = kType == WeightType::kQ80;
  static constexpr std::size_t kElement = kType == WeightType::kF32 ? 4 : kIsQ80 ? 1 : 2;

  static std::size_t bytes(int size) {
    const auto n = static_cast<std::size_t>(size);
    return kIsQ80 ? n / 32 * 34 : n * kElement;
  }

  // Dimensions `d` and after of a cell of `size`, zeros behind them; `d` is a multiple of kLanes.
  [[gnu::always_inline]] static typename S::Floats read(const std::uint8_t* cell, int d, int size) {
    if constexpr (kIsQ80) {
      const std::uint8_t* block = cell + d / 32 * 34;
      return S::multiply(scale(block), S::signed_bytes(block + 2 + d % 32));
    } else {
      const std::uint8_t* at = cell + static_cast<std::size_t>(d) * kElement;
      return d + kLanes <= size ? floats(at) : last(at, size - d);
    }
  }

 private:
  static typename S::Floats floats(const std::uint8_t* at) {
    if constexpr (kType == WeightType::kF16) return S::halves(at);
    if constexpr (kType == WeightType::kBf16) return S::bfloats(at);
    return S::load_floats(reinterpret_cast<const float*>(at));
  }
  // Behind the last `n` may be the end of the cache.
  [[gnu::noinline]] static typename S::Floats last(const std::uint8_t* at, int n) {
    alignas(64) std::uint8_t rest[kLanes * kElement] = {};
    __builtin_memcpy(rest, at, static_cast<std::size_t>(n) * kElement);
    return floats(rest);
  }
  static typename S::Floats scale(const std::uint8_t* block) {
    std::uint16_t half;
    __builtin_memcpy(&half, block, sizeof half);
    alignas(64) std::uint16_t lanes[kLanes];
    for (std::uint16_t& lane : lanes) lane = half;
    return S::halves(reinterpret_cast<const std::uint8_t*>(lanes));
  }
};

// Calls function.operator()<Reader>() for the type of a cache.
template <class S, class Function>
void with_reader(WeightType type, const Function& function) {
  switch (type) {
    case WeightType::kF16:
      return function.template operator()<CellReader<S, WeightType::kF16>>();
    case WeightType::kBf16:
      return function.template operator()<CellReader<S, WeightType::kBf16>>();
    case WeightType::kQ80:
      return function.template operator()<CellReader<S, WeightType::kQ80>>();
    default:
      return function.template operator()<CellReader<S, WeightType::kF32>>();
  }
}

// Filled up to whole vectors.
template <class S>
std::size_t padded_lanes(int n) {
  return static_cast<std::size_t>((n + S::kRows - 1) / S::kRows * S::kRows);
}

// As many cells as a vector has lanes, `at` bytes behind `cells`, to [padded_lanes(size), kRows].
template <class S, class Reader>
void read_columns(const std::uint8_t* const* cells, std::size_t at, int size, float* columns) {
  constexpr int kLanes = S::kRows;
  constexpr int kSide = kLanes / 2;
  for (int d = 0; d < size; d += kLanes) {
    float* out = columns + static_cast<std::size_t>(d) * kLanes;
    for (int c = 0; c < kLanes; c += kSide) {
      const auto read = [&](int i) { return Reader::read(cells[c + i] + at, d, size); };
      S::template transpose<0>(read, out + c, kLanes);
      S::template transpose<1>(read, out + kSide * kLanes + c, kLanes);
    }
  }
}

}  // namespace outrider::kernels
