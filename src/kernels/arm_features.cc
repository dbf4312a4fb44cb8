#if defined(__aarch64__)
#include "kernels/arm_features.h"

#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>

#include <cstddef>
#endif

namespace outrider::kernels {

#if defined(__linux__)

bool arm_has_dotprod() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }
bool arm_has_i8mm() { return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0; }

#elif defined(__APPLE__)

namespace {

// A name that the system does not know is a feature that it does not have.
bool has(const char* name) {
  int value = 0;
  std::size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
}

}  // namespace

bool arm_has_dotprod() { return has("hw.optional.arm.FEAT_DotProd"); }
bool arm_has_i8mm() { return has("hw.optional.arm.FEAT_I8MM"); }

#else

// No way known to ask: plain C++ is used.
bool arm_has_dotprod() { return false; }
bool arm_has_i8mm() { return false; }

#endif

}  // namespace outrider::kernels
#endif
