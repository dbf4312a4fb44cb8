// llama-server's names for what a completion is made with.
//
// Tested by llama_form_test.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/json_fields.h"
#include "engine/request.h"
#include "json/json.h"
#include "model/vocabulary.h"
#include "request/completion_request.h"

namespace outrider::http {

// The fields of /completion and /infill: openai_dialect()'s names (llama-server takes both), and
// what its clients send that changes nothing here.
const api::Dialect& llama_dialect();

// "generation_settings": every sampling option under llama-server's name, limits, and the biases as
// [{"token","bias"}], null for never. `vocabulary` says which tokens ignore_eos takes away;
// `samplers` are the names of those that were asked for.
json::Json llama_settings(const CompletionRequest& request, const Vocabulary& vocabulary,
                          std::span<const std::string_view> samplers);

// The tokens' texts with control tokens by their names. REQUIRES: valid ids
std::string spelled_text(const std::vector<Token>& tokens, const Vocabulary& vocabulary);

}  // namespace outrider::http
