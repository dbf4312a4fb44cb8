// From our messages and options to llama-common's, checked on the way.
//
// What llama-common does not survive or does not notice: texts that are not UTF-8 and JSON that is
// nested thousands deep (its JSON code recurses), schemas of tools that lead back to themselves
// (schema/json_schema.h), arguments of earlier calls that are not JSON.
//
// Tested by chat_inputs_test.cc.
#pragma once

#include <vector>

#include "base/status.h"
#include "chat.h"
#include "model/chat.h"

namespace outrider::llama {

// Errors: kInvalidArgument about "messages", "tools" or "chat_template_kwargs"; the message names
// the place.
Result<common_chat_templates_inputs> chat_inputs(const std::vector<ChatMessage>& messages,
                                                 const ChatOptions& options);

}  // namespace outrider::llama
