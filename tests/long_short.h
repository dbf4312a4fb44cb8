// What must hold of every drafter that has a model: what it keeps of a long text neither reaches
// the short one behind it nor stays. (Of all other drafters: src/serve/runtime_long_short_test.cc.)
#pragma once

#include <functional>
#include <string>

#include "draft/base/drafter.h"
#include "model/language_model.h"
#include "model/vocabulary.h"

namespace outrider::testing {

// A long prompt, then a short one, a hundred times, in one engine that keeps what prompts begin
// with: each text is plain decoding's, and memory is steady after the tenth time. Every second
// short prompt is the long one's beginning. `check_models` tells after each step what is wrong with
// the models and the drafter.
// REQUIRES: a llama.cpp target with one sequence and a context of 256 or more
void expect_long_and_short(LanguageModel& target, const Vocabulary& vocabulary, Drafter& drafter,
                           const std::function<std::string()>& check_models);

}  // namespace outrider::testing
