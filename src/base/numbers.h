// Numbers for people: short, and never "-0" or "nan".
#pragma once

#include <cstdint>
#include <string>

namespace outrider {

// With so many digits behind the point. "-0" is "0"; "-" for what is not finite.
std::string fixed(double value, int digits);

// As short as it can be said to `digits` significant ones: "0.25", "12", "1500".
std::string shortly(double value, int digits = 3);

// "15.96 GiB"
std::string gibibytes(std::uint64_t bytes);

}  // namespace outrider
