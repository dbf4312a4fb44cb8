// AVX512 with VNNI: Intel from Ice Lake, AMD from Zen 4 on.
#if defined(__x86_64__)
#include "kernels/instruction_sets.h"
#include "kernels/set_table.h"
#include "kernels/simd_avx512.h"

namespace outrider::kernels {
namespace {

bool supported() {
  return __builtin_cpu_supports("avx512vnni") != 0 && __builtin_cpu_supports("x86-64-v4") != 0;
}

constexpr InstructionSet kSet = SetTable<Avx512Vnni>::make("avx512-vnni", supported);

}  // namespace

const InstructionSet& avx512_vnni_set() { return kSet; }

}  // namespace outrider::kernels
#endif
