#include "base/build_commit.h"

namespace outrider {

// Weak functions are not inlined, so callers in the same unit get the other one too.
__attribute__((weak)) std::string_view build_commit() noexcept { return ""; }

}  // namespace outrider
