#include "rpcserver/fields.h"

#include <cmath>

#include "api/json_fields.h"

namespace outrider::rpcserver {

using json::Json;

namespace {

constexpr std::size_t kMaxShown = 60;  // characters of a wrong value in a message

// 40 as "40", 0.5 as "0.5".
std::string number_text(double value) { return json::encode(Json(value)); }

std::string shown(const Json& value) {
  std::string text = json::encode(value);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return text;
}

}  // namespace

Fields::Fields(const Json& object, std::string prefix)
    : object_(object), prefix_(std::move(prefix)) {
  if (object_.is_object()) return;
  std::string field = prefix_;
  if (!field.empty()) field.pop_back();  // the point behind the name
  const std::string what = field.empty() ? "what was sent" : field;
  refusal_ = {.error = what + " is " + std::string(json::kind(object_)) + ", but must be an object",
              .field = field};
}

const Json* Fields::find(std::string_view key) {
  known_.emplace(key);
  if (!object_.is_object()) return nullptr;
  const Json::const_iterator found = object_.find(key);
  if (found == object_.end() || found->is_null()) return nullptr;
  return &*found;
}

bool Fields::read(std::string_view key, bool& value) {
  const Json* found = find(key);
  if (found == nullptr) return false;
  if (!found->is_boolean()) return refuse_kind(key, *found, "true or false");
  value = found->get<bool>();
  return true;
}

bool Fields::read(std::string_view key, std::string& value) {
  const Json* found = find(key);
  if (found == nullptr) return false;
  if (!found->is_string()) return refuse_kind(key, *found, "a string");
  value = found->get<std::string>();
  return true;
}

bool Fields::read(std::string_view key, std::int64_t& value, std::int64_t min, std::int64_t max) {
  const Json* found = find(key);
  if (found == nullptr) return false;
  const std::optional<std::int64_t> number = whole_number(*found, min, max);
  if (!number)
    return refuse(key, "is " + shown(*found) + ", but must be a whole number from " +
                           std::to_string(min) + " to " + std::to_string(max));
  value = *number;
  return true;
}

bool Fields::read(std::string_view key, double& value, double min, double max) {
  const Json* found = find(key);
  if (found == nullptr) return false;
  const double number = found->is_number() ? found->get<double>() : std::nan("");
  if (!(number >= min && number <= max))
    return refuse(key, "is " + shown(*found) + ", but must be a number from " + number_text(min) +
                           " to " + number_text(max));
  value = number;
  return true;
}

bool Fields::refuse(std::string_view key, std::string_view what) {
  const std::string field = prefix_ + std::string(key);
  refuse({.error = field + " " + std::string(what), .field = field});
  return false;
}

void Fields::refuse(Refusal refusal) {
  if (!refusal_) refusal_ = std::move(refusal);
}

bool Fields::refuse_kind(std::string_view key, const Json& value, std::string_view wanted) {
  return refuse(key,
                "is " + std::string(json::kind(value)) + ", but must be " + std::string(wanted));
}

std::vector<std::string> Fields::unknown() const {
  std::vector<std::string> warnings;
  if (!object_.is_object()) return warnings;
  for (const auto& [key, value] : object_.items()) {
    if (known_.contains(key)) continue;
    warnings.push_back(prefix_ + key + " is not known and has no effect");
  }
  return warnings;
}

ParsedObject parse_object(const char* text, bool may_be_empty) {
  ParsedObject parsed{.object = Json::object(), .refusal = std::nullopt};
  const std::string_view given = text == nullptr ? std::string_view() : std::string_view(text);
  if (given.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    if (!may_be_empty) {
      parsed.refusal = {.error = text == nullptr ? "nothing was sent (NULL), but a JSON object is "
                                                   "needed"
                                                 : "an empty text was sent, but a JSON object is "
                                                   "needed",
                        .field = ""};
    }
    return parsed;
  }
  json::Parsed value = json::parse(given);
  if (!value.ok()) {
    parsed.refusal = {.error = value.error, .field = ""};
    return parsed;
  }
  parsed.refusal = Fields(*value.value).refusal();
  if (!parsed.refusal) parsed.object = *std::move(value.value);
  return parsed;
}

std::optional<std::int64_t> whole_number(const Json& value, std::int64_t min, std::int64_t max) {
  const std::optional<std::int64_t> number = api::as_integer(value);
  return number && *number >= min && *number <= max ? number : std::nullopt;
}

}  // namespace outrider::rpcserver
