// Puts a template's budget (template_budget.h) into its parsed program: nodes of our own around
// those that run, and in the place of those that can make much out of little.
#pragma once

#include "jinja/runtime.h"

namespace outrider::llama {

// REQUIRES: its tokens are not too much (llama/chat/template_tokens.h). Throws std::runtime_error
// for what cannot be bounded.
void bound_program(jinja::program& program);

}  // namespace outrider::llama
