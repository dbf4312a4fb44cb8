#include "api/spelling.h"

namespace outrider::api {
namespace {

using json::Json;

// "width" -> "speculative.width", where the client has it there.
std::string spelling(const std::string& field, const Json& params) {
  if (field == "prompt" && params.contains("messages") && !params.contains("prompt"))
    return "messages";
  const std::string name = field.substr(0, field.find_first_of("[."));
  if (params.contains(name) || !params.contains("speculative")) return field;
  const Json& nested = params["speculative"];
  if (name == "drafter" && nested.contains("drafters")) return "speculative.drafters";
  return nested.contains(name) ? "speculative." + field : field;
}

}  // namespace

Status spelled_as_in(const Status& status, const Json& params) {
  return status.spelled(spelling(status.field(), params));
}

}  // namespace outrider::api
