#include "kernels/weight_type.h"

#include <array>
#include <bit>

namespace outrider::kernels {
namespace {

constexpr std::array<WeightFormat, kWeightTypes> kFormats{{
    {"f32", 1, 4, Values::kFloat, 0, 0, false, 32, 0, 0},
    {"f16", 1, 2, Values::kFloat, 0, 0, false, 16, 0, 0},
    {"bf16", 1, 2, Values::kFloat, 0, 0, false, 16, 0, 0},
    {"q4_0", 32, 18, Values::kTo15, 32, 8, false, 4, 1, 2},
    {"q4_1", 32, 20, Values::kTo15, 32, 0, true, 4, 2, 4},
    {"q5_0", 32, 22, Values::kTo31, 32, 16, false, 5, 1, 2},
    {"q5_1", 32, 24, Values::kTo31, 32, 0, true, 5, 2, 4},
    {"q8_0", 32, 34, Values::kSigned8, 32, 0, false, 8, 1, 2},
    {"q2_K", 256, 84, Values::kTo15, 16, 0, true, 2, 2, 20},
    {"q3_K", 256, 110, Values::kTo15, 16, 4, false, 3, 1, 14},
    {"q4_K", 256, 144, Values::kTo15, 32, 0, true, 4, 2, 20},
    {"q5_K", 256, 176, Values::kTo31, 32, 0, true, 5, 2, 20},
    {"q6_K", 256, 210, Values::kTo63, 16, 32, false, 6, 1, 18},
    {"iq4_nl", 32, 18, Values::kSigned8, 32, 0, false, 4, 1, 2},
    {"iq4_xs", 256, 136, Values::kSigned8, 32, 0, false, 4, 1, 10},
    {"mxfp4", 32, 17, Values::kTo31, 32, 12, false, 4, 0, 1},
}};

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
    default:
      return {0, kNone};
  }
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
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].name == name) return static_cast<WeightType>(i);
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
