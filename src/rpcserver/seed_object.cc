#include "rpcserver/seed_object.h"

namespace outrider::rpcserver {

using json::Json;

Result<Json> parse_object(const char* text, bool may_be_empty) {
  const std::string_view given = text == nullptr ? std::string_view() : std::string_view(text);
  if (given.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    if (may_be_empty) return Json::object();
    const std::string what = text == nullptr ? "nothing was sent (NULL)" : "an empty text was sent";
    return invalid_argument(what + ", but a JSON object is needed");
  }
  json::Parsed value = json::parse(given);
  if (!value.ok()) return invalid_argument(value.error);
  if (value.value->is_object()) return *std::move(value.value);
  return invalid_argument("what was sent is " + std::string(json::kind(*value.value)) +
                          ", but must be an object");
}

void warn_of_unknown(const JsonFields& fields, std::vector<std::string>& warnings) {
  for (const std::string& name : fields.unknown()) {
    warnings.push_back(name + " is not known and has no effect");
  }
}

}  // namespace outrider::rpcserver
