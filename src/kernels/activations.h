// Activations as the kernels for quantised weights take them: 32 values of a row with a scale of
// their own, rounded to 8 bits.
//
// Each group of 32 is quantised by itself and in one way only (the same bits from every instruction
// set), so what a row becomes depends on nothing but the row.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outrider::kernels {

struct ActivationGroup {
  float scale;  // activation = scale * value

  // What the whole group, or its halves of 16 where weights share a scale in sixteens, adds for the
  // weights' zero or minimum. Without a minimum: the start of the integer sum, -zero * (sum of the
  // values). With one: the bits of the float scale * (sum of the values).
  std::int32_t offset[2];

  std::int8_t value[32];  // -127..127
};
static_assert(sizeof(ActivationGroup) == 44);

// What the quantising needs to know of the weights that the activations will meet.
struct OffsetRule {
  int group = 32;            // 32: offset[0] only; 16: both
  int zero = 0;              // of the weights' values as they are multiplied
  bool has_minimum = false;  // WeightFormat::has_minimum
};

}  // namespace outrider::kernels
