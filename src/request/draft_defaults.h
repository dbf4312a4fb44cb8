// Who guesses, and how broadly, for a request whose client says nothing of it.
//
// Tested by serve/drafter_choice_test.cc and api/completion_params_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "draft/base/drafter.h"
#include "draft/base/drafter_plan.h"
#include "verify/acceptance_rule.h"

namespace outrider {

// Of what is looked up as many branches as `width`, or kAutoBranches with kAutoWidth; of a draft
// model, whose longer branches cost passes, none, or kAutoModelBranches where the planner chooses
// (docs/decisions.md: 2 to 4 % with our kernels, 5 to 12 % where width costs next to nothing). None
// at all with `block`, which judges chains.
inline constexpr std::int32_t kAutoBranches = 8;
inline constexpr std::int32_t kAutoModelBranches = 3;
void set_default_branches(DraftShape& shape, AcceptanceRule rule, std::int32_t width);
// The same where `shape` leaves them open (kBranchesByWidth).
void fill_branches(DraftShape& shape, AcceptanceRule rule, std::int32_t width);

// What "auto" stands for: the draft model and those that guess unasked (LookupKind::unasked;
// `with_files`: the drafters that have any), merged. With the rules that draw, whose steps nobody
// plans, the draft model alone. The engine passes over those that are not there.
DrafterPlan automatic_drafters(AcceptanceRule rule, std::span<const std::string_view> with_files);

}  // namespace outrider
