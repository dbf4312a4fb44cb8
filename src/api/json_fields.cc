#include "api/json_fields.h"

#include <algorithm>
#include <cmath>

#include "base/list_of.h"
#include "base/nearest.h"
#include "base/utf8.h"

namespace outrider::api {
namespace {

using json::Json;

constexpr std::size_t kShownBytes = 48;
constexpr std::size_t kSentBytes = 60;

std::string sent_text(const Json& value) {
  const std::string text = json::encode(value);
  if (text.size() <= kSentBytes) return text;
  return text.substr(0, complete_utf8_prefix(std::string_view(text).substr(0, kSentBytes))) + "...";
}

}  // namespace

std::string item_name(std::string_view name, std::size_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

bool is_text(const Json& value, std::string_view text) {
  return value.is_string() && value.get_ref<const std::string&>() == text;
}

bool is_path(const Json& value) {
  if (!value.is_string()) return false;
  const std::string& text = value.get_ref<const std::string&>();
  return !text.empty() && text.find('\0') == std::string::npos;
}

std::string shown(const Json& value) {
  if (value.is_object() || value.is_array()) return std::string(json::kind(value));
  std::string text;
  if (value.is_string()) {  // cut before it is encoded: it may be long
    const std::string& whole = value.get_ref<const std::string&>();
    const std::string_view start = std::string_view(whole).substr(0, kShownBytes);
    text = json::encode(Json(std::string(start.substr(0, complete_utf8_prefix(start)))));
    if (whole.size() > kShownBytes) text.insert(text.size() - 1, "...");
    text.front() = text.back() = '\'';
    return text;
  }
  return json::encode(value);
}

std::optional<std::int64_t> as_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const std::uint64_t number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return {};
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return {};
  const double number = value.get<double>();
  if (!is_whole(number)) return {};
  return static_cast<std::int64_t>(number);
}

std::optional<Token> as_token(const Json& value) {
  const std::optional<std::int64_t> id = as_integer(value);
  if (!id || *id < 0 || *id > kMaxInt32) return {};
  return static_cast<Token>(*id);
}

JsonFields::JsonFields(const Json& object, std::string path, const Dialect* dialect)
    : object_(object), path_(std::move(path)), dialect_(dialect) {
  if (object_.is_object()) return;
  const std::string name = path_.empty() ? "params" : path_.substr(0, path_.size() - 1);
  error_ = wrong_value(name, shown(object_), "an object");
}

const Json* JsonFields::find(const std::string& name) {
  const Json::const_iterator found = object_.find(name);
  const bool absent = found == object_.end() ||
                      (found->is_null() && dialect_ != nullptr && dialect_->null_is_absent);
  return absent ? nullptr : &*found;
}

const Json* JsonFields::any(std::string_view name) {
  names_.emplace_back(name);
  if (!ok()) return nullptr;
  const Json* given = find(names_.back());
  if (dialect_ == nullptr) return given;
  std::string given_as(name);
  for (const Dialect::Name& other : dialect_->names) {
    if (other.ours != name) continue;
    names_.emplace_back(other.theirs);
    const Json* again = find(names_.back());
    if (again == nullptr) continue;
    if (given != nullptr && *given != *again) {
      fail(given_as, given_as + " and " + names_.back() + " differ; give one of them");
      return nullptr;
    }
    given = again;
    given_as = other.theirs;
  }
  return given;
}

std::string JsonFields::spelled(const std::string& name) const {
  if (dialect_ == nullptr || has(name)) return name;
  const std::size_t end = std::min(name.find_first_of("[."), name.size());
  for (const Dialect::Name& other : dialect_->names) {
    if (other.ours == std::string_view(name).substr(0, end) && has(std::string(other.theirs))) {
      return std::string(other.theirs) + name.substr(end);
    }
  }
  return name;
}

void JsonFields::require(std::string_view name) {
  if (ok() && any(name) == nullptr) {
    fail(std::string(name), path_ + std::string(name) + " is missing");
  }
}

void JsonFields::fail(const std::string& name, const std::string& message) {
  take(invalid_argument(message).about(path_ + name));
}

void JsonFields::fail(const Status& status) {
  if (status.ok()) return;
  const std::string name = spelled(status.field());
  fail(name, status.message_with(path_ + name));
}

void JsonFields::refuse(const std::string& name, const Json& value, const std::string& wanted) {
  const std::string given_as = spelled(name);
  fail(given_as, path_ + given_as + " is " + (as_sent() ? sent_text(value) : shown(value)) +
                     ", but must be " + wanted);
}

void JsonFields::refuse_kind(std::string_view name, const Json& value, const std::string& wanted) {
  if (!as_sent()) return refuse(std::string(name), value, wanted);
  fail(refused(std::string(name),
               "is " + std::string(json::kind(value)) + ", but must be " + wanted));
}

void JsonFields::refuse_item(std::string_view name, std::size_t index, const Json& item,
                             const std::string& wanted, std::string_view all) {
  if (!as_sent()) return refuse(item_name(name, index), item, wanted);
  fail(refused(std::string(name), "has " + std::string(json::kind(item)) +
                                      " among its parts, but they must be " + std::string(all)));
}

std::optional<std::int64_t> JsonFields::whole_number(std::string_view name, std::int64_t min,
                                                     std::int64_t max) {
  const Json* value = any(name);
  if (value == nullptr) return {};
  const std::optional<std::int64_t> number = as_integer(*value);
  if (number && *number >= min && *number <= max) return number;
  refuse(std::string(name), *value,
         "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  return {};
}

void JsonFields::number(std::string_view name, float& value) {
  const Json* given = any(name);
  if (given == nullptr) return;
  if (!given->is_number()) return refuse(std::string(name), *given, "a number");
  const double number = given->get<double>();
  if (!(std::fabs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) {
    return refuse(std::string(name), *given, "a number of at most 3.4e38 in size");
  }
  value = static_cast<float>(number);
}

void JsonFields::number(std::string_view name, double& value, const Range& range) {
  const Json* given = any(name);
  if (given == nullptr) return;
  const double number = given->is_number() ? given->get<double>() : std::nan("");
  if (!range.contains(number) || std::fabs(number) > std::numeric_limits<float>::max()) {
    return refuse(std::string(name), *given, range_text(range));
  }
  value = number;
}

void JsonFields::boolean(std::string_view name, bool& value) {
  const Json* given = any(name);
  if (given == nullptr) return;
  if (!given->is_boolean()) return refuse_kind(name, *given, "true or false");
  value = given->get<bool>();
}

void JsonFields::text(std::string_view name, std::string& value) {
  const Json* given = any(name);
  if (given == nullptr) return;
  if (!given->is_string()) return refuse_kind(name, *given, "a string");
  value = given->get<std::string>();
}

void JsonFields::path(std::string_view name, std::string& value, const std::string& wanted) {
  const Json* given = any(name);
  if (given == nullptr) return;
  if (!is_path(*given)) return refuse(std::string(name), *given, wanted);
  value = given->get<std::string>();
}

void JsonFields::texts(std::string_view name, std::vector<std::string>& value) {
  const Json* given = any(name);
  if (given == nullptr) return;
  if (!given->is_array() && !given->is_string()) {
    return refuse_kind(name, *given, "a string or an array of strings");
  }
  value.clear();
  if (given->is_string()) return value.push_back(given->get<std::string>());
  for (const Json& item : *given) {
    if (!item.is_string()) return refuse_item(name, value.size(), item, "a string", "strings");
    value.push_back(item.get<std::string>());
  }
}

void JsonFields::choice(std::string_view name, std::string& value,
                        std::span<const std::string_view> choices) {
  const Json* given = any(name);
  if (given == nullptr) return;
  std::vector<std::string> wanted;
  for (const std::string_view one : choices) {
    if (is_text(*given, one)) {
      value = one;
      return;
    }
    wanted.emplace_back(one.empty() ? "''" : one);
  }
  refuse(std::string(name), *given, list_of(wanted, " or "));
}

std::vector<std::string> JsonFields::unknown() const {
  std::vector<std::string> unknown;
  if (!object_.is_object()) return unknown;
  const auto among = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  // Where they are no errors (the seed's API warns of them), a null one is told, too.
  const bool null_is_none = dialect_ != nullptr && !dialect_->may_be_unknown &&
                            (dialect_->null_is_absent || dialect_->unknown_may_be_null);
  for (const Json::object_t::value_type& field : object_.get_ref<const Json::object_t&>()) {
    if (null_is_none && field.second.is_null()) continue;  // it asks for nothing
    const bool known = among(names_, field.first) ||
                       (dialect_ != nullptr && among(dialect_->ignored, field.first));
    if (!known) unknown.push_back(path_ + field.first);
  }
  return unknown;
}

Status JsonFields::finish() {
  if (!ok() || (dialect_ != nullptr && dialect_->may_be_unknown)) return error_;
  const std::vector<std::string> strangers = unknown();
  if (strangers.empty()) return error_;
  const std::string name = strangers.front().substr(path_.size());
  const std::string near = nearest(name, names_);
  const std::string_view start = std::string_view(name).substr(0, 64);
  const std::string cut(start.substr(0, complete_utf8_prefix(start)));
  fail(cut, path_ + cut + " is not a field that is known here" +
                (near.empty() ? "" : "; did you mean " + path_ + near + "?"));
  return error_;
}

}  // namespace outrider::api
