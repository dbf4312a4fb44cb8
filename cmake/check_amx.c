/* Executes AMX as ggml would: asks the kernel for the tile registers, configures two tiles and an
 * accumulator, multiplies int8 and, where the compiler would use it, bf16, and checks the products.
 * Exit 0: works. Exit 1: refused or wrong, with a line on stderr. A signal: it faults. Compiled by
 * check_amx.cmake as ggml is, with -march=native, -O3 and amx_intrinsics.h, and run as a child
 * process. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(OUTRIDER_CHECK_FAULTS) /* the tests' machine that advertises AMX and faults on it */
#include <signal.h>
int main(void) {
  raise(SIGILL);
  return 1;
}
#elif defined(OUTRIDER_CHECK_WORKS) /* the tests' machine on which it works */
int main(void) { return 0; }
#else
#include <immintrin.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { kArchReqXcompPerm = 0x1023, kXfeatureXtiledata = 18, kRows = 16, kRowBytes = 64 };

/* The 64-byte operand of ldtilecfg: palette 1, three tiles of 16 rows of 64 bytes. */
struct TileConfig {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

static int8_t a[kRows][kRowBytes];
static int8_t b[kRows][kRowBytes];
static int32_t c[kRows][kRowBytes / 4];

/* As ggml does it: the configuration is on the stack, and nobody but the instruction reads it. */
static void configure(void) {
  struct TileConfig config = {0};
  config.palette = 1;
  for (int tile = 0; tile < 3; ++tile) {
    config.row_bytes[tile] = kRowBytes;
    config.rows[tile] = kRows;
  }
  _tile_loadconfig(&config);
}

int main(void) {
#if defined(__linux__)
  if (syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) != 0) {
    fprintf(stderr, "the kernel refuses the tile registers\n");
    return 1;
  }
#endif
  configure();

#if defined(__AMX_INT8__)
  memset(a, 2, sizeof a);
  memset(b, 3, sizeof b);
  _tile_zero(0);
  _tile_loadd(1, a, kRowBytes);
  _tile_loadd(2, b, kRowBytes);
  _tile_dpbssd(0, 1, 2);
  _tile_stored(0, c, kRowBytes);
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kRowBytes / 4; ++j) {
      if (c[i][j] != 2 * 3 * kRowBytes) {
        fprintf(stderr, "the int8 product is wrong\n");
        return 1;
      }
    }
  }
#endif
#if defined(__AMX_BF16__)
  uint16_t one[kRows][kRowBytes / 2];
  float sum[kRows][kRowBytes / 4];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kRowBytes / 2; ++j) one[i][j] = 0x3f80; /* 1.0 */
  }
  _tile_zero(0);
  _tile_loadd(1, one, kRowBytes);
  _tile_loadd(2, one, kRowBytes);
  _tile_dpbf16ps(0, 1, 2);
  _tile_stored(0, sum, kRowBytes);
  if (sum[0][0] != kRowBytes / 2 || sum[kRows - 1][kRowBytes / 4 - 1] != kRowBytes / 2) {
    fprintf(stderr, "the bf16 product is wrong\n");
    return 1;
  }
#endif
  _tile_release();
  return 0;
}
#endif
