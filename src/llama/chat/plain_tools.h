// Tools for models whose chat template knows none: they are described in the system message, and a
// call is a JSON object in the answer. For templates that know a part of it: untold_tools.h.
//
//   {"tool_calls":[{"name":"get_weather","arguments":{"city":"Paris"}}]}
//
// Where a call is required, a grammar holds the answer to that from its beginning, else from where
// it begins to say so. Earlier calls and their results are put into messages that any template can
// write, also where no call may follow.
//
// Tested by plain_tools_test.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "llama/chat/chat_inputs.h"
#include "llama/schema/value_rules.h"
#include "model/chat.h"

namespace outrider::llama {

// Whether the conversation has calls of tools or their results.
bool has_calls_or_results(const std::vector<ChatMessage>& messages);

// The conversation without calls and results, which are texts of messages that any template can
// write.
std::vector<ChatMessage> calls_as_texts(const std::vector<ChatMessage>& messages);

// The tools, and that one may or must be called: a sentence without its full stop. It does not say
// how. `schemas`: of the options' tools, here and below.
// REQUIRES: the options hold tools, and the choice is not kNone
std::string tools_in_words(const ChatOptions& options, const std::vector<ToolSchema>& schemas);

// The conversation as calls_as_texts() has it, with a description of the tools, so that the model
// can call them.
// REQUIRES: the options hold tools, and the choice is not kNone
std::vector<ChatMessage> describe_tools(const std::vector<ChatMessage>& messages,
                                        const ChatOptions& options,
                                        const std::vector<ToolSchema>& schemas);

// What calls must keep to. `rules` is what the schemas were converted with. Errors:
// kInvalidArgument, about "tools" (a schema that cannot be used).
Result<ChatGrammar> plain_tool_grammar(const ChatOptions& options,
                                       const std::vector<ToolSchema>& schemas,
                                       const ValueRules& rules);

// Content up to the object, and the calls in it as far as they are said: a name comes with the
// beginning of its arguments, which stay as they were written. What is no such object is content.
// One that is cut before its first call is content only while it may be other JSON: not from
// {"tool_ on, and with `only_calls` never. `own` reads what is no call, and tells reasoning apart,
// in which no call is looked for; null: all else is content. Without `reads_own` it has only its
// given(): where a grammar holds from the answer's beginning, the object is said at once, in
// reasoning that the prompt has begun, too.
std::shared_ptr<const ChatReader> plain_tool_reader(bool only_calls,
                                                    std::shared_ptr<const ChatReader> own = nullptr,
                                                    bool reads_own = true);

}  // namespace outrider::llama
