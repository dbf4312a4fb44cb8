// Who takes part in a step, and with how much.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/prompt_division.h"
#include "engine/prompt_share.h"
#include "engine/sequence.h"
#include "engine/step.h"
#include "model/language_model.h"

namespace outrider {

// Texts that only miss their last token first, then what a target that cannot drop a part of its
// state has to read again, oldest first, then as much of the prompts (and of texts that have lost
// as much: Sequence::is_prompt()) as the batch has room for, divided by `division`: a short prompt
// is not held up by a long one before it. While any text goes on, prompts get what `share` leaves
// them together, so that a long prompt slows the others' tokens down but does not hold them up.
// Chunks end at multiples of the batch size (of share.grid()) where they can, so that a prompt is
// mostly cut in the same places whatever else runs.
// A request that waits for an older one to read what both begin with takes no part. A sequence for
// which the cache has no room takes part all the same: the step then fails for it.
std::vector<Part> choose_parts(const LanguageModel& target,
                               std::span<const std::unique_ptr<Sequence>> sequences,
                               PromptShare& share, PromptDivision& division);

}  // namespace outrider
