// AVX2 with AVX-VNNI: Intel's processors for clients from Alder Lake on.
#if defined(__x86_64__)
#include "kernels/instruction_sets.h"
#include "kernels/set_table.h"
#include "kernels/simd_avx2.h"

namespace outrider::kernels {
namespace {

bool supported() {
  return __builtin_cpu_supports("avxvnni") != 0 && __builtin_cpu_supports("x86-64-v3") != 0;
}

constexpr InstructionSet kSet = SetTable<AvxVnni>::make("avx-vnni", supported);

}  // namespace

const InstructionSet& avx_vnni_set() { return kSet; }

}  // namespace outrider::kernels
#endif
