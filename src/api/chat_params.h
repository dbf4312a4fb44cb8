// From JSON to a conversation: what read_completion() reads beside a completion's other fields, in
// OpenAI's forms.
//
//   messages      [{"role": "system"|"developer"|"user"|"assistant"|"tool", "content": a string, an
//                 array of {"type": "text", "text"}, or null for none, "reasoning_content",
//                 "tool_calls": [{"id", "type": "function", "function": {"name", "arguments": a
//                 string, or the object itself}}], "tool_call_id", "name"}]; a developer is a
//                 system
//   tools         [{"type": "function", "function": {"name", "description", "parameters": a JSON
//                 schema, "strict"}}]
//   tool_choice   "auto", "none", "required", or {"type": "function", "function": {"name"}}, which
//                 leaves the one tool and requires one call of it, or {"type": "allowed_tools",
//                 "allowed_tools": {"mode": "auto" or "required", "tools": [such]}}, which leaves
//                 these
//   parallel_tool_calls  whether one answer may have several calls
//   reasoning     false: the model answers at once, where its template can switch that; or
//                 {"effort": "none" to "max"}: how hard it is to think
//   chat_template_kwargs  an object: further values for the template
//
// OpenAI's older form of a call and of what came of it, an assistant's "function_call": {"name",
// "arguments"} and a message {"role": "function", "name", "content"}, is as good as a call without
// an id. "reasoning" of a message is as good as "reasoning_content". What services write into
// answers, and clients send back with them, is taken and changes nothing: "id", "annotations",
// "cache_control" and the like, and whatever is null. Other fields of a message that are not listed
// are refused. An assistant's "refusal" is its content where it has none, and a part {"type":
// "refusal", "refusal"} of its content is as good as a text. A tool with "strict": true is called
// by its whole schema, and refused where that cannot be kept to; other tools by as much of it as a
// grammar can say. Where `strict` is a choice, null is as good as nothing.
//
// Tested by chat_params_test.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/json_fields.h"
#include "json/json.h"
#include "model/chat.h"
#include "request/completion_request.h"

namespace outrider::api {

// Of a part of a message: what clients send back from earlier answers, or for the service's caches.
inline constexpr std::string_view kIgnoredOfPart[] = {
    "annotations", "logprobs", "parsed", "cache_control", "prompt_cache_breakpoint", "citations"};

// Each reads the field of its name, where it is there. Errors name the place,
// "messages[2].tool_calls[0].function.name"; a part that is no text is kUnsupported.
void read_messages(JsonFields& fields, CompletionRequest& request);
void read_tools(JsonFields& fields, CompletionRequest& request);
void read_tool_choice(JsonFields& fields, CompletionRequest& request);  // behind read_tools
void read_template_values(JsonFields& fields, CompletionRequest& request);
// Where "reasoning" is an object. Behind read_template_values.
void read_reasoning_object(JsonFields& fields, CompletionRequest& request);

// How hard the model is to think, "none" to "max": the field `name`; empty: it is not there.
std::string read_effort(JsonFields& fields, std::string_view name);
// Templates know at most low, medium and high, as their value "reasoning_effort"; those without it
// only that there is reasoning or not. Other values for the template stay, and one of that name
// that the client gave itself. Empty: nothing changes. Behind what reads the template's values.
void set_effort(CompletionRequest& request, std::string_view effort);
// The same of {"effort"} at `place`, with what OpenAI's clients put beside it that changes nothing.
// What is no object is an error.
void read_reasoning_at(JsonFields& fields, const std::string& place, const json::Json& reasoning,
                       CompletionRequest& request);

// {"name", "description", "parameters", "strict"} at `place`, "tools[2].function".
void read_function(JsonFields& fields, const json::Json& function, const std::string& place,
                   ChatTool& read);

// As read_tools() where a tool has another form: at most kMaxChatTools, each read by `read`, which
// is told its `place`, "tools[2]".
using ToolReader = void (*)(JsonFields& fields, const json::Json& tool, const std::string& place,
                            ChatTool& read);
void read_each_tool(JsonFields& fields, CompletionRequest& request, ToolReader read);

// Of all tools only those of these names are left. `place` is where the names come from.
void keep_tools(JsonFields& fields, const std::string& place, std::span<const std::string> names,
                CompletionRequest& request);
// The tool of this name must be called, once, and no other.
void require_tool(JsonFields& fields, const std::string& place, const std::string& name,
                  CompletionRequest& request);

// {"role":"assistant","content","reasoning_content","tool_calls"}: null content where there are
// only calls; the last two only where there is any.
json::Json message_json(const ChatReply& reply);

}  // namespace outrider::api
