// AVX2, FMA and F16C: nearly every x86 processor since 2013.
#if defined(__x86_64__)
#include "kernels/instruction_sets.h"
#include "kernels/set_table.h"
#include "kernels/simd_avx2.h"

namespace outrider::kernels {
namespace {

// All that this file is compiled for.
bool supported() { return __builtin_cpu_supports("x86-64-v3") != 0; }

constexpr InstructionSet kSet = SetTable<Avx2Plain>::make("avx2", supported);

}  // namespace

const InstructionSet& avx2_set() { return kSet; }

}  // namespace outrider::kernels
#endif
