// Field: one value of a struct that users set, as every interface names, reads and explains it.
//
// A table of fields stands beside its struct (sampling_fields() beside SamplingOptions, ...), and
// says each thing once. From the tables come: the reading of JSON (api/read_fields.h), the
// command's options with their help, environment variables and TOML keys
// (tools/options/field_options.h), the parameters that system.methods lists, and the checks of
// ranges (check(), below).
#pragma once

#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

namespace outrider {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();
inline constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
inline constexpr std::int64_t kYearMs = 31'536'000'000;  // the longest wait of any kind

// What a number may be. Of texts: the bytes of each.
struct Range {
  double min = -kNoLimit;
  double max = kNoLimit;
  bool above_min = false;  // min itself is outside

  bool contains(double value) const;  // never infinity or NaN
};

// A limit of whole numbers, at the edge of 64 bits where it is beyond.
std::int64_t whole_limit(double value);

// "from 0 to 1", "above 0 and at most 1", "a finite number of at least 0", "a finite number".
std::string range_text(const Range& range);
// "a whole number from 1 to 64".
std::string whole_range_text(const Range& range);

// Where a number means that the thing is switched off.
struct Off {
  enum class Where { kNowhere, kAt, kFrom, kUpTo };
  Where where = Where::kNowhere;
  double value = 0.0;

  bool covers(double number) const;
};
// "1 switches it off", "0 or less switches it off"; empty for kNowhere.
std::string off_text(const Off& off, const Range& range);

// One of several names. get: the index of the one that is chosen.
template <typename T>
struct Choice {
  std::span<const std::string_view> names;
  std::size_t (*get)(const T&);
  void (*set)(T&, std::size_t);
};

// A Choice whose names are in the order of an enum: choice<&ModelOptions::exact>(kNames).
template <auto kMember, typename T, typename E>
constexpr Choice<T> choice_of(E T::* /*deduced*/, std::span<const std::string_view> names) {
  return {.names = names,
          .get = [](const T& object) { return static_cast<std::size_t>(object.*kMember); },
          .set = [](T& object, std::size_t i) { object.*kMember = static_cast<E>(i); }};
}
template <auto kMember>
constexpr auto choice(std::span<const std::string_view> names) {
  return choice_of<kMember>(kMember, names);
}

// A whole number in the field's range, or "auto", which is kept as `automatic`.
template <typename T>
struct OrAuto {
  std::int32_t T::*member;
  std::int32_t automatic;
};

// What is written as one text. set: errors as refused(name, ...), with the object as it was.
template <typename T>
struct TextForm {
  Status (*set)(T&, std::string_view text, const std::string& name);
  std::string (*get)(const T&);
};

// Each interface reads it in its own way; `type` is JSON's.
struct ByHand {
  std::string_view type;
};

template <typename T>
struct Field {
  using Place = std::variant<ByHand, float T::*, std::int32_t T::*, std::int64_t T::*, bool T::*,
                             std::string T::*, std::vector<std::string> T::*,
                             std::optional<std::int32_t> T::*, std::optional<std::string> T::*,
                             Choice<T>, OrAuto<T>, TextForm<T>>;

  std::string_view name;  // in JSON and TOML; as an option with - for _
  // What it is, and what special values mean; neither its range nor its default.
  std::string_view help;
  Place place;
  Range range = {};
  Off off = {};
  std::string_view unit = {};         // what the command's help calls a value; empty: by its type
  char letter = '\0';                 // of the command's short option
  std::size_t most = 0;               // texts at most; 0: any number
  std::string_view replaced_by = {};  // the field that, where it is on, takes this one's place
  std::string_view otherwise = {};    // its default in words, where that is not a value
  // In JSON it may also be an object, which is read by hand: what that says. Empty: it may not.
  std::string_view or_object = {};

  std::string_view type() const;  // "number", "integer", "string | array", ...
};

// "<name> is <value>, but must be <range> (<off>)", where it is outside; and likewise for how many
// texts there are and their bytes. Ok for what has no range.
template <typename T>
Status check(const Field<T>& field, const T& object);

// All of them, in order.
template <typename T>
Status check(std::span<const Field<T>> fields, const T& object) {
  for (const Field<T>& field : fields) OUTRIDER_RETURN_IF_ERROR(check(field, object));
  return Status();
}

// For people: help, what switches it off, and the range: "..., from 0 to 1".
template <typename T>
std::string full_help(const Field<T>& field);

// The field of that name; null: there is none.
template <typename T>
const Field<T>* find_field(std::span<const Field<T>> fields, std::string_view name) {
  for (const Field<T>& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}
// REQUIRES: it is there
template <typename T>
const Field<T>& field_named(std::span<const Field<T>> fields, std::string_view name) {
  const Field<T>* const field = find_field(fields, name);
  assert(field != nullptr);
  return *field;
}

// A number that is neither off nor as it is without being set.
template <typename T>
bool is_used(const Field<T>& field, const T& object);

// As it is without being set, where its place is a member.
template <typename T>
void put_back(const Field<T>& field, T& object);

// Its value as a text: "0.8", "40", "auto", "coupled"; empty where it is not set.
template <typename T>
std::string value_text(const Field<T>& field, const T& object);

// What is wrong with a number, as check() has it.
Status out_of_range(std::string_view name, double value, const Range& range, const Off& off,
                    bool whole);
// 0.8f as "0.8", 64 as "64", 1e9 as "1e+09": the shortest text that is read as the same number.
std::string shortest(float value);
std::string shortest(double value);
// Whether it is a whole number, and small enough (2^53) for each whole number to be a double.
bool is_whole(double value);

std::string help_text(std::string_view help, std::string_view type, const Range& range,
                      const Off& off, std::size_t most);

Status check_texts(std::string_view name, const std::vector<std::string>& texts, const Range& range,
                   std::size_t most);

// Calls `visitor` with what `field` points to: a reference to the member, or the Choice, OrAuto,
// TextForm or ByHand itself.
template <typename T, typename Object, typename Visitor>
decltype(auto) visit_field(const Field<T>& field, Object& object, Visitor&& visitor) {
  return std::visit(
      [&](const auto& place) -> decltype(auto) {
        if constexpr (std::is_member_object_pointer_v<std::decay_t<decltype(place)>>) {
          return visitor(object.*place);
        } else {
          return visitor(place);
        }
      },
      field.place);
}

// Details from here on.

template <typename T>
std::string_view Field<T>::type() const {
  if (const ByHand* by_hand = std::get_if<ByHand>(&place)) return by_hand->type;
  if (std::holds_alternative<float T::*>(place)) return "number";
  if (std::holds_alternative<bool T::*>(place)) return "boolean";
  if (std::holds_alternative<std::vector<std::string> T::*>(place)) return "string | array";
  if (std::holds_alternative<OrAuto<T>>(place)) return "integer | string";
  const bool whole = std::holds_alternative<std::int32_t T::*>(place) ||
                     std::holds_alternative<std::int64_t T::*>(place) ||
                     std::holds_alternative<std::optional<std::int32_t> T::*>(place);
  return whole ? "integer" : "string";
}

template <typename T>
std::string full_help(const Field<T>& field) {
  return help_text(field.help, field.type(), field.range, field.off, field.most);
}

template <typename T>
Status check(const Field<T>& field, const T& object) {
  const auto number = [&field](double value, bool whole) {
    return field.range.contains(value)
               ? Status()
               : out_of_range(field.name, value, field.range, field.off, whole);
  };
  if (const auto* at = std::get_if<float T::*>(&field.place)) return number(object.**at, false);
  if (const auto* at = std::get_if<std::int32_t T::*>(&field.place)) {
    return number(object.**at, true);
  }
  if (const auto* at = std::get_if<std::int64_t T::*>(&field.place)) {
    return number(static_cast<double>(object.**at), true);
  }
  if (const auto* at = std::get_if<std::optional<std::int32_t> T::*>(&field.place)) {
    return object.**at ? number(*(object.**at), true) : Status();
  }
  if (const auto* at = std::get_if<OrAuto<T>>(&field.place)) {
    const std::int32_t value = object.*(at->member);
    return value == at->automatic ? Status() : number(value, true);
  }
  if (const auto* at = std::get_if<std::vector<std::string> T::*>(&field.place)) {
    return check_texts(field.name, object.**at, field.range, field.most);
  }
  return Status();
}

template <typename T>
bool is_used(const Field<T>& field, const T& object) {
  static const T kDefaults;
  const auto used = [&field](double value, double usual) {
    return !field.off.covers(value) && value != usual;
  };
  if (const auto* at = std::get_if<float T::*>(&field.place)) {
    return used(object.**at, kDefaults.**at);
  }
  if (const auto* at = std::get_if<std::int32_t T::*>(&field.place)) {
    return used(object.**at, kDefaults.**at);
  }
  return false;
}

template <typename T>
void put_back(const Field<T>& field, T& object) {
  static const T kDefaults;
  std::visit(
      [&object](const auto& place) {
        if constexpr (std::is_member_object_pointer_v<std::decay_t<decltype(place)>>) {
          object.*place = kDefaults.*place;
        }
      },
      field.place);
}

template <typename T>
std::string value_text(const Field<T>& field, const T& object) {
  return std::visit(
      [&object](const auto& place) -> std::string {
        using Place = std::decay_t<decltype(place)>;
        if constexpr (std::is_same_v<Place, ByHand>) {
          return "";
        } else if constexpr (std::is_same_v<Place, Choice<T>>) {
          return std::string(place.names[place.get(object)]);
        } else if constexpr (std::is_same_v<Place, TextForm<T>>) {
          return place.get(object);
        } else if constexpr (std::is_same_v<Place, OrAuto<T>>) {
          const std::int32_t value = object.*(place.member);
          return value == place.automatic ? "auto" : std::to_string(value);
        } else if constexpr (std::is_same_v<Place, float T::*>) {
          return shortest(object.*place);
        } else if constexpr (std::is_same_v<Place, bool T::*>) {
          return object.*place ? "true" : "false";
        } else if constexpr (std::is_same_v<Place, std::int32_t T::*> ||
                             std::is_same_v<Place, std::int64_t T::*>) {
          return std::to_string(object.*place);
        } else if constexpr (std::is_same_v<Place, std::string T::*>) {
          return object.*place;
        } else {
          return "";
        }
      },
      field.place);
}

}  // namespace outrider
