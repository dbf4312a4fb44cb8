// Names of answers and calls, as OpenAI's API has them.
//
// Tested by random_id_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace outrider::http {

// `prefix` and 24 random letters and digits, 142 bits. They come from the system, and from no
// generator: each connection has a thread of its own, so that most ids would be the first of one,
// and no more different than its seed.
std::string random_id(std::string_view prefix);

// The same from what `draw` gives, 32 random bits a call.
std::string id_drawn_from(const std::function<std::uint32_t()>& draw, std::string_view prefix);

}  // namespace outrider::http
