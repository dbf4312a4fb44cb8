// What a request may not ask for while it is fuzzed: to wait for an hour, a text without end, files
// of this machine, memory for a context of a billion tokens. All of it is allowed in the product.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace outrider::fuzz {

// The request to send: `text` itself where it is no JSON or asks for nothing of that; else the same
// with small numbers. Nothing: it names a file.
std::optional<std::string> tame(std::string_view text);

}  // namespace outrider::fuzz
