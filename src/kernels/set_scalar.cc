// Plain C++, on every processor.
#include "kernels/instruction_sets.h"
#include "kernels/set_table.h"
#include "kernels/simd_scalar.h"

namespace outrider::kernels {
namespace {

bool supported() { return true; }

constexpr InstructionSet kSet = SetTable<Scalar>::make("scalar", supported);

}  // namespace

const InstructionSet& scalar_set() { return kSet; }

}  // namespace outrider::kernels
