#include "api/spelling.h"

namespace outrider::api {
namespace {

using json::Json;

// "width" -> "speculative.width", "prompt" -> "messages" or "input" (/v1/responses), "tools" ->
// "functions" (OpenAI's older form), where the client has it there.
std::string spelling(const std::string& field, const Json& params) {
  const std::string name = field.substr(0, field.find_first_of("[."));
  if (params.contains(name)) return field;
  if (field == "prompt" && params.contains("messages")) return "messages";
  const bool of_conversation = field == "prompt" || field == "messages";
  if (of_conversation && params.contains("input")) return "input";
  if (name == "tools" && params.contains("functions")) {
    return "functions" + field.substr(name.size());
  }
  if (!params.contains("speculative")) return field;
  const Json& nested = params["speculative"];
  if (name == "drafter" && nested.contains("drafters")) return "speculative.drafters";
  return nested.contains(name) ? "speculative." + field : field;
}

}  // namespace

Status spelled_as_in(const Status& status, const Json& params) {
  return status.spelled(spelling(status.field(), params));
}

}  // namespace outrider::api
