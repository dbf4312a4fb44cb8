// How options are declared: one line each, with range, default and unit in the help, and a message
// that names the option, what was given, and what is right.
//
// Every value may come from the command line, the environment or a config file
// (tools/options/config.h). A later one on the command line replaces an earlier one, so that an
// alias can be overridden.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/field.h"

namespace outrider::tools {

// The long name of the first of `names`: "-c,--ctx" -> "--ctx".
std::string spelled(const std::string& names);

// The option of a field: "top_k" -> "--top-k"; an index goes: "stop[2]" -> "--stop".
std::string option_name(std::string_view field);

// What `status` says, with fields spelled as options (tools/options/field_words.h).
std::string option_message(const Status& status);

// Throws a failure as wrong usage.
void require_ok(const Status& status);

// The environment variable of an option: "--max-tokens" -> "OUTRIDER_MAX_TOKENS".
std::string environment_name(const std::string& long_name);

// The option that has this value, and where it came from when that is not plain to see:
// "--width (from OUTRIDER_WIDTH)".
std::string origin(const std::string& option, const std::string& text);

// `text` as a whole number in `range`. `wanted`: what the message says it must be; empty: that.
// Throws UsageError.
std::int64_t parse_integer(const std::string& option, const std::string& text, const Range& range,
                           const std::string& wanted = "");

// The help of an option that takes a number, with the range, as full_help() has it.
std::string with_range(const std::string& help, const Range& range);

// A command's options under one heading of its help. `names` are as CLI11 takes them ("-c,--ctx");
// `unit` is the placeholder in the help ("N", "FILE"). The variables must outlive the parsing, and
// hold the defaults, which the help shows.
class OptionGroup {
 public:
  OptionGroup(CLI::App& app, std::string heading) : app_(app), heading_(std::move(heading)) {}

  // A whole number in `range`, which `value` can hold.
  template <typename Whole>
  CLI::Option* add_integer(const std::string& names, Whole& value, const Range& range,
                           const std::string& help) {
    return declare(names, with_range(help, range), "N", std::to_string(value),
                   [&value, name = spelled(names), range](const std::string& text) {
                     value = static_cast<Whole>(parse_integer(name, text, range));
                   });
  }
  // Whole numbers in `range` with commas between them, each once, in the order given. `wanted`:
  // what the message says must be there beside the range.
  CLI::Option* add_integers(const std::string& names, std::vector<std::int32_t>& values,
                            const Range& range, const std::string& help,
                            const std::string& wanted = "");

  // A number in `range`.
  CLI::Option* add_number(const std::string& names, float& value, const std::string& help,
                          const Range& range = {});

  CLI::Option* add_text(const std::string& names, std::optional<std::string>& value,
                        const std::string& unit, const std::string& help);
  // May be given several times.
  CLI::Option* add_texts(const std::string& names, std::vector<std::string>& values,
                         const std::string& unit, const std::string& help);

  // Names with commas between them, none of them empty.
  CLI::Option* add_names(const std::string& names, std::vector<std::string>& values,
                         const std::string& help);

  // One of `choices`, as a flag: without a value it means `bare`, with one (--color=always) that
  // one.
  CLI::Option* add_flag_choice(const std::string& names, std::string& value,
                               const std::vector<std::string>& choices, const std::string& bare,
                               const std::string& help);

  CLI::Option* add_switch(const std::string& names, bool& value, const std::string& help);

  // Any value: `take` gets the text as it was given, and throws UsageError for what is wrong.
  // `fallback`: the default, for the help.
  CLI::Option* declare(const std::string& names, const std::string& help, const std::string& unit,
                       const std::string& fallback, std::function<void(const std::string&)> take);
  // May be given several times: `take` gets all values at once.
  CLI::Option* declare_many(const std::string& names, const std::string& help,
                            const std::string& unit,
                            std::function<void(const std::vector<std::string>&)> take);

 private:
  CLI::App& app_;
  std::string heading_;
};

// `text` as a number. Throws UsageError.
float parse_number(const std::string& option, const std::string& text);

// The index of `text` among `choices`. Throws UsageError.
std::size_t parse_choice(const std::string& option, const std::string& text,
                         const std::vector<std::string>& choices);

// "a, b c,d" -> its parts, without spaces around them.
std::vector<std::string> parts_of(const std::string& list);

// What an option's value may be, one of a few names, for completions in shells; empty: anything.
// It is not checked here.
CLI::Option* set_choices(CLI::Option* option, const std::vector<std::string>& choices);
// The same, and checked: parsing throws UsageError.
void check_choices(CLI::Option* option, const std::vector<std::string>& choices);
std::vector<std::string> choices_of(CLI::Option& option);

// The long names ("--ctx") of what can be set in `app`: all options but --help and positional ones.
std::vector<std::string> option_names(const CLI::App& app);

}  // namespace outrider::tools
