// NEON with dot products and products of 8-bit matrices: Neoverse V1 and N2, Cortex-A710, Apple M2,
// and later ones.
#if defined(__aarch64__)
#include "kernels/arm_features.h"
#include "kernels/instruction_sets.h"
#include "kernels/set_table.h"
#include "kernels/simd_neon.h"

namespace outrider::kernels {
namespace {

bool supported() { return arm_has_dotprod() && arm_has_i8mm(); }

constexpr InstructionSet kSet = SetTable<NeonI8mm>::make("neon-i8mm", supported);

}  // namespace

const InstructionSet& neon_i8mm_set() { return kSet; }

}  // namespace outrider::kernels
#endif
