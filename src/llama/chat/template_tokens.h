// Whether a template can be parsed, told from its tokens.
//
// Tested by bounded_template_test.cc.
#pragma once

#include <string>

#include "jinja/lexer.h"

namespace outrider::llama {

// Whether `lexed` can be parsed without more stack than there is: llama-common's parser recurses.
// Empty, or what is too much.
std::string too_much_template(const jinja::lexer_result& lexed);

}  // namespace outrider::llama
