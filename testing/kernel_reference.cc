#include "testing/kernel_reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace outrider::testing {
namespace {

using kernels::WeightType;

unsigned sixteen(const std::uint8_t* at) { return at[0] | static_cast<unsigned>(at[1]) << 8; }

// By the definition of IEEE's half precision.
float half(const std::uint8_t* at) {
  const unsigned bits = sixteen(at);
  const int exponent = static_cast<int>(bits >> 10 & 31U);
  const double fraction = static_cast<double>(bits & 1023U) / 1024.0;
  double magnitude =
      exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1.0 + fraction, exponent - 15);
  if (exponent == 31) {  // of a damaged file
    magnitude = fraction == 0.0 ? std::numeric_limits<double>::infinity()
                                : std::numeric_limits<double>::quiet_NaN();
  }
  return static_cast<float>((bits & 0x8000U) != 0 ? -magnitude : magnitude);
}

unsigned nibble(const std::uint8_t* bytes, int byte, bool high) {
  return high ? bytes[byte] >> 4 : bytes[byte] & 15U;
}
unsigned bit(const std::uint8_t* bytes, int i) { return bytes[i / 8] >> (i % 8) & 1U; }

// Q4_K and Q5_K: eight scales and eight minimums of six bits in twelve bytes.
unsigned six_bits(const std::uint8_t* packed, int i, bool minimum) {
  if (i < 4) return packed[i + (minimum ? 4 : 0)] & 63U;
  const unsigned low = minimum ? packed[i + 4] >> 4 : packed[i + 4] & 15U;
  return low | static_cast<unsigned>(packed[i - (minimum ? 0 : 4)] >> 6) << 4;
}

// The value of weight `i` of the block, less the type's zero.
int block_value(WeightType type, const std::uint8_t* b, int i) {
  const int i32 = i % 32;
  const int i128 = i % 128;
  const bool upper16 = i >= 16;
  const auto of32 = [&](int at) { return static_cast<int>(nibble(b + at, i % 16, upper16)); };
  const auto of64 = [&](int at) {
    return static_cast<int>(nibble(b + at, i / 64 * 32 + i32, i % 64 >= 32));
  };
  const auto two_bits = [&](int at) { return b[at + i / 128 * 32 + i32] >> (i128 / 32 * 2) & 3; };
  switch (type) {
    case WeightType::kQ40:
      return of32(2) - 8;
    case WeightType::kQ41:
      return of32(4);
    case WeightType::kQ50:
      return of32(6) + 16 * static_cast<int>(bit(b + 2, i)) - 16;
    case WeightType::kQ51:
      return of32(8) + 16 * static_cast<int>(bit(b + 4, i));
    case WeightType::kQ80:
      return static_cast<std::int8_t>(b[2 + i]);
    case WeightType::kIq4Nl:
      return kernels::kIq4Values[of32(2)];
    case WeightType::kMxfp4: {
      constexpr std::array<int, 8> kMagnitudes{0, 1, 2, 3, 4, 6, 8, 12};
      const int code = of32(1);
      const int magnitude = kMagnitudes[static_cast<std::size_t>(code % 8)];
      return code >= 8 ? -magnitude : magnitude;
    }
    case WeightType::kQ4K:
      return of64(16);
    case WeightType::kQ5K:
      return of64(48) + 16 * (b[16 + i32] >> (i / 32) & 1);
    case WeightType::kIq4Xs:
      return kernels::kIq4Values[nibble(b + 8, i / 32 * 16 + i % 16, i32 >= 16)];
    case WeightType::kQ6K: {
      const bool high = i128 >= 64;
      const int low = static_cast<int>(nibble(b, i / 128 * 64 + i % 64, high));
      return low + 16 * (b[128 + i / 128 * 32 + i32] >> (i128 / 32 * 2) & 3) - 32;
    }
    case WeightType::kQ3K:
      return two_bits(32) + 4 * (b[i32] >> (i / 32) & 1) - 4;
    case WeightType::kQ2K:
      return two_bits(16);
    default:
      return 0;
  }
}

float block_scale(WeightType type, const std::uint8_t* b, int group) {
  switch (type) {
    case WeightType::kMxfp4:
      return static_cast<float>(std::ldexp(1.0, b[0] - 128));
    case WeightType::kQ4K:
    case WeightType::kQ5K:
      return half(b) * static_cast<float>(six_bits(b + 4, group, false));
    case WeightType::kIq4Xs: {
      const unsigned low = nibble(b + 4, group / 2, group % 2 == 1);
      const unsigned high = sixteen(b + 2) >> (2 * group) & 3U;
      return half(b) * static_cast<float>(static_cast<int>(low | high << 4) - 32);
    }
    case WeightType::kQ6K:
      return half(b + 208) * static_cast<float>(static_cast<std::int8_t>(b[192 + group]));
    case WeightType::kQ3K: {
      const unsigned low = nibble(b + 96, group % 8, group >= 8);
      const int high = b[104 + group % 4] >> (group / 4 * 2) & 3;
      return half(b + 108) * static_cast<float>(static_cast<int>(low) + 16 * high - 32);
    }
    case WeightType::kQ2K:
      return half(b + 80) * static_cast<float>(b[group] & 15);
    default:
      return half(b);
  }
}

float block_minimum(WeightType type, const std::uint8_t* b, int group) {
  if (type == WeightType::kQ2K) return half(b + 82) * static_cast<float>(b[group] >> 4);
  if (type == WeightType::kQ41 || type == WeightType::kQ51) return -half(b + 2);
  return half(b + 2) * static_cast<float>(six_bits(b + 4, group, true));
}

float float_weight(WeightType type, const std::uint8_t* at) {
  if (type == WeightType::kF16) return half(at);
  std::uint32_t bits = sixteen(at) << 16;
  if (type == WeightType::kF32) std::memcpy(&bits, at, sizeof bits);
  return std::bit_cast<float>(bits);
}

}  // namespace

float ReferenceRow::dequantised(std::size_t k) const {
  if (group == 0) return weight[k];
  const std::size_t g = k / static_cast<std::size_t>(group);
  return scale[g] * static_cast<float>(value[k]) - (minimum.empty() ? 0.0F : minimum[g]);
}

ReferenceRow reference_row(WeightType type, const std::uint8_t* bytes, std::int64_t n_columns) {
  const kernels::WeightFormat& format = kernels::weight_format(type);
  ReferenceRow row;
  row.group = format.group;
  for (std::int64_t block = 0; block < n_columns / format.block_weights; ++block) {
    const std::uint8_t* b = bytes + block * format.block_bytes;
    if (format.group == 0) {
      row.weight.push_back(float_weight(type, b));
      continue;
    }
    for (int i = 0; i < format.block_weights; ++i) row.value.push_back(block_value(type, b, i));
    for (int g = 0; g < format.block_weights / format.group; ++g) {
      row.scale.push_back(block_scale(type, b, g));
      if (format.has_minimum) row.minimum.push_back(block_minimum(type, b, g));
    }
  }
  return row;
}

ReferenceActivations reference_activations(const std::vector<float>& x) {
  ReferenceActivations result;
  for (std::size_t begin = 0; begin < x.size(); begin += 32) {
    float largest = 0.0F;
    for (std::size_t i = begin; i < begin + 32; ++i) largest = std::max(largest, std::fabs(x[i]));
    const bool zero = largest <= 0x1p-100F;
    result.scale.push_back(zero ? 0.0F : largest / 127.0F);
    const float inverse = zero ? 0.0F : 127.0F / largest;
    for (std::size_t i = begin; i < begin + 32; ++i) {
      result.value.push_back(static_cast<int>(std::nearbyint(x[i] * inverse)));
    }
  }
  return result;
}

float reference_product(const ReferenceRow& row, const std::vector<float>& x,
                        const ReferenceActivations& activations) {
  if (row.group == 0) {
    float sums[2] = {0.0F, 0.0F};
    for (std::size_t k = 0; k < x.size(); ++k) {
      sums[k % 2] = std::fma(row.weight[k], x[k], sums[k % 2]);
    }
    return sums[0] + sums[1];
  }
  float sum = 0.0F;
  const auto group = static_cast<std::size_t>(row.group);
  for (std::size_t g = 0; g < row.scale.size(); ++g) {
    std::int64_t dot = 0;
    int total = 0;
    for (std::size_t k = g * group; k < (g + 1) * group; ++k) {
      dot += static_cast<std::int64_t>(row.value[k]) * activations.value[k];
      total += activations.value[k];
    }
    const float scale = activations.scale[g * group / 32];
    sum = std::fma(static_cast<float>(dot), row.scale[g] * scale, sum);
    if (!row.minimum.empty()) {
      sum = std::fma(-row.minimum[g], scale * static_cast<float>(total), sum);
    }
  }
  return sum;
}

std::vector<std::uint8_t> random_rows(WeightType type, std::int64_t n_rows, std::int64_t n_columns,
                                      std::mt19937_64* random) {
  const kernels::WeightFormat& format = kernels::weight_format(type);
  const auto block_bytes = static_cast<std::size_t>(format.block_bytes);
  const auto n_blocks = static_cast<std::size_t>(n_rows * n_columns / format.block_weights);
  std::vector<std::uint8_t> rows(n_blocks * block_bytes);
  for (std::uint8_t& byte : rows) byte = static_cast<std::uint8_t>((*random)());
  std::uniform_real_distribution<float> small(-1.0F, 1.0F);
  for (std::size_t block = 0; block < n_blocks; ++block) {
    std::uint8_t* b = rows.data() + block * block_bytes;
    kernels::make_finite(type, b);
    if (type == WeightType::kF32 || type == WeightType::kBf16) {
      const auto bits = std::bit_cast<std::uint32_t>(small(*random));
      const std::uint32_t stored = type == WeightType::kF32 ? bits : bits >> 16;
      std::memcpy(b, &stored, block_bytes);
    }
  }
  return rows;
}

}  // namespace outrider::testing
