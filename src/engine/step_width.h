// How wide a step may be: the tokens of one sequence in it, and of all together.
//
// Many things bound it, and they are known one after the other. Each bound is taken in one place:
//
//   of one sequence, its root included
//     exactness   what is known to be exact                planned_width(), once for a target
//     request     its width, or what the planner chooses   width_of(), in prepare(), which sets
//     target      Capabilities::max_width                  Sequence::width
//     drafters    kMostPlanned, StepCosts::most(), what    useful_nodes() in asking.cc
//                 the text and its context still take
//     cache       LanguageModel::room                      plan(), behind the drafts; before the
//                                                          step make_room() frees what is asked for
//   of all sequences together
//     target      Capabilities::n_batch                    choose_parts() for decided tokens, which
//                                                          are Step::n_prefix and a root for each
//                                                          part that is ready; plan() for nodes,
//                                                          those of fixed widths first
//     planner     how far costs are known, and as many     prepare(), in StepCosts::most(), for all
//                 as the batch may have left               whose width the planner chooses
//
// No bounds of a step: kMaxStepWidth (base/types.h) is the largest width that can be asked for,
// kOpenedWidth (model/model_options.h) the one that targets are opened for, and
// CostCurve::kMaxWidth the number of tokens, of all sequences, up to which times are kept. A draft
// model's passes have bounds of their own (DraftModelDrafter::share).
//
// Tested by step_width_test.cc.
#pragma once

#include <cstdint>

#include "engine/request.h"
#include "model/exactness.h"
#include "model/language_model.h"

namespace outrider {

// Most nodes to propose where the planner chooses the width: beyond it, a step is hardly ever worth
// more on any machine.
inline constexpr std::int32_t kMostPlanned = 31;

// The widest step to be chosen for a target: not wider than what is known to be exact, where a
// width is known.
std::int32_t planned_width(const Exactness& exactness);

// What a request may have in a step at most: its own width, or `chosen` where it leaves that to the
// planner, as far as the target takes it.
std::int32_t width_of(const Request& request, std::int32_t chosen, const Capabilities& target);

}  // namespace outrider
