// Options out of tables of fields (base/field.h): name, range, default and help are the field's.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/field.h"
#include "tools/options/options.h"

namespace outrider::tools {

// What belongs to an option and not to its field.
struct OptionTexts {
  std::string prefix;  // of its name: "draft_"
  std::string help;    // in place of the field's, without its range; empty: the field's
};

// The field as an option of the group. Not for what is ByHand. `object` must outlive the parsing,
// and holds the default. A value out of range throws UsageError.
template <typename T>
CLI::Option* add_field(OptionGroup& group, const Field<T>& field, T& object,
                       const OptionTexts& texts = {});

// All of the table but those ByHand and `without`.
template <typename T>
void add_fields(OptionGroup& group, std::span<const Field<T>> table, T& object,
                const std::vector<std::string_view>& without = {}) {
  for (const Field<T>& field : table) {
    const bool left_out = std::find(without.begin(), without.end(), field.name) != without.end();
    if (left_out || std::holds_alternative<ByHand>(field.place)) continue;
    add_field(group, field, object);
  }
}

// Details from here on.

template <typename T>
class OptionAdder {
  using Text = const std::string&;

 public:
  OptionAdder(OptionGroup& group, const Field<T>& field, T& object, const OptionTexts& texts)
      : group_(group), field_(field), object_(object) {
    names_ = option_name(texts.prefix + std::string(field.name));
    if (field.letter != '\0' && texts.prefix.empty()) {
      names_ = std::string("-") + field.letter + "," + names_;
    }
    help_ = help_text(texts.help.empty() ? field.help : std::string_view(texts.help), field.type(),
                      field.range, field.off, field.most);
    fallback_ = field.otherwise.empty() ? value_text(field, object) : std::string(field.otherwise);
  }

  CLI::Option* operator()(const ByHand& /*place*/) { return nullptr; }
  CLI::Option* operator()(float& value) {
    return declare("X", [&value](Text name, Text text) { value = parse_number(name, text); });
  }
  CLI::Option* operator()(std::int32_t& value) { return add_whole<std::int32_t>(value); }
  CLI::Option* operator()(std::int64_t& value) { return add_whole<std::int64_t>(value); }
  CLI::Option* operator()(std::optional<std::int32_t>& value) {
    return add_whole<std::int32_t>(value);
  }
  CLI::Option* operator()(bool& value) { return group_.add_switch(names_, value, help_); }
  CLI::Option* operator()(std::string& value) { return add_text(value); }
  CLI::Option* operator()(std::optional<std::string>& value) { return add_text(value); }
  CLI::Option* operator()(std::vector<std::string>& values) {
    if (field_.unit.ends_with(",...")) {
      return declare("", [&values](Text /*name*/, Text text) { values = parts_of(text); });
    }
    return group_.add_texts(names_, values, std::string(field_.unit),
                            help_ + "; may be given several times");
  }
  CLI::Option* operator()(const Choice<T>& choice) {
    const std::vector<std::string> names(choice.names.begin(), choice.names.end());
    const auto take = [&object = object_, choice, names](Text name, Text text) {
      choice.set(object, parse_choice(name, text, names));
    };
    return set_choices(declare("NAME", take), names);
  }
  CLI::Option* operator()(const OrAuto<T>& place) {
    return declare("N", [&object = object_, place, range = field_.range](Text name, Text text) {
      object.*(place.member) = text == "auto"
                                   ? place.automatic
                                   : static_cast<std::int32_t>(parse_integer(
                                         name, text, range, "auto, or " + whole_range_text(range)));
    });
  }
  CLI::Option* operator()(const TextForm<T>& form) {
    return declare("EXPR", [&object = object_, form, &field = field_](Text /*name*/, Text text) {
      require_ok(form.set(object, text, std::string(field.name)));
    });
  }

 private:
  CLI::Option* declare(const std::string& unit, std::function<void(Text name, Text text)> take) {
    return group_.declare(names_, help_, field_.unit.empty() ? unit : std::string(field_.unit),
                          fallback_,
                          [take = std::move(take), name = spelled(names_), &field = field_,
                           &object = object_](const std::string& text) {
                            take(name, text);
                            require_ok(check(field, object));
                          });
  }
  template <typename Value>
  CLI::Option* add_text(Value& value) {
    return declare("TEXT", [&value](Text /*name*/, Text text) { value = text; });
  }
  template <typename Whole, typename Value>
  CLI::Option* add_whole(Value& value) {
    return declare("N", [&value, range = field_.range](Text name, Text text) {
      value = static_cast<Whole>(parse_integer(name, text, range));
    });
  }

  OptionGroup& group_;
  const Field<T>& field_;
  T& object_;
  std::string names_;
  std::string help_;
  std::string fallback_;
};

template <typename T>
CLI::Option* add_field(OptionGroup& group, const Field<T>& field, T& object,
                       const OptionTexts& texts) {
  return visit_field(field, object, OptionAdder<T>(group, field, object, texts));
}

}  // namespace outrider::tools
