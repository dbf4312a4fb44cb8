#include "tools/options/options.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/field.h"
#include "base/list_of.h"
#include "base/number_from.h"
#include "tools/options/field_words.h"
#include "tools/options/usage.h"

namespace outrider::tools {
namespace {

constexpr const char* kChoices = "choices";

[[noreturn]] void refuse(const std::string& option, const std::string& text,
                         const std::string& wanted) {
  throw UsageError(origin(option, text) + " is '" + text + "', but must be " + wanted);
}

}  // namespace

std::string spelled(const std::string& names) {
  const std::size_t start = names.find("--");
  const std::size_t end = names.find_first_of(",{", start);
  return names.substr(start, end == std::string::npos ? end : end - start);
}

std::string option_name(std::string_view field) {
  std::string name = "--" + std::string(field.substr(0, field.find('[')));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string option_message(const Status& status) {
  return in_options(status.message_with(option_of(status.field())));
}

void require_ok(const Status& status) {
  if (!status.ok()) throw UsageError(option_message(status));
}

std::string environment_name(const std::string& long_name) {
  std::string name = "OUTRIDER_";
  for (const char c : long_name.substr(long_name.find_first_not_of('-'))) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::string origin(const std::string& option, const std::string& text) {
  const std::string variable = environment_name(option);
  const char* set = std::getenv(variable.c_str());
  return set != nullptr && text == set ? option + " (from " + variable + ")" : option;
}

std::int64_t parse_integer(const std::string& option, const std::string& text, const Range& range,
                           const std::string& wanted) {
  const std::optional<std::int64_t> value = number_from<std::int64_t>(text);
  if (value && *value >= whole_limit(range.min) && *value <= whole_limit(range.max)) return *value;
  refuse(option, text, wanted.empty() ? whole_range_text(range) : wanted);
}

float parse_number(const std::string& option, const std::string& text) {
  const std::optional<float> value = number_from<float>(text);
  if (!value) refuse(option, text, "a number such as 0.8");
  return *value;
}

std::string with_range(const std::string& help, const Range& range) {
  return help_text(help, "number", range, /*off=*/{}, /*most=*/0);
}

std::size_t parse_choice(const std::string& option, const std::string& text,
                         const std::vector<std::string>& choices) {
  const std::vector<std::string>::const_iterator found =
      std::find(choices.begin(), choices.end(), text);
  if (found == choices.end()) refuse(option, text, list_of(choices, " or "));
  return static_cast<std::size_t>(found - choices.begin());
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0, comma = 0; comma != std::string::npos; begin = comma + 1) {
    comma = list.find(',', begin);
    std::string part = list.substr(begin, comma - begin);
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    parts.push_back(std::move(part));
  }
  return parts;
}

// Kept in a validator that validates nothing: CLI11 has no other place for them, and takes the
// description of an active one into the name of the option's type.
CLI::Option* set_choices(CLI::Option* option, const std::vector<std::string>& choices) {
  CLI::Validator names([](std::string&) { return std::string(); }, list_of(choices, ","), kChoices);
  names.active(false);
  return option->check(names);
}

void check_choices(CLI::Option* option, const std::vector<std::string>& choices) {
  const auto check = [name = spelled(option->get_name()), choices](std::string& text) {
    (void)parse_choice(name, text, choices);
    return std::string();
  };
  set_choices(option, choices)->check(CLI::Validator(check, ""));
}

std::vector<std::string> choices_of(CLI::Option& option) {
  for (int i = 0;; ++i) {
    CLI::Validator found;
    try {
      found = *option.get_validator(i);
    } catch (const CLI::OptionNotFound&) {
      return {};
    }
    if (found.get_name() == kChoices) return parts_of(found.active(true).get_description());
  }
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option == app.get_help_ptr() || option->get_lnames().empty()) continue;
    names.push_back("--" + option->get_lnames().front());
  }
  return names;
}

CLI::Option* OptionGroup::declare(const std::string& names, const std::string& help,
                                  const std::string& unit, const std::string& fallback,
                                  std::function<void(const std::string&)> take) {
  const auto take_last = [take = std::move(take)](const std::vector<std::string>& texts) {
    take(texts.back());
  };
  return declare_many(names, help, unit, take_last)
      ->default_str(fallback)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* OptionGroup::declare_many(const std::string& names, const std::string& help,
                                       const std::string& unit,
                                       std::function<void(const std::vector<std::string>&)> take) {
  // A callback of our own for the raw text: CLI11's conversions drop what is empty and split what
  // looks like a list.
  CLI::Option* option = app_.add_option(
      names,
      [take = std::move(take)](const CLI::results_t& results) {
        take(results);
        return true;
      },
      help);
  option->group(heading_)->type_name(unit)->allow_extra_args(false);
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* OptionGroup::add_integers(const std::string& names, std::vector<std::int32_t>& values,
                                       const Range& range, const std::string& help,
                                       const std::string& wanted) {
  const std::string all = "whole numbers from " + std::to_string(whole_limit(range.min)) + " to " +
                          std::to_string(whole_limit(range.max)) + " with commas between them" +
                          wanted;
  const auto take = [&values, name = spelled(names), range, all](const std::string& text) {
    values.clear();
    for (const std::string& part : parts_of(text)) {
      const auto value = static_cast<std::int32_t>(parse_integer(name, part, range, all));
      const bool twice = std::find(values.begin(), values.end(), value) != values.end();
      if (!twice) values.push_back(value);
    }
  };
  std::string shown;
  for (const std::int32_t value : values) {
    shown += (shown.empty() ? "" : ",") + std::to_string(value);
  }
  return declare(names, with_range(help, range), "N,...", shown, take);
}

CLI::Option* OptionGroup::add_names(const std::string& names, std::vector<std::string>& values,
                                    const std::string& help) {
  return declare(names, help, "NAME,...", "",
                 [&values, name = spelled(names)](const std::string& text) {
                   values = parts_of(text);
                   if (std::find(values.begin(), values.end(), "") == values.end()) return;
                   refuse(name, text, "names with commas between them");
                 });
}

CLI::Option* OptionGroup::add_number(const std::string& names, float& value,
                                     const std::string& help, const Range& range) {
  const std::string name = spelled(names);
  return declare(names, with_range(help, range), "X", shortest(value),
                 [&value, name, range](const std::string& text) {
                   value = parse_number(name, text);
                   // As text: 0.005f is a little less than 0.005.
                   const double number = number_from<double>(text).value_or(value);
                   if (!range.contains(number)) refuse(name, text, range_text(range));
                 });
}

CLI::Option* OptionGroup::add_text(const std::string& names, std::optional<std::string>& value,
                                   const std::string& unit, const std::string& help) {
  return declare(names, help, unit, "", [&value](const std::string& text) { value = text; });
}

CLI::Option* OptionGroup::add_texts(const std::string& names, std::vector<std::string>& values,
                                    const std::string& unit, const std::string& help) {
  return declare_many(names, help, unit,
                      [&values](const std::vector<std::string>& texts) { values = texts; });
}

CLI::Option* OptionGroup::add_flag_choice(const std::string& names, std::string& value,
                                          const std::vector<std::string>& choices,
                                          const std::string& bare, const std::string& help) {
  CLI::Option* option = app_.add_flag(names + "{" + bare + "}", value, help);
  check_choices(option, choices);
  return option->group(heading_)->option_text("[=NAME]")->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* OptionGroup::add_switch(const std::string& names, bool& value,
                                     const std::string& help) {
  CLI::Option* option = app_.add_flag(names, value, help);
  return option->group(heading_)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

}  // namespace outrider::tools
