// What an Arm processor can do, for InstructionSet::supported.
//
// Not in kernels/set_*.cc: those files are compiled for the very instructions that are asked about.
#pragma once

namespace outrider::kernels {

bool arm_has_dotprod();  // sdot: Armv8.2 with the extension, nearly every core since 2018
bool arm_has_i8mm();     // smmla: Armv8.6, and some cores before; Apple from M2 on

}  // namespace outrider::kernels
