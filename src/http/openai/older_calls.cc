#include "http/openai/older_calls.h"

#include <string>
#include <string_view>
#include <utility>

#include "api/chat_params.h"

namespace outrider::http {
namespace {

using json::Json;

void read_list(api::JsonFields& fields, const Json& functions, CompletionRequest& request) {
  if (!functions.is_array()) return fields.refuse("functions", functions, "an array of functions");
  if (functions.size() > kMaxChatTools) {
    return fields.fail("functions", "functions holds " + std::to_string(functions.size()) +
                                        ", at most " + std::to_string(kMaxChatTools) + " can be");
  }
  for (std::size_t i = 0; i < functions.size() && fields.ok(); ++i) {
    api::read_function(fields, functions[i], api::item_name("functions", i),
                       request.chat.tools.emplace_back());
  }
}

void read_choice(api::JsonFields& fields, const Json& choice, CompletionRequest& request) {
  if (!choice.is_object()) {
    static constexpr std::string_view kChoices[] = {"auto", "none"};
    std::string name;
    fields.choice("function_call", name, kChoices);
    if (name == "none") request.chat.tool_choice = ToolChoice::kNone;
    return;
  }
  api::JsonFields inner(choice, "function_call.");
  std::string name;
  inner.require("name");
  inner.text("name", name);
  fields.take(inner.finish());
  if (fields.ok()) api::require_tool(fields, "function_call.name", name, request);
}

}  // namespace

bool read_functions(api::JsonFields& fields, CompletionRequest& request) {
  const Json* functions = fields.any("functions");
  const Json* choice = fields.any("function_call");
  if (functions == nullptr && choice == nullptr) return false;
  const std::string given = functions != nullptr ? "functions" : "function_call";
  for (const char* newer : {"tools", "tool_choice"}) {
    if (fields.any(newer) == nullptr) continue;
    fields.fail(given, given + " is the older form of tools and tool_choice, and " + newer +
                           " is there as well; give one of the forms");
    return true;
  }
  if (functions != nullptr) read_list(fields, *functions, request);
  if (choice != nullptr && fields.ok()) read_choice(fields, *choice, request);
  request.chat.parallel_tool_calls = false;
  return true;
}

void use_function_call(Json& message) {
  const Json::iterator calls = message.find("tool_calls");
  if (calls == message.end()) return;
  Json call = std::move((*calls)[0]["function"]);
  message.erase(calls);
  message["function_call"] = std::move(call);
}

void add_function_call(const AnswerDelta& delta, Json& object) {
  for (const ToolCallDelta& call : delta.tool_calls) {
    if (call.index > 0) continue;
    Json& function = object["function_call"];
    if (!call.name.empty()) function["name"] = call.name;
    function["arguments"] = call.arguments;
  }
}

}  // namespace outrider::http
