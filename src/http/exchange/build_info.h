// What the server says of its own making.
#pragma once

#include <string_view>

namespace outrider::http {

// "system_fingerprint" and "build_info"; llama-server's clients look for the "b".
inline constexpr std::string_view kBuildInfo = "b-outrider-" OUTRIDER_VERSION;

}  // namespace outrider::http
