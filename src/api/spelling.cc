#include "api/spelling.h"

namespace outrider::api {
namespace {

using json::Json;

bool has(const Json& object, const std::string& name) {
  return object.is_object() && object.contains(name);
}

// "width" -> "speculative.width", where the client has it there.
std::string spelling(const std::string& field, const Json& params) {
  if (field == "prompt" && has(params, "messages") && !has(params, "prompt")) return "messages";
  const std::string name = field.substr(0, field.find_first_of("[."));
  if (has(params, name) || !has(params, "speculative")) return field;
  const Json& nested = params["speculative"];
  if (name == "drafter" && has(nested, "drafters")) return "speculative.drafters";
  return has(nested, name) ? "speculative." + field : field;
}

}  // namespace

Status spelled_as_in(const Status& status, const Json& params) {
  return status.spelled(spelling(status.field(), params));
}

}  // namespace outrider::api
