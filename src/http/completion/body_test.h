// What the tests of bodies share.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "json/json.h"
#include "request/completion_request.h"

namespace outrider::http {

inline json::Json parsed(const char* text) {
  const json::Parsed value = json::parse(text);
  EXPECT_TRUE(value.ok()) << value.error << ": " << text;
  return value.ok() ? *value.value : json::Json();
}

// "role|content|reasoning|name arguments,...|of call, tool" a message.
inline std::vector<std::string> shown(const CompletionRequest& request) {
  std::vector<std::string> list;
  for (const ChatMessage& m : request.messages) {
    std::string calls;
    for (const ToolCall& call : m.tool_calls) {
      calls += (calls.empty() ? "" : ",") + call.id + " " + call.name + call.arguments;
    }
    list.push_back(m.role + "|" + m.content + "|" + m.reasoning + "|" + calls + "|" +
                   m.tool_call_id + " " + m.name);
  }
  return list;
}

}  // namespace outrider::http
