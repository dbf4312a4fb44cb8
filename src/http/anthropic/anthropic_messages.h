// "system" and "messages" of an Anthropic body as a conversation (anthropic_body.h).
#pragma once

#include "api/json_fields.h"
#include "request/completion_request.h"

namespace outrider::http {

// Claude Code puts a line of its own in front of its system prompt, "x-anthropic-billing-header:
// ...; cch=a5145;", whose five characters behind "cch=" are others in each request, so that no
// prefix could be reused. They become constants, as with llama-server. In front of
// read_anthropic_messages(); whatever is wrong with "system" stays as it is.
void steady_billing_header(json::Json& body);

// Into `request`, which has none. Errors are in `fields`.
void read_anthropic_messages(api::JsonFields& fields, CompletionRequest& request);

}  // namespace outrider::http
