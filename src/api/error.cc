#include "api/error.h"

namespace outrider::api {
namespace {

using json::Json;

bool has(const Json& object, const std::string& name) {
  return object.is_object() && object.contains(name);
}

// "width" -> "speculative.width", where the client has it there.
std::string spelled_by(const Json& params, const std::string& field) {
  if (field == "prompt" && has(params, "messages") && !has(params, "prompt")) return "messages";
  const std::string name = field.substr(0, field.find_first_of("[."));
  if (has(params, name) || !has(params, "speculative")) return field;
  const Json& nested = params["speculative"];
  if (name == "drafter" && has(nested, "drafters")) return "speculative.drafters";
  return has(nested, name) ? "speculative." + field : field;
}

}  // namespace

Error error_of(const Status& status, const Json& params) {
  assert(!status.ok());
  std::string field = spelled_by(params, status.field());
  std::string message = status.message_with(field);
  return {.code = status.code(), .message = std::move(message), .field = std::move(field)};
}

}  // namespace outrider::api
