// From JSON to a CompletionRequest: the fields of completion.start and completion.run.
//
// The fields are those of request/completion_request.h; those with more than one form:
//
//   prompt        a string, or an array of strings and token ids; or
//   messages      [{"role","content"}], which go through the model's own chat template
//   speculative   true, false, or {"drafters":[...],"rule","width","branches","split_p",
//                 "draft_p_min","draft_p_ratio","namespace"}; the last seven may also stand beside
//                 it
//   json_schema   an object, or its text
//   logit_bias    {"15043": 1.5, "2": false} or [[15043, 1.5], [2, false]]; false: never
//
// Tested by completion_params_test.cc: every field with its edges.
#pragma once

#include <span>

#include "api/error.h"
#include "api/read_fields.h"
#include "json/json.h"
#include "request/completion_request.h"

namespace outrider::api {

// Errors: kInvalidArgument with the field. Whether the ids exist, the grammar can be read and the
// prompt fits is found by Runtime::start.
Answer<CompletionRequest> read_completion(const json::Json& params);

// All fields of read_completion, in the order of the documentation. Static storage.
std::span<const Parameter> completion_parameters();

}  // namespace outrider::api
