// What a function of llama-common's interpreter will make or move, judged before it is called.
#pragma once

#include <span>
#include <string_view>

#include "jinja/value.h"
#include "llama/chat/template_budget.h"

namespace outrider::llama {

// `self`: what it is a method or filter of; null: a function alone. Throws TemplateTooCostly.
void check_call(std::string_view name, const jinja::value& self,
                std::span<const jinja::value> arguments, TemplateBudget& budget);

// The same for an operator that makes something or compares. `and` and `or` do neither.
void check_operation(std::string_view op, const jinja::value& left, const jinja::value& right,
                     TemplateBudget& budget);

// The same for the step of a slice: one near 2^63 may never end.
void check_slice_step(const jinja::value& step, TemplateBudget& budget);

}  // namespace outrider::llama
