// One block of a GGUF row, taken apart: what packing puts into strips.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/weight_type.h"

namespace outrider::kernels {

struct Block {
  // The values, [block_weights]; of kSigned8 types without look-up as two's complement. Types that
  // look their values up keep the four bits.
  std::array<std::uint8_t, 256> values;

  // The packed header, [WeightFormat::header_bytes]: the halves in ggml's order, then bytes:
  //   Q4_K, Q5_K  8 scales, 8 minimums, a byte each
  //   Q6_K        16 signed scales
  //   Q3_K        8 bytes with the low four bits of scales i and i + 8, then 4 bytes with the high
  //               two bits of scales i, i + 4, i + 8, i + 12
  //   Q2_K        16 bytes, the scale below, the minimum above
  //   IQ4_XS      8 scales less 32, signed
  //   MXFP4       the exponent
  std::array<std::uint8_t, 20> header;
};

// Takes the block at `bytes` ([weight_format(type).block_bytes], no alignment) apart. `type` is not
// one of the float types.
void read_block(WeightType type, const std::uint8_t* bytes, Block* block);

}  // namespace outrider::kernels
