// From our messages and options to llama-common's, checked on the way.
//
// What llama-common does not survive or does not notice: texts that are not UTF-8 and JSON that is
// nested thousands deep (its JSON code recurses), schemas that lead back to themselves
// (llama/schema/schema_rewriter.h), arguments of earlier calls that are not JSON.
//
// Tested by chat_inputs_test.cc.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "chat.h"
#include "json/json.h"
#include "llama/schema/value_rules.h"
#include "model/chat.h"

namespace outrider::llama {

// A tool's parameters, each read and converted once.
struct ToolSchema {
  json::Json given;
  json::Json convertible;  // in the converter's words; null where no tool may be called
};

struct ChatInputs {
  // Its schemas are for grammars: in the words that llama-common's converter keeps to.
  common_chat_templates_inputs common;
  // What the prompt is to say of the tools, where that is something else: their parameters as they
  // were given. Empty: what `common` has.
  std::vector<std::string> given_parameters;
  std::string given_json_schema;         // likewise; empty: there is none
  std::vector<ToolSchema> tool_schemas;  // by tool
  ValueRules rules;                      // for what becomes of the schemas
};

// Errors: kInvalidArgument about "messages", "tools", "json_schema" or "chat_template_kwargs"; the
// message names the place.
Result<ChatInputs> chat_inputs(const std::vector<ChatMessage>& messages,
                               const ChatOptions& options);

}  // namespace outrider::llama
