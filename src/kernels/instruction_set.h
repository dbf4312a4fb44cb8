// The instruction sets that the kernels are built for, and the one that this process uses.
//
// All of them give the same bits. An output is a sum over the groups of a row, in the row's order,
// of fma(float(integer sum), weight_scale * activation_scale, acc), and for weights with a minimum
// then fma(-minimum, activation_scale * sum of the activations' values, acc). The integer sums are
// exact. Nothing else is added, so an output depends on its two rows alone: not on the number of
// activation rows, on threads, on the strip or on the processor. Float weights are multiplied as
// floats: even and odd columns are summed by themselves, in order, and added at the end.
//
// Threads: everything here is const, and any thread may use it.
//
// Tested by product_test.cc: every set that the machine has, against testing/kernel_reference.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/activations.h"
#include "kernels/attention.h"
#include "kernels/weight_type.h"

namespace outrider::kernels {

// At most so many rows of activations in one call of InstructionSet::multiply.
inline constexpr int kMaxTile = 64;

struct InstructionSet {
  std::string_view name;  // "avx512-vnni", "avx2", "neon-dotprod", "scalar", ...
  int strip_rows = 0;     // R of kernels/packed.h
  std::uint8_t flip = 0;  // what packed values of kSigned8 are XORed with: 128 where instructions
                          // want unsigned ones

  // True when the processor that this runs on has the instructions.
  bool (*supported)() = nullptr;

  // Quantises `count` groups at `x`, [32 * count].
  void (*quantise)(const float* x, std::int64_t count, OffsetRule rule,
                   ActivationGroup* out) = nullptr;

  // One strip times `n` rows of activations: out[i * R + r] is the product of activation row i and
  // the strip's row r, 1 <= n <= kMaxTile. `strip` is aligned to 64, `n_columns` as in
  // PackedLayout. Row i of the activations lies at `activations` + i * `stride`
  // bytes: ActivationGroup, [n_columns / 32], made with offset_rule(); for float types float,
  // [n_columns]. Indexed by WeightType.
  using Multiply = void (*)(const std::uint8_t* strip, std::int64_t n_columns,
                            const void* activations, std::size_t stride, int n, float* out);
  std::array<Multiply, kWeightTypes> multiply{};

  // Attention of some rows; `scratch` as attention_scratch() says.
  void (*attend)(const Attention& call, float* scratch) = nullptr;

  // Joins the sums, [size], of a row's next cells to those of the cells before.
  void (*join)(float* sums, AttentionPart* part, const float* next_sums,
               const AttentionPart& next_part, int size) = nullptr;

  // What `row` becomes, to row.out, [size], from sums over all its cells.
  void (*finish)(const QueryRow& row, const float* sums, const AttentionPart& part,
                 int size) = nullptr;

  // Multiplies what lies in registers and the first-level cache, `rounds` times, and returns the
  // number of products of two 8-bit values that this was: for measuring how many the processor can.
  std::int64_t (*multiply_in_registers)(std::int64_t rounds) = nullptr;

  OffsetRule offset_rule(WeightType type) const;
};

// All that are built into this program and that its processor has, the fastest first; never empty,
// for the last is plain C++.
const std::vector<const InstructionSet*>& instruction_sets();

// The one by that name among instruction_sets(), or null.
const InstructionSet* instruction_set(std::string_view name);

}  // namespace outrider::kernels
