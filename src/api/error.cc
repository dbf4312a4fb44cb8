#include "api/error.h"

#include <algorithm>

namespace outrider::api {
namespace {

using json::Json;

bool part_of_name(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

bool has(const Json& object, const std::string& name) {
  return object.is_object() && object.contains(name);
}

// "top-p" -> "top_p", "drafter" -> "speculative.drafters"
std::string field_name(std::string_view option, const Json& params) {
  std::string name(option);
  std::replace(name.begin(), name.end(), '-', '_');
  if (has(params, name)) return name;
  if (has(params, "speculative")) {
    const Json& nested = params["speculative"];
    if (has(nested, name)) return "speculative." + name;
    if (name == "drafter" && has(nested, "drafters")) return "speculative.drafters";
  }
  return name;
}

// Replaces the options in `message`; `first` becomes the first one's field.
std::string translate(std::string_view message, const Json& params, std::string& first) {
  std::string text;
  std::size_t done = 0;
  for (std::size_t at; (at = message.find("--", done)) != std::string_view::npos;) {
    std::size_t end = at + 2;
    while (end < message.size() && part_of_name(message[end])) ++end;
    const bool inside = at > 0 && part_of_name(message[at - 1]);
    if (end == at + 2 || inside || message[at + 2] == '-') {  // a dash, not an option
      text += message.substr(done, end - done);
    } else {
      const std::string name = field_name(message.substr(at + 2, end - at - 2), params);
      if (first.empty()) first = name;
      text += std::string(message.substr(done, at - done)) + name;
    }
    done = end;
  }
  return text + std::string(message.substr(done));
}

}  // namespace

Error error_of(const Status& status, const Json& params) {
  assert(!status.ok());
  Error error{.code = status.code(), .message = "", .field = ""};
  error.message = translate(status.message(), params, error.field);
  for (const char* start : {"the prompt", "prompt token", "the messages"}) {
    if (error.message.rfind(start, 0) != 0) continue;
    error.field = has(params, "messages") ? "messages" : "prompt";
  }
  return error;
}

std::string with_field_names(std::string_view message) {
  std::string first;
  return translate(message, Json(), first);
}

Json error_json(const Error& error) {
  return {{"code", std::string(status_code_name(error.code))},
          {"message", error.message},
          {"field", error.field.empty() ? Json() : Json(error.field)}};
}

}  // namespace outrider::api
