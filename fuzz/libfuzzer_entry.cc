// What clang's libFuzzer calls. OUTRIDER_FUZZ_TARGET is the target that this program is for.
#include "fuzz/targets.h"

#if !defined(OUTRIDER_FUZZ_TARGET)
#define OUTRIDER_FUZZ_TARGET c_abi  // where an editor or clang-tidy reads the file by itself
#endif

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  outrider::fuzz::OUTRIDER_FUZZ_TARGET(outrider::fuzz::Bytes(data, size));
  return 0;
}
