// What numbers of a request may be. Whoever takes them from users (src/request) and the engine,
// which may be used without the layers above it, check against the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/field.h"
#include "base/types.h"

namespace outrider {

inline constexpr std::int32_t kAutoWidth = -1;  // the planner chooses
inline constexpr std::int32_t kMaxLogprobs = 20;
// Token ids and texts that a client gives in one list. Far more than a context holds; each may take
// 2 bytes of a body and 40 here.
inline constexpr std::size_t kMaxListed = 1 << 20;

inline constexpr Range kMaxTokensRange = {.min = -1.0, .max = kMaxInt32};
inline constexpr Range kWidthRange = {.min = 1.0, .max = kMaxStepWidth};  // or kAutoWidth
inline constexpr Range kLogprobsRange = {.min = -1.0, .max = kMaxLogprobs};

}  // namespace outrider
