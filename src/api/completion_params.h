// From JSON to a CompletionRequest: the fields of completion.start and completion.run.
//
// The fields are those of request/completion_request.h; those with more than one form:
//
//   prompt        a string, or an array of strings and token ids; or
//   messages      a conversation, which goes through the model's own chat template; it, tools,
//                 tool_choice and chat_template_kwargs are read by api/chat_params.h
//   speculative   true, false, or {"drafters":[...],"rule","width","branches","split_p",
//                 "draft_p_min","draft_p_ratio","namespace"}; the last seven may also stand beside
//                 it; false is plain decoding whatever drafter says, the others exclude its none
//   json_schema   an object, or its text
//   logit_bias    {"15043": 1.5, "2": false} or [[15043, 1.5], [2, false]]; false: never
//
// Tested by completion_params_test.cc: every field with its edges.
#pragma once

#include <optional>
#include <span>

#include "api/read_fields.h"
#include "base/status.h"
#include "json/json.h"
#include "request/completion_request.h"

namespace outrider::api {

// Errors: kInvalidArgument with the field. Whether the ids exist, the grammar can be read and the
// prompt fits is found by Runtime::start.
Result<CompletionRequest> read_completion(const json::Json& params);

// The same for readers of other APIs, who have fields of their own beside these: into `request`,
// which holds the defaults. Errors are in `fields`; what goes together is not checked (validate()).
void read_completion_fields(JsonFields& fields, CompletionRequest& request);
// Of these, how it is to be answered: all but the prompt or the conversation.
void read_settings_fields(JsonFields& fields, CompletionRequest& request);

// A token's id as a key of an object; nothing: it is something else.
std::optional<Token> as_token_key(const std::string& key);

// [token id, number or false]; nothing: it is something else.
std::optional<LogitBias> as_logit_bias(const json::Json& pair);

// The prompt, where it is there, behind what is in `request`. In a dialect by its words.
void read_prompt(JsonFields& fields, CompletionRequest& request);
// The end of such a reading of `params` into `request`: the first error of `fields`, or what
// `check` says of the request.
using RequestCheck = Status (*)(const CompletionRequest&);
Status finish_completion(JsonFields& fields, const json::Json& params,
                         const CompletionRequest& request, RequestCheck check = validate);

// `request` with the fields of `params` in place of its own, for settings that change one by one.
// Without a prompt, it may have none. Errors as above.
Result<CompletionRequest> change_completion(const json::Json& params, CompletionRequest request);

// All fields of read_completion, in the order of the documentation. Static storage.
std::span<const Parameter> completion_parameters();

}  // namespace outrider::api
