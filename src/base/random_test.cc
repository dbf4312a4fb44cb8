#include "base/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <vector>

namespace outrider {
namespace {

TEST(Random, SameCoordinatesGiveTheSameBitsOnEveryMachine) {
  // Golden values: a text made with a seed today must be made again by later versions.
  const NoiseKey key = noise_key(42, 7);
  EXPECT_EQ(noise_bits(key, 0), noise_bits(noise_key(42, 7), 0));
  EXPECT_EQ(key.lo, 0x3b015f4cU);
  EXPECT_EQ(key.hi, 0xb931044cU);
  EXPECT_EQ(noise_bits(key, 1000), 0xce285471U);
}

TEST(Random, UniformStaysInsideTheOpenInterval) {
  for (std::uint32_t i = 0; i < 200000; ++i) {
    const double u = noise_uniform(noise_key(1, i), i * 7919);
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
  }
}

// Chi-square over 256 bins of 2^20 draws: 255 degrees of freedom, mean 255, sd 22.6.
double chi_square(const std::vector<double>& draws) {
  std::vector<double> bins(256, 0.0);
  for (const double u : draws) bins[static_cast<std::size_t>(u * 256.0)] += 1.0;
  const double expected = static_cast<double>(draws.size()) / 256.0;
  double sum = 0.0;
  for (const double n : bins) sum += (n - expected) * (n - expected) / expected;
  return sum;
}

TEST(Random, IsUniformAlongTokensAndAlongPositionsAndAlongSeeds) {
  std::vector<double> tokens, positions, seeds;
  const NoiseKey key = noise_key(3, 11);
  for (std::uint32_t i = 0; i < (1U << 20); ++i) {
    tokens.push_back(noise_uniform(key, i));
    positions.push_back(noise_uniform(noise_key(3, i), 17));
    seeds.push_back(noise_uniform(noise_key(i, 11), 17));
  }
  for (const std::vector<double>* draws : {&tokens, &positions, &seeds}) {
    EXPECT_GT(chi_square(*draws), 255 - 4 * 22.6);
    EXPECT_LT(chi_square(*draws), 255 + 4 * 22.6);
  }
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - 0.5) * (b[i] - 0.5);
  return sum / static_cast<double>(a.size()) * 12.0;
}

TEST(Random, NeighboursInEveryCoordinateAreUncorrelated) {
  constexpr std::uint32_t kDraws = 1U << 19;  // one sd of the correlation: 0.0014
  std::vector<double> here, next_token, next_position, next_seed, other_stream;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const std::uint32_t token = i % 50000;
    const std::uint64_t position = i / 50000 * 13 + i % 101;
    here.push_back(noise_uniform(noise_key(9, position), token));
    next_token.push_back(noise_uniform(noise_key(9, position), token + 1));
    next_position.push_back(noise_uniform(noise_key(9, position + 1), token));
    next_seed.push_back(noise_uniform(noise_key(10, position), token));
    other_stream.push_back(noise_uniform(noise_key(9, position, 1), token));
  }
  for (const std::vector<double>* other :
       {&next_token, &next_position, &next_seed, &other_stream}) {
    EXPECT_LT(std::fabs(correlation(here, *other)), 0.0056);
  }
}

TEST(Random, FlippingOneInputBitFlipsHalfOfTheOutputBits) {
  constexpr int kInputs = 4000;
  for (int bit = 0; bit < 32; ++bit) {
    double flips = 0.0;
    for (int i = 0; i < kInputs; ++i) {
      const std::uint32_t x = static_cast<std::uint32_t>(mix64(static_cast<std::uint64_t>(i)));
      const NoiseKey key = noise_key(5, static_cast<std::uint64_t>(i));
      flips += std::popcount(noise_bits(key, x) ^ noise_bits(key, x ^ (1U << bit)));
    }
    EXPECT_NEAR(flips / kInputs, 16.0, 0.5) << "token bit " << bit;
  }
}

TEST(Random, WordsOfATokenDiffer) {
  const NoiseKey key = noise_key(1, 1);
  int equal = 0;
  for (std::uint32_t i = 0; i < 10000; ++i) {
    equal += noise_bits(key, i, 0) == noise_bits(key, i, 1) ? 1 : 0;
  }
  EXPECT_LE(equal, 1);
}

}  // namespace
}  // namespace outrider
