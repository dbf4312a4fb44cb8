// AVX512 without VNNI: Intel's Skylake servers.
#if defined(__x86_64__)
#include "kernels/instruction_sets.h"
#include "kernels/set_table.h"
#include "kernels/simd_avx512.h"

namespace outrider::kernels {
namespace {

// All that this file is compiled for.
bool supported() { return __builtin_cpu_supports("x86-64-v4") != 0; }

constexpr InstructionSet kSet = SetTable<Avx512Plain>::make("avx512", supported);

}  // namespace

const InstructionSet& avx512_set() { return kSet; }

}  // namespace outrider::kernels
#endif
