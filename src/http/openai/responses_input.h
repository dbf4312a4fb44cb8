// The items of a Responses body's "input" as a conversation (responses_body.h).
#pragma once

#include "api/json_fields.h"
#include "http/completion/conversation_body.h"

namespace outrider::http {

// "input", behind what `conversation` has. Errors are in `fields`.
void read_responses_input(api::JsonFields& fields, Conversation& conversation);

}  // namespace outrider::http
