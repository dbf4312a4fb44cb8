// The tables of kernels/set_*.cc, each compiled with its own instructions. For instruction_set.cc.
#pragma once

#include <vector>

#include "kernels/instruction_set.h"

namespace outrider::kernels {

#if defined(__x86_64__)
const InstructionSet& avx512_vnni_set();
const InstructionSet& avx512_set();
const InstructionSet& avx_vnni_set();
const InstructionSet& avx2_set();
#elif defined(__aarch64__)
const InstructionSet& neon_i8mm_set();
const InstructionSet& neon_dotprod_set();
#endif
const InstructionSet& scalar_set();

// The fastest first.
inline std::vector<const InstructionSet*> built_instruction_sets() {
  return {
#if defined(__x86_64__)
    &avx512_vnni_set(), &avx512_set(), &avx_vnni_set(), &avx2_set(),
#elif defined(__aarch64__)
    &neon_i8mm_set(), &neon_dotprod_set(),
#endif
        &scalar_set(),
  };
}

}  // namespace outrider::kernels
