// From what drafters say of their guesses to chances, and from the target's text back.
//
// A drafter's claim on a path is a product of how sure it is of each guess; only the single factors
// are compared with what came true (plan/acceptance_table.h). The rules for a whole tree are those
// of plan/tree_chances.h, which also keeps a growing tree's chances up to date.
//
// Tested by calibrate_test.cc.
#pragma once

#include <span>

#include "plan/acceptance_table.h"
#include "plan/calibration_score.h"
#include "tree/token_tree.h"

namespace outrider {

// Sets every node's chance, computed from nothing. Fillers have none.
void calibrate(TokenTree& tree, const AcceptanceTable& table, const AcceptanceBias& bias);

// The text went on with `emitted` behind the tree's root: learns from all that was proposed, sent
// or not, as far as it was put to the test. `asked`: the drafters that were asked in this step.
// `score` may be null.
void learn_from(const TokenTree& proposed, std::span<const Token> emitted, DrafterMask asked,
                AcceptanceTable& table, AcceptanceBias& bias, CalibrationScore* score);

}  // namespace outrider
