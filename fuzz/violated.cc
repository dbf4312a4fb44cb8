#include <cstdio>
#include <cstdlib>

#include "fuzz/targets.h"

namespace outrider::fuzz {

void violated(const std::string& what) {
  std::fprintf(stderr, "violated: %s\n", what.c_str());
  std::abort();
}

}  // namespace outrider::fuzz
