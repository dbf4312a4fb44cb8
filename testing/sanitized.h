// Whether tests run under the address or the thread sanitizer, where everything takes about ten
// times as long: what repeats is then repeated less often.
#pragma once

namespace outrider::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace outrider::testing
