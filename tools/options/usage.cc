#include "tools/options/usage.h"

#include <string_view>

#include "base/nearest.h"
#include "tools/options/llama_names.h"
#include "tools/options/options.h"

namespace outrider::tools {

UsageError unexpected_arguments(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::string command = app.get_parent() != nullptr ? app.get_name() + " " : "";
  const std::string see = "'outrider " + command + "--help' lists all options";
  for (const std::string& argument : arguments) {
    if (argument.size() < 2 || argument.front() != '-') continue;
    const std::string name = argument.substr(0, argument.find('='));
    if (!command.empty() && app.get_option_no_throw(name) != nullptr) {
      return UsageError(name + " stands before the command",
                        "options go behind it: outrider " + command + name);
    }
    const std::vector<std::string> options = option_names(app);
    const std::string theirs = in_place_of_llamas(name, options);
    if (!theirs.empty()) return UsageError("unknown option " + name, theirs);
    const std::string near = is_llamas(name) ? "" : nearest(name, options);
    return UsageError("unknown option " + name,
                      near.empty() ? see : "did you mean " + near + "? " + see);
  }
  return UsageError("unexpected argument '" + arguments.front() + "'", see);
}

UsageError translate(const CLI::ParseError& error) {
  if (const auto* ours = dynamic_cast<const UsageError*>(&error)) return *ours;
  std::string what = error.what();
  const std::string name = error.get_name();
  if (name == "ArgumentMismatch") {  // "--ctx: 1 required INT missing"
    const std::string option = what.substr(0, what.find_first_of(": "));
    const bool many = what.find("received") != std::string::npos;  // "At most 1 ... received 2"
    return UsageError(option + (many ? " is given more than once" : " needs a value"));
  }
  if (name == "ConversionError") {  // only switches leave the conversion to CLI11
    constexpr std::string_view kBefore = "Could not convert: ";
    if (what.starts_with(kBefore)) what.erase(0, kBefore.size());
    const std::size_t between = what.find(" = ");  // "--stats = maybe"
    if (between == std::string::npos) return UsageError(what + ": must be true or false");
    const std::string text = what.substr(between + 3);
    return UsageError(origin(what.substr(0, between), text) + " is '" + text +
                      "', but must be true or false, or nothing at all");
  }
  if (name == "FileError") {
    constexpr std::string_view kBehind = " was not readable (missing?)";
    if (what.ends_with(kBehind)) what.resize(what.size() - kBehind.size());
    return UsageError("cannot read the config file " + what,
                      "--config and OUTRIDER_CONFIG take the path of a TOML file");
  }
  return UsageError(what);
}

}  // namespace outrider::tools
