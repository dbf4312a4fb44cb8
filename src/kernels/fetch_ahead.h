// How far ahead of what is read packed weights are fetched from memory.
//
// Part of strip.h, which says what `S` is and what may be called here.
#pragma once

#include <cstdint>

namespace outrider::kernels {

// How packed weights are fetched ahead of what is read. With more than two rows of activations
// computing holds up the processor's own fetching: then what comes later is asked for. With fewer
// that depends on the processor: some keep up with the memory by themselves, if only the lines of a
// group are asked for all at once.
struct Ahead {
  // Into which cache. kFirstAlone: what is read once, so that it takes no other's place in the
  // lower caches, which keep a draft's weights and the cells.
  enum class Into : std::uint8_t { kSecond, kFirst, kFirstAlone };

  int bytes = 6912;
  Into into = Into::kSecond;
  // By all tiles of rows, each a part, and for an `S` with Dots line by line between the products;
  // else a group's lines all at once, by the first tile.
  bool spread = false;
};

// What is right for `n` rows and weights of `bits` each: what `S` says, else nothing ahead for one
// row and for two.
// Measured with Q4_0 into the second-level cache, and on the Zen 5 into the first-level one, too:
//
//   Zen 4, AVX512, one thread, ms for 100 MB, which it reads in 3.2 ms; 1, 2, 3, 4, 8 rows:
//     0 ahead 3.2, 3.2, 3.7, 5.3, 10.3; 6,912 ahead 4.3, 3.6, 3.7, 4.8, 9.1; left to the processor,
//     1, 2, 3 rows, 3.5, 4.7, 7.1
//   Zen 4, two threads, whole steps in its slow minutes, ms; 1, 2, 3, 4 tokens, medians of three:
//     Q6_K, 6,912 ahead from 1 row on 47.7, 48.8, 46.8, 47.0; from 2 on 45.2, 48.5, 46.6, 45.8;
//     from 3 on 45.5, 51.9, 47.8, 46.0; from 5 on 38.9 to 45.2, 52.3, 63.5, 78.5. Q8_0, from 5 on
//     56.2, 58.1, 58.2, 58.8; from 2 and 3 on 56.1, 62.3, 63.2, 61 to 63. Into kFirst or
//     kFirstAlone 8 and 16 tokens of Q4_0 took 53 and 100, 51.5 and 100, into kSecond 50.7
//     and 97.7, in the quick minutes 64 and 121.6 beside 60.3 and 112.5
//   Zen 3, AVX2, two threads, GB/s, of which they read 19.9 to 22.8; 1, 2, 4, 8 rows, twice:
//     0 ahead 17.6 and 15.9, 16.6 and 14.1, 14.9 and 14.1, 10.5 and 7.9
//     2,304 ahead 21.8 and 17.8, 24.1 and 17.5, 20.6 and 16.5, 11.1 and 9.9
//     4,608 ahead 21.4 and 16.7, 22.5 and 17.0, 21.1 and 17.0, 11.0 and 10.1
//   Zen 1, AVX2, two threads, which wait for computing, GB/s; 1, 4 rows, three times:
//     0 ahead 17.7, 18.0 and 16.6, 7.3, 7.1 and 7.2; 2,304 and 6,912 ahead 20.9, 19.8
//     and 20.5, 7.7, 7.3 and 7.4; the same into kFirst 20.0, 19.7 and 20.1, 7.3 each
//   Xeon (AMX, AVX-VNNI), AVX512, eight threads of 16 cores, GB/s; 1, 2, 4, 8 rows, twice:
//     0 ahead 84 and 83, 75 and 78, 62 and 66, 51 and 53
//     2,304 ahead 93 and 98, 90 and 99, 76 and 94, 65 and 78
//     6,912 ahead 140 and 126, 157 and 143, 142 and 127, 87 and 87
//     13,824 ahead 133 and 125, 158 and 138, 153 and 140, 89 and 89
//   Another such Xeon, two threads with a core each, GB/s, of which they read 29 to 31; 1, 2, 4, 8,
//     16 rows, 6,912 ahead at once, then spread (a core has 16 buffers for lines on their way, and
//     a fetch that finds none holds up the products behind it; docs/decisions.md has more):
//     AVX512, Q4_0 28.9, 29.5, 27.4, 19.0, 11.8, then 28.4, 30.0, 29.7, 23.2, 13.8; Q8_0, which
//     stays at once up to 8 rows, 30.3, 28.8, 28.3, 23.3, 16.6, then 29.5, 26.3, 25.2, 22.9, 21.0
//     AVX-VNNI, Q4_0 24.8, 22.1, 19.9, 13.8, 8.2, then 30.5, 29.7, 25.3, 15.6, 8.9
//   Zen 5, AVX512, two threads, ms for 200 MB; 1, 2, 4, 6, 8, 16 rows:
//     0 ahead 5.1, 5.0, 5.2, 6.6, 9.5, 14.7; 2,304 ahead 4.0, 3.9, 4.2, 4.7, 6.0, 10.0;
//     6,912 ahead 4.2, 4.0, 4.1, 3.9, 5.2, 8.9; 13,824 ahead 4.4, 4.0, 4.1, 3.9, 6.2, 9.0;
//     6,912 ahead, kFirst 4.0, 3.9, 4.0, 3.9, 4.6, 8.3. Q4_K, 6 and 8 rows: 5.1 and 6.5, kFirst 4.1
//     and 4.8. kFirst, 9,216 and 13,824 ahead are as fast as 6,912, 2,304 slower from 3 rows on.
//     kFirstAlone beside kFirst, whole steps of 1, 2, 4, 8, 16 tokens, medians of five rounds:
//     21.9, 22.4, 23.3, 25.7, 47.4 beside 22.9, 22.7, 25.9, 25.5, 47.6, where two cores share no
//     cache 15.9, 16.0, 19.4, 27.1, 50.9 beside 16.1, 16.1, 19.7, 27.4, 51.6; 24, 32,
//     48 tokens the same; a prompt, whose blocks of rows read a piece again, 3,060 beside 3,042
template <class S>
[[gnu::always_inline]] inline Ahead ahead(int n, int bits) {
  if constexpr (requires { S::ahead(n, bits); }) {
    return S::ahead(n, bits);
  } else {
    return n > 2 ? Ahead{} : Ahead{.bytes = 0};
  }
}

template <int kBytes, int kLocality>
[[gnu::always_inline]] inline void fetch_lines(const std::uint8_t* at) {
  for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(at + i, 0, kLocality);
}

// Fetches what comes `ahead` after the `kBytes` at `at`. A strip's bytes are one stream, and the
// next strip's follow.
template <int kBytes>
[[gnu::always_inline]] inline void fetch(const std::uint8_t* at, Ahead ahead) {
  at += ahead.bytes;
  if (ahead.into == Ahead::Into::kFirstAlone) {
    fetch_lines<kBytes, 0>(at);
  } else if (ahead.into == Ahead::Into::kFirst) {
    fetch_lines<kBytes, 3>(at);
  } else {
    fetch_lines<kBytes, 2>(at);
  }
}

}  // namespace outrider::kernels
