// Reads JSON into a struct by its table of fields (base/field.h), and describes the table.
//
// Strict, as JsonFields is. Fields that are ByHand are skipped, and so are objects of those that
// may be one (Field::or_object): the code that reads the struct reads them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json_fields.h"
#include "base/field.h"

namespace outrider::api {

// The description of a field, for system.methods and the documentation.
struct Parameter {
  std::string name;
  std::string type;  // "integer", "number", "string", ...
  std::string help;  // with range and default
  // What a schema says of it beside its type; `most`: items of an array, 0: any number.
  Range range = {};
  std::vector<std::string_view> choices = {};
  std::size_t most = 0;
};

// What read_field() does, by the kind of the field's place.
template <typename T>
class FieldReader {
 public:
  FieldReader(JsonFields& fields, const Field<T>& field, T& object)
      : fields_(fields), field_(field), object_(object) {}

  void operator()(const ByHand& /*place*/) {}
  void operator()(float& value) { fields_.number(field_.name, value); }
  template <typename Whole>
  requires std::is_same_v<Whole, std::int32_t> || std::is_same_v<Whole, std::int64_t>
  void operator()(Whole& value) {
    fields_.integer(field_.name, value, whole_limit(field_.range.min),
                    whole_limit(field_.range.max));
  }
  void operator()(bool& value) { fields_.boolean(field_.name, value); }
  void operator()(std::string& value) { fields_.text(field_.name, value); }
  void operator()(std::vector<std::string>& value) { fields_.texts(field_.name, value); }
  template <typename Value>
  void operator()(std::optional<Value>& value) {
    if (fields_.any(field_.name) == nullptr) return;
    Value given{};
    (*this)(given);
    value = std::move(given);
  }
  void operator()(const Choice<T>& choice) {
    std::string name;
    fields_.choice(field_.name, name, choice.names);
    for (std::size_t i = 0; i < choice.names.size(); ++i) {
      if (choice.names[i] == name) choice.set(object_, i);
    }
  }
  void operator()(const OrAuto<T>& place) {
    const json::Json* given = fields_.any(field_.name);
    if (given == nullptr) return;
    const bool automatic = is_text(*given, "auto");
    const std::optional<std::int64_t> number = automatic ? place.automatic : as_integer(*given);
    if (!number || !(automatic || field_.range.contains(static_cast<double>(*number)))) {
      return fields_.refuse(std::string(field_.name), *given,
                            "'auto', or " + whole_range_text(field_.range));
    }
    object_.*(place.member) = static_cast<std::int32_t>(*number);
  }
  void operator()(const TextForm<T>& form) {
    std::string text;
    fields_.text(field_.name, text);
    if (!fields_.ok() || fields_.any(field_.name) == nullptr) return;
    fields_.fail(form.set(object_, text, std::string(field_.name)));
  }

 private:
  JsonFields& fields_;
  const Field<T>& field_;
  T& object_;
};

// The field's value, when it is there, into `object`.
template <typename T>
void read_field(JsonFields& fields, const Field<T>& field, T& object) {
  if (!field.or_object.empty()) {
    const json::Json* given = fields.any(field.name);
    if (given != nullptr && given->is_object()) return;
  }
  visit_field(field, object, FieldReader<T>(fields, field, object));
  if (fields.ok()) fields.fail(check(field, object));
}

template <typename T>
void read_fields(JsonFields& fields, std::span<const Field<T>> table, T& object) {
  for (const Field<T>& field : table) read_field(fields, field, object);
}

template <typename T>
Parameter parameter_of(const Field<T>& field) {
  static const T kDefaults;
  std::string otherwise(field.otherwise);
  if (otherwise.empty()) otherwise = value_text(field, kDefaults);
  std::string help = full_help(field);
  std::string type(field.type());
  if (!field.or_object.empty()) {
    help.append("; or ").append(field.or_object);
    type += " | object";
  }
  if (!otherwise.empty()) help += "; default: " + otherwise;
  Parameter parameter{.name = std::string(field.name),
                      .type = std::move(type),
                      .help = std::move(help),
                      .range = field.range,
                      .most = field.most};
  if (const auto* choice = std::get_if<Choice<T>>(&field.place)) {
    parameter.choices.assign(choice->names.begin(), choice->names.end());
  }
  return parameter;
}

template <typename T>
std::vector<Parameter> parameters_of(std::span<const Field<T>> table) {
  std::vector<Parameter> list;
  for (const Field<T>& field : table) list.push_back(parameter_of(field));
  return list;
}

}  // namespace outrider::api
