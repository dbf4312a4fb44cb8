// Keys or values of a cache, chosen by a test, as attention reads them.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/attention.h"
#include "kernels/weight_type.h"

namespace outrider::testing {

// Cells of some heads side by side, between those of another, as in a cache.
class AttentionCells {
 public:
  AttentionCells(kernels::WeightType type, int n_cells, int size, std::mt19937_64* random,
                 int n_heads = 1)
      : type_(type),
        size_(size),
        stride_(static_cast<std::size_t>(n_heads + 1) * bytes_of_head() + 6) {
    bytes_.resize(static_cast<std::size_t>(n_cells) * stride_);
    std::uniform_int_distribution<int> byte(0, 255);
    for (std::uint8_t& x : bytes_) x = static_cast<std::uint8_t>(byte(*random));
    for (int cell = 0; cell < n_cells; ++cell) {
      for (int head = 0; head < n_heads; ++head) make_modest(cell, head, random);
    }
  }

  // From head `first` on.
  kernels::CacheHeads head(int first = 0) const {
    return {.type = type_,
            .bytes = bytes_.data() + static_cast<std::size_t>(first) * bytes_of_head(),
            .stride = stride_,
            .size = size_,
            .head_stride = bytes_of_head()};
  }

  std::vector<double> at(int cell) const {
    const std::uint8_t* in = bytes_.data() + static_cast<std::size_t>(cell) * stride_;
    std::vector<double> values;
    for (int d = 0; d < size_; ++d) {
      if (type_ == kernels::WeightType::kQ80) {
        const std::uint8_t* block = in + d / 32 * 34;
        values.push_back(kernels::half_to_float(sixteen(block)) *
                         static_cast<std::int8_t>(block[2 + d % 32]));
      } else if (type_ == kernels::WeightType::kF16) {
        values.push_back(kernels::half_to_float(sixteen(in + 2 * d)));
      } else {
        std::uint32_t bits = 0;
        if (type_ == kernels::WeightType::kBf16) {
          bits = std::uint32_t{sixteen(in + 2 * d)} << 16;
        } else {
          std::memcpy(&bits, in + 4 * d, sizeof bits);
        }
        float value = 0.0F;
        std::memcpy(&value, &bits, sizeof value);
        values.push_back(value);
      }
    }
    return values;
  }

  // A cell whose values are no numbers, as after a request that overflowed.
  void break_cell(int cell) {
    std::memset(bytes_.data() + static_cast<std::size_t>(cell) * stride_, 0xFF, bytes_of_head());
  }
  void copy_cell(const AttentionCells& from, int source, int target) {
    std::memcpy(bytes_.data() + static_cast<std::size_t>(target) * stride_,
                from.bytes_.data() + static_cast<std::size_t>(source) * stride_, bytes_of_head());
  }

 private:
  std::size_t bytes_of_head() const {
    const auto size = static_cast<std::size_t>(size_);
    return type_ == kernels::WeightType::kQ80   ? size / 32 * 34
           : type_ == kernels::WeightType::kF32 ? 4 * size
                                                : 2 * size;
  }
  static std::uint16_t sixteen(const std::uint8_t* at) {
    return static_cast<std::uint16_t>(at[0] | at[1] << 8);
  }
  // Values of about one.
  void make_modest(int cell, int head, std::mt19937_64* random) {
    std::normal_distribution<float> normal;
    std::uint8_t* out = bytes_.data() + static_cast<std::size_t>(cell) * stride_ +
                        static_cast<std::size_t>(head) * bytes_of_head();
    for (int d = 0; d < size_; ++d) {
      const float value = normal(*random);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      if (type_ == kernels::WeightType::kQ80) {
        out[d / 32 * 34] = static_cast<std::uint8_t>(d);
        out[d / 32 * 34 + 1] = 0x24;  // a scale of about 0.016
      } else if (type_ == kernels::WeightType::kF32) {
        std::memcpy(out + 4 * d, &bits, sizeof bits);
      } else if (type_ == kernels::WeightType::kBf16) {
        std::memcpy(out + 2 * d, reinterpret_cast<const std::uint8_t*>(&bits) + 2, 2);
      } else {
        out[2 * d + 1] = static_cast<std::uint8_t>((out[2 * d + 1] & 0x83) | 0x38);
      }
    }
  }

  kernels::WeightType type_;
  int size_;
  std::size_t stride_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace outrider::testing
