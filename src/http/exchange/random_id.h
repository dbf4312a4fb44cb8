// Names of answers and calls, as OpenAI's API has them.
#pragma once

#include <string>
#include <string_view>

namespace outrider::http {

// `prefix` and 24 random letters and digits.
std::string random_id(std::string_view prefix);

}  // namespace outrider::http
