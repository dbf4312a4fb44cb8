/* GCC's intrinsics for AMX tiles with what they leave out. ggml's AMX code gets this file by the
 * option -include, and so does our check (check_amx.c).
 *
 * _tile_loadconfig says that it reads 8 of the 64 bytes that it reads (GCC bug 114098; before 11.5,
 * 12.4, 13.3 and 14.1). So GCC leaves the stores to the other bytes out, and the first tile is an
 * invalid instruction: every llama.cpp that Debian 12's compiler tunes to such a processor ends
 * with SIGILL. _tile_loadd says of no byte that it reads it, so stores may come behind it. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__AMX_TILE__)
#include <immintrin.h>

static inline void outrider_tile_loadconfig(const void* config) {
  __asm__ volatile("ldtilecfg\t%0" : : "m"(*(const char(*)[64])config));
}
#define _tile_loadconfig outrider_tile_loadconfig

#undef _tile_loadd
#define _tile_loadd(tile, base, stride) outrider_tile_loadd(tile, base, stride)
#define outrider_tile_loadd(tile, base, stride)                    \
  __asm__ volatile("tileloadd\t(%0,%1,1), %%tmm" #tile             \
                   :                                               \
                   : "r"((const void*)(base)), "r"((long)(stride)) \
                   : "memory")
#endif
