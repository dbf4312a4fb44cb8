// What expressions of GBNF grammars are put together with.
#pragma once

#include <string>
#include <vector>

#include "base/list_of.h"

namespace outrider::llama {

// Any of `ways`; "" for none.
inline std::string one_of(const std::vector<std::string>& ways) {
  const std::string all = joined(ways, " | ");
  return ways.size() > 1 ? "(" + all + ")" : all;
}

}  // namespace outrider::llama
