#include "testing/tiny_weights.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "ggml.h"

namespace outrider::testing {
namespace {

constexpr std::size_t kBlock = 32;

void append(std::vector<std::uint8_t>& out, const void* data, std::size_t bytes) {
  const std::uint8_t* begin = static_cast<const std::uint8_t*>(data);
  out.insert(out.end(), begin, begin + bytes);
}

// Scaling and rounding are done in double, where the product of two floats is exact, so that a
// fused multiply-add gives the same result as two steps.
int scaled(float value, double inverse_scale) {
  return static_cast<int>(std::lround(static_cast<double>(value) * inverse_scale));
}

void append_q8_0(std::vector<std::uint8_t>& out, const float* block) {
  float largest = 0.0F;
  for (std::size_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(block[i]));
  const float scale = largest / 127.0F;
  const ggml_fp16_t half = ggml_fp32_to_fp16(scale);
  append(out, &half, sizeof half);
  const double inverse = scale == 0.0F ? 0.0 : 1.0 / scale;
  for (std::size_t i = 0; i < kBlock; ++i) {
    out.push_back(static_cast<std::uint8_t>(static_cast<std::int8_t>(scaled(block[i], inverse))));
  }
}

void append_q4_0(std::vector<std::uint8_t>& out, const float* block) {
  float largest = 0.0F;  // with its sign
  for (std::size_t i = 0; i < kBlock; ++i) {
    if (std::fabs(block[i]) > std::fabs(largest)) largest = block[i];
  }
  const float scale = largest / -8.0F;
  const ggml_fp16_t half = ggml_fp32_to_fp16(scale);
  append(out, &half, sizeof half);
  const double inverse = scale == 0.0F ? 0.0 : 1.0 / scale;
  for (std::size_t i = 0; i < kBlock / 2; ++i) {
    const int low = std::clamp(scaled(block[i], inverse) + 8, 0, 15);
    const int high = std::clamp(scaled(block[i + kBlock / 2], inverse) + 8, 0, 15);
    out.push_back(static_cast<std::uint8_t>(low | (high << 4)));
  }
}

}  // namespace

std::uint64_t tensor_key(std::uint64_t seed, std::string_view name) {
  std::uint64_t key = mix64(seed + 0x9e3779b97f4a7c15ULL);
  for (const char c : name) key = mix64(key + static_cast<unsigned char>(c) + 1);
  return key;
}

double tiny_gaussian(std::uint64_t key, std::uint64_t index) {
  const std::uint64_t bits = mix64(key ^ mix64(index + 0x632be59bd9b4e019ULL));
  const std::int64_t sum = static_cast<std::int64_t>((bits & 0xffff) + ((bits >> 16) & 0xffff) +
                                                     ((bits >> 32) & 0xffff) + (bits >> 48));
  // Four uniform integers in [0, 65535]: mean 131070, variance 4 (65536^2 - 1) / 12.
  return static_cast<double>(sum - 131070) / 37837.22;
}

double root_mean_square(const std::vector<float>& values) {
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return values.empty() ? 0.0 : std::sqrt(sum / static_cast<double>(values.size()));
}

std::vector<std::uint8_t> encode_weights(const std::vector<float>& values, WeightType type) {
  std::vector<std::uint8_t> out;
  if (type == WeightType::kF32) {
    append(out, values.data(), values.size() * sizeof(float));
    return out;
  }
  assert(values.size() % kBlock == 0);
  for (std::size_t i = 0; i < values.size(); i += kBlock) {
    if (type == WeightType::kQ8_0) {
      append_q8_0(out, &values[i]);
    } else {
      append_q4_0(out, &values[i]);
    }
  }
  return out;
}

}  // namespace outrider::testing
