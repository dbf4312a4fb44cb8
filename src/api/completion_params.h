// From JSON to a CompletionRequest: the fields of completion.start and completion.run, which HTTP's
// own formats are turned into as well.
//
// The names are those of the command's long options with _ for -, with the same meaning, ranges and
// defaults (completion_params.cc lists them); besides:
//
//   prompt        a string, or an array of strings and token ids; or
//   messages      [{"role","content"}], which go through the model's own chat template
//   speculative   true, false, or {"drafters":[...],"rule","width","branches","split_p",
//                 "draft_p_min","draft_p_ratio","namespace"}; the last seven may also stand beside
//                 it
//   grammar       the grammar itself; json_schema: an object, or its text
//   logit_bias    {"15043": 1.5, "2": false} or [[15043, 1.5], [2, false]]; false: never
//   stop, dry_sequence_breaker, grammar_trigger   a string or an array of strings
//   seed          -1: a random one
//   timeout_ms, shift_keep   as in serve/completion_request.h
//
// Tested by completion_params_test.cc: every field with its edges.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "api/error.h"
#include "api/json_fields.h"
#include "json/json.h"
#include "serve/completion_request.h"

namespace outrider::api {

// A field in words, for system.methods and the documentation.
struct Parameter {
  std::string_view name;
  std::string_view type;  // "integer", "number", "string", ...
  std::string_view help;  // with range and default
};

// Limits that only clients over JSON meet.
inline constexpr std::size_t kMaxStops = 64;
inline constexpr std::size_t kMaxStopBytes = 4096;  // of one
inline constexpr std::size_t kMaxMessages = 10'000;
inline constexpr std::int64_t kMaxTimeoutMs = 31'536'000'000;  // a year
inline constexpr std::int64_t kMaxWidth = 64;

// Errors: kInvalidArgument with the field. Whether the ids exist, the grammar can be read and the
// prompt fits is found by Runtime::start.
Answer<CompletionRequest> read_completion(const json::Json& params);

// All fields of read_completion, in the order of the documentation. Static storage.
std::span<const Parameter> completion_parameters();

}  // namespace outrider::api
