// The table of an instruction set, filled from its wrapper `S`. For kernels/set_*.cc.
//
// The tables are constants: filling them when the program runs would be code with instructions that
// the processor may lack.
#pragma once

#include "kernels/attend.h"
#include "kernels/attend_join.h"
#include "kernels/instruction_set.h"
#include "kernels/peak.h"
#include "kernels/quantise.h"
#include "kernels/strip.h"
#include "kernels/strip_floats.h"

namespace outrider::kernels {

template <class S>
struct SetTable {
  template <WeightType kType, class kShape>
  static constexpr void quantised(InstructionSet* set) {
    set->multiply[static_cast<std::size_t>(kType)] = multiply_strip<S, kType, kShape>;
  }

  static constexpr InstructionSet make(std::string_view name, bool (*supported)()) {
    using enum WeightType;
    InstructionSet set;
    set.name = name;
    set.strip_rows = S::kRows;
    set.flip = S::kFlip;
    set.supported = supported;
    set.quantise = quantise_groups<S>;
    set.attend = attend<S>;
    set.join = join_parts<S>;
    set.finish = finish_row<S>;
    set.multiply_in_registers = multiply_in_registers<S>;
    set.multiply[static_cast<std::size_t>(kF32)] = multiply_float_strip<S, FloatReader<S, kF32>>;
    set.multiply[static_cast<std::size_t>(kF16)] = multiply_float_strip<S, FloatReader<S, kF16>>;
    set.multiply[static_cast<std::size_t>(kBf16)] = multiply_float_strip<S, FloatReader<S, kBf16>>;
    quantised<kQ40, Shape<Values::kTo15, 32, false>>(&set);
    quantised<kQ41, Shape<Values::kTo15, 32, true>>(&set);
    quantised<kQ50, Shape<Values::kTo31, 32, false>>(&set);
    quantised<kQ51, Shape<Values::kTo31, 32, true>>(&set);
    quantised<kQ80, Shape<Values::kSigned8, 32, false>>(&set);
    quantised<kQ2K, Shape<Values::kTo15, 16, true>>(&set);
    quantised<kQ3K, Shape<Values::kTo15, 16, false>>(&set);
    quantised<kQ4K, Shape<Values::kTo15, 32, true>>(&set);
    quantised<kQ5K, Shape<Values::kTo31, 32, true>>(&set);
    quantised<kQ6K, Shape<Values::kTo63, 16, false>>(&set);
    quantised<kIq4Nl, Shape<Values::kSigned8, 32, false>>(&set);
    quantised<kIq4Xs, Shape<Values::kSigned8, 32, false>>(&set);
    quantised<kMxfp4, Shape<Values::kTo31, 32, false>>(&set);
    return set;
  }
};

}  // namespace outrider::kernels
