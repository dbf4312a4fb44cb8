// NEON with dot products: nearly every 64-bit Arm core since 2018 (Cortex-A76, Neoverse N1, Apple
// M1); a Raspberry Pi from 5 on.
#if defined(__aarch64__)
#include "kernels/arm_features.h"
#include "kernels/instruction_sets.h"
#include "kernels/set_table.h"
#include "kernels/simd_neon.h"

namespace outrider::kernels {
namespace {

bool supported() { return arm_has_dotprod(); }

constexpr InstructionSet kSet = SetTable<NeonDotprod>::make("neon-dotprod", supported);

}  // namespace

const InstructionSet& neon_dotprod_set() { return kSet; }

}  // namespace outrider::kernels
#endif
