#include "kernels/weight_type.h"

#include <array>
#include <bit>

namespace outrider::kernels {
namespace {

// By WeightType.
constexpr std::array<WeightFormat, kWeightTypes> kFormats{{
    {.type = WeightType::kF32,
     .name = "f32",
     .block_weights = 1,
     .block_bytes = 4,
     .values = Values::kFloat,
     .value_bits = 32},
    {.type = WeightType::kF16,
     .name = "f16",
     .block_weights = 1,
     .block_bytes = 2,
     .values = Values::kFloat,
     .value_bits = 16},
    {.type = WeightType::kBf16,
     .name = "bf16",
     .block_weights = 1,
     .block_bytes = 2,
     .values = Values::kFloat,
     .value_bits = 16},
    {.type = WeightType::kQ40,
     .name = "q4_0",
     .block_weights = 32,
     .block_bytes = 18,
     .values = Values::kTo15,
     .group = 32,
     .zero = 8,
     .value_bits = 4,
     .halves = 1,
     .header_bytes = 2},
    {.type = WeightType::kQ41,
     .name = "q4_1",
     .block_weights = 32,
     .block_bytes = 20,
     .values = Values::kTo15,
     .group = 32,
     .has_minimum = true,
     .value_bits = 4,
     .halves = 2,
     .header_bytes = 4},
    {.type = WeightType::kQ50,
     .name = "q5_0",
     .block_weights = 32,
     .block_bytes = 22,
     .values = Values::kTo31,
     .group = 32,
     .zero = 16,
     .value_bits = 5,
     .halves = 1,
     .header_bytes = 2},
    {.type = WeightType::kQ51,
     .name = "q5_1",
     .block_weights = 32,
     .block_bytes = 24,
     .values = Values::kTo31,
     .group = 32,
     .has_minimum = true,
     .value_bits = 5,
     .halves = 2,
     .header_bytes = 4},
    {.type = WeightType::kQ80,
     .name = "q8_0",
     .block_weights = 32,
     .block_bytes = 34,
     .values = Values::kSigned8,
     .group = 32,
     .value_bits = 8,
     .halves = 1,
     .header_bytes = 2},
    {.type = WeightType::kQ2K,
     .name = "q2_K",
     .block_weights = 256,
     .block_bytes = 84,
     .values = Values::kTo15,
     .group = 16,
     .has_minimum = true,
     .value_bits = 2,
     .halves = 2,
     .header_bytes = 20},
    {.type = WeightType::kQ3K,
     .name = "q3_K",
     .block_weights = 256,
     .block_bytes = 110,
     .values = Values::kTo15,
     .group = 16,
     .zero = 4,
     .value_bits = 3,
     .halves = 1,
     .header_bytes = 14},
    {.type = WeightType::kQ4K,
     .name = "q4_K",
     .block_weights = 256,
     .block_bytes = 144,
     .values = Values::kTo15,
     .group = 32,
     .has_minimum = true,
     .value_bits = 4,
     .halves = 2,
     .header_bytes = 20},
    {.type = WeightType::kQ5K,
     .name = "q5_K",
     .block_weights = 256,
     .block_bytes = 176,
     .values = Values::kTo31,
     .group = 32,
     .has_minimum = true,
     .value_bits = 5,
     .halves = 2,
     .header_bytes = 20},
    {.type = WeightType::kQ6K,
     .name = "q6_K",
     .block_weights = 256,
     .block_bytes = 210,
     .values = Values::kTo63,
     .group = 16,
     .zero = 32,
     .value_bits = 6,
     .halves = 1,
     .header_bytes = 18},
    {.type = WeightType::kIq4Nl,
     .name = "iq4_nl",
     .block_weights = 32,
     .block_bytes = 18,
     .values = Values::kSigned8,
     .group = 32,
     .value_bits = 4,
     .halves = 1,
     .header_bytes = 2},
    {.type = WeightType::kIq4Xs,
     .name = "iq4_xs",
     .block_weights = 256,
     .block_bytes = 136,
     .values = Values::kSigned8,
     .group = 32,
     .value_bits = 4,
     .halves = 1,
     .header_bytes = 10},
    {.type = WeightType::kMxfp4,
     .name = "mxfp4",
     .block_weights = 32,
     .block_bytes = 17,
     .values = Values::kTo31,
     .group = 32,
     .zero = 12,
     .value_bits = 4,
     .header_bytes = 1},
}};
static_assert(
    [] {
      for (std::size_t i = 0; i < kFormats.size(); ++i) {
        if (kFormats[i].type != static_cast<WeightType>(i) || kFormats[i].name.empty())
          return false;
      }
      return true;
    }(),
    "each type has a row, in the enum's order");

constexpr std::size_t kNone = SIZE_MAX;

// Where a block's half-precision fields lie, two at most.
std::array<std::size_t, 2> half_fields(WeightType type) {
  switch (type) {
    case WeightType::kMxfp4:
    case WeightType::kF32:
    case WeightType::kBf16:
      return {kNone, kNone};
    case WeightType::kQ41:
    case WeightType::kQ51:
    case WeightType::kQ4K:
    case WeightType::kQ5K:
      return {0, 2};
    case WeightType::kQ2K:
      return {80, 82};
    case WeightType::kQ3K:
      return {108, kNone};
    case WeightType::kQ6K:
      return {208, kNone};
    case WeightType::kF16:
    case WeightType::kQ40:
    case WeightType::kQ50:
    case WeightType::kQ80:
    case WeightType::kIq4Nl:
    case WeightType::kIq4Xs:
      return {0, kNone};
  }
  return {kNone, kNone};
}

}  // namespace

const WeightFormat& weight_format(WeightType type) {
  return kFormats[static_cast<std::size_t>(type)];
}

void make_finite(WeightType type, std::uint8_t* block) {
  constexpr std::uint8_t kSmall = 0xBF;  // all but the highest bit of an exponent
  for (const std::size_t at : half_fields(type)) {
    if (at != kNone) block[at + 1] &= kSmall;
  }
  if (type == WeightType::kF32) block[3] &= kSmall;
  if (type == WeightType::kBf16) block[1] &= kSmall;
  if (type == WeightType::kMxfp4) {
    block[0] = static_cast<std::uint8_t>(block[0] % 8 == 0 ? 0 : 118 + block[0] % 16);
  }
}

std::optional<WeightType> weight_type(std::string_view name) {
  for (const WeightFormat& format : kFormats) {
    if (format.name == name) return format.type;
  }
  return std::nullopt;
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31U;
  const std::uint32_t mantissa = bits & 1023U;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  // A subnormal half is mantissa * 2^-24, which float holds exactly.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace outrider::kernels
