// What numbers of a request may be. Whoever takes them from users (src/request) and the engine,
// which may be used without the layers above it, check against the same.
#pragma once

#include <cstdint>

#include "base/field.h"
#include "base/types.h"

namespace outrider {

inline constexpr std::int32_t kAutoWidth = -1;  // the planner chooses
inline constexpr std::int32_t kMaxLogprobs = 20;

inline constexpr Range kMaxTokensRange = {.min = -1.0, .max = kMaxInt32};
inline constexpr Range kWidthRange = {.min = 1.0, .max = kMaxStepWidth};  // or kAutoWidth
inline constexpr Range kLogprobsRange = {.min = -1.0, .max = kMaxLogprobs};

}  // namespace outrider
