// "system" and "messages" of an Anthropic body as a conversation (anthropic_body.h).
#pragma once

#include "api/json_fields.h"
#include "request/completion_request.h"

namespace outrider::http {

// Into `request`, which has none. Errors are in `fields`.
void read_anthropic_messages(api::JsonFields& fields, CompletionRequest& request);

}  // namespace outrider::http
