#include "base/numbers.h"

#include <cmath>
#include <cstdio>
#include <string_view>

namespace outrider {

std::string fixed(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  std::string result = text;
  if (result.find_first_not_of("-0.") == std::string::npos && result.front() == '-') {
    result.erase(0, 1);
  }
  return result;
}

std::string shortly(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  char text[64];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  if (std::string_view(text).find('e') == std::string_view::npos) return text;
  return fixed(value, 0);
}

std::string gibibytes(std::uint64_t bytes) {
  return fixed(static_cast<double>(bytes) / (1 << 30), 2) + " GiB";
}

}  // namespace outrider
