// Counter-based random numbers: every draw is a pure function of its coordinates.
//
// Idea. A generator with a state makes output depend on how many draws came before, and so on how
// work was batched. Here a draw is hash(seed, position, token): the noise of one token at one
// position is the same whether it is asked for by the target, by a drafter, in a batch of one or of
// sixteen, today or in a replay. That is what makes coupled acceptance possible (dist/gumbel.h) and
// every result repeatable.
//
// How. noise_key() mixes seed and position with two rounds of the finaliser of splitmix64
// (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). Per token a
// 32-bit multiply-xorshift permutation is keyed with the two halves of that key, so that a whole
// vocabulary vectorises (about 12 integer operations a token). Where more bits are needed the
// second word is asked for.
//
// Tested by random_test.cc (bit balance, avalanche, independence over positions, tokens and words).
#pragma once

#include <cstdint>

namespace outrider {

// Bijective mixing of 64 bits (splitmix64's finaliser).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

// The noise of one position: what all of its draws are keyed with.
struct NoiseKey {
  std::uint32_t lo = 0;
  std::uint32_t hi = 0;
};

// Independent uses of noise at one position.
enum NoiseStream : std::uint64_t {
  kTokenStream = 0,   // the coupled choice of the token, shared by target and drafters
  kDraftStream = 1,   // what a drafter draws for the rules that need draws
  kVerifyStream = 2,  // the decisions of those rules
};

// `stream` tells independent uses at the same position apart.
constexpr NoiseKey noise_key(std::uint64_t seed, std::uint64_t position,
                             std::uint64_t stream = kTokenStream) {
  const std::uint64_t a = mix64(seed + 0x9e3779b97f4a7c15ULL);
  const std::uint64_t b = mix64(a ^ (position * 0xd1342543de82ef95ULL + 0x2545f4914f6cdd1dULL));
  const std::uint64_t c = mix64(b + stream * 0x9e3779b97f4a7c15ULL);
  return NoiseKey{static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(c >> 32)};
}

// 32 random bits for `index` under `key`. `word` 0 and 1 give independent values.
constexpr std::uint32_t noise_bits(NoiseKey key, std::uint32_t index, std::uint32_t word = 0) {
  std::uint32_t x = index * 0x9e3779b1U + key.lo + word * 0x85ebca77U;
  x ^= x >> 16;
  x *= 0x21f0aaadU;
  x ^= key.hi;
  x ^= x >> 15;
  x *= 0x735a2d97U;
  x += key.lo;
  x ^= x >> 15;
  x *= 0xd35a2d97U;
  x ^= x >> 16;
  return x;
}

// A uniform number in (0, 1), both ends excluded, with 64 random bits.
double noise_uniform(NoiseKey key, std::uint32_t index);

}  // namespace outrider
