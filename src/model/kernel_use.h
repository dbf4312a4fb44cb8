// Which kernels multiply a model's weights on the processor.
#pragma once

#include <cstdint>
#include <string>

namespace outrider {

// What a user asks for (the field "kernels").
enum class KernelChoice {
  kAuto,   // Outrider's own where they can be had
  kStock,  // llama.cpp's
};

struct KernelUse {
  bool own = false;                // some of the weights are Outrider's
  std::string instruction_set;     // of the own ones: "avx512-vnni", "avx2", ...; else empty
  std::string reason;              // why llama.cpp's are used; empty when own
  std::uint64_t packed_bytes = 0;  // memory of the weights that are packed
  std::uint64_t packed_in_file_bytes = 0;  // the same weights in the file

  // "own" or "stock": the contract's words.
  const char* name() const { return own ? "own" : "stock"; }
};

}  // namespace outrider
