// What clang's libFuzzer calls. OUTRIDER_FUZZ_TARGET is the target that this program is for.
#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  outrider::fuzz::OUTRIDER_FUZZ_TARGET(outrider::fuzz::Bytes(data, size));
  return 0;
}
