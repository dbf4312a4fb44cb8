// "samplers", which llama-server's clients send with completions of every kind.
//
// Tested by samplers_test.cc.
#pragma once

#include <string_view>
#include <vector>

#include "api/json_fields.h"
#include "model/sampler.h"

namespace outrider::http {

// Under llama.cpp's names, in the order in which they work here. Static storage.
std::vector<std::string_view> sampler_names();

// "samplers": ["top_k", "temperature", ...] or "kt": the samplers that are not named are switched
// off, except that with mirostat the temperature stays, as llama-server has it. They must be named
// in the order in which they work here, which is llama-server's default order; errors are in
// `fields`. Behind the samplers' own fields. Returns those that are named, all where the field is
// not there; static storage.
std::vector<std::string_view> read_samplers(api::JsonFields& fields, SamplingOptions& options);

}  // namespace outrider::http
